package clients

import (
	"context"
	"fmt"
	"os"
	"slices"
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
	matrix(t, everyone, everyone)
}

// builtIn tells the codecs that every client has without add-ons.
func builtIn(codec string) bool { return codec == "none" || codec == "gzip" }

// source is a topic of one writer: all records in one codec after the other, in
// one partition, so that a reader takes them in one go.
type source struct {
	topic   string
	codecs  []string
	records []Record
}

// matrix has each writer write in each of its codecs, and each reader read all.
func matrix(t *testing.T, writers, readers []Client) {
	address := os.Getenv("COMPAT_ADDRESS")
	if address == "" {
		address = harness.Start(t).Address
	}
	var sources []*source
	var seed uint64
	for _, w := range writers {
		for i, codecs := range split(w.Codecs()) {
			s := &source{topic: fmt.Sprintf("%s-%d", w.Name(), i), codecs: codecs}
			createTopic(t, address, s.topic)
			for _, codec := range codecs {
				seed++
				records := Records(seed, abilities(w))
				written := t.Run("write/"+w.Name()+"/"+codec, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
					defer cancel()
					require.NoError(t, w.Write(ctx, address, s.topic, codec, records))
				})
				if written {
					s.records = append(s.records, records...)
				}
			}
			if len(s.records) > 0 {
				sources = append(sources, s)
			}
		}
	}
	for _, s := range sources {
		for _, r := range readers {
			if !decodes(r, s.codecs) {
				continue
			}
			t.Run("read/"+s.topic+"/"+r.Name(), func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				got, err := r.Read(ctx, address, s.topic, len(s.records))
				require.NoError(t, err, "after %d of %d records", len(got), len(s.records))
				require.NoError(t, Compare(s.records, got, abilities(r)))
			})
		}
	}
}

// split parts the codecs that every client has from the others.
func split(codecs []string) (parts [][]string) {
	var first, second []string
	for _, c := range codecs {
		if builtIn(c) {
			first = append(first, c)
		} else {
			second = append(second, c)
		}
	}
	for _, part := range [][]string{first, second} {
		if len(part) > 0 {
			parts = append(parts, part)
		}
	}
	return parts
}

// decodes tells whether a reader has all of these codecs without add-ons.
func decodes(r Client, codecs []string) bool {
	for _, c := range codecs {
		if !slices.Contains(r.Codecs(), c) {
			return false
		}
	}
	return true
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
