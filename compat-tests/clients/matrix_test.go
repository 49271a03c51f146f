package clients

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/mainstem/mainstem/compat-tests/harness"
)

// TestGoClientsReadWhatEachWrites needs no software but this module.
func TestGoClientsReadWhatEachWrites(t *testing.T) {
	matrix(t, Go(), Go())
}

// TestEveryClientReadsWhatEachWrites runs where COMPAT_CLIENTS=all says that the
// clients in other languages are installed, as compat-tests/compat does.
// COMPAT_ADDRESS names a running broker to use instead of a new Mainstem.
func TestEveryClientReadsWhatEachWrites(t *testing.T) {
	if os.Getenv("COMPAT_CLIENTS") != "all" {
		t.Skip("COMPAT_CLIENTS=all is not set: clients in other languages are run by `make compat`")
	}
	everyone := append(Go(), External()...)
	var readers []Client
	for _, c := range everyone {
		if p, ok := c.(program); !ok || p.reads {
			readers = append(readers, c)
		}
	}
	matrix(t, everyone, readers)
}

// matrix writes a topic for each writer and codec, and reads it with each reader.
func matrix(t *testing.T, writers, readers []Client) {
	address := os.Getenv("COMPAT_ADDRESS")
	if address == "" {
		address = harness.Start(t).Address
	}
	var seed uint64
	for _, w := range writers {
		for _, codec := range w.Codecs() {
			seed++
			topic := fmt.Sprintf("%s-%s", w.Name(), codec)
			want := Records(seed, abilities(w))
			createTopic(t, address, topic)
			t.Run("write/"+topic, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				require.NoError(t, w.Write(ctx, address, topic, codec, want))
			})
			for _, r := range readers {
				t.Run("read/"+topic+"/"+r.Name(), func(t *testing.T) {
					ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
					defer cancel()
					got, err := r.Read(ctx, address, topic, len(want))
					require.NoError(t, err, "after %d of %d records", len(got), len(want))
					require.NoError(t, Compare(want, got, abilities(r)))
				})
			}
		}
	}
}

func abilities(c Client) Abilities {
	if narrow, ok := c.(Narrow); ok {
		return narrow.Abilities()
	}
	return Abilities{}
}

func createTopic(t *testing.T, address, topic string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(address))
	require.NoError(t, err)
	defer cl.Close()
	_, err = kadm.NewClient(cl).CreateTopic(context.Background(), 1, 1, nil, topic)
	require.NoError(t, err)
}
