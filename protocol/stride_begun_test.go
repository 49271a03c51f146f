package protocol

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatASourceBeganWithIsWrittenBeforeItIsAskedForMore(t *testing.T) {
	for _, first := range []int{1, warmBytes - 1000, warmBytes, strideBytes - 1, 2 * strideBytes} {
		begun := bytes.Repeat([]byte("a"), first)
		more := bytes.Repeat([]byte("b"), 5000)
		want := bytes.Join([][]byte{begun, more, []byte("end")}, nil)
		source := &fakeSource{memory: begun, parts: [][]byte{more}}
		srv := serve(t, Options{APIs: []API{{Key: 3, Min: 0, Max: 13, Submit: func(c *Call) Finish {
			return c.Reply(Reply{Body: &Buffers{
				Pieces: [][]byte{begun, []byte("end")},
				Insets: []Inset{{At: 1, Size: len(more), Source: source, Begun: true}},
			}})
		}}}})
		c := dial(t, srv, "PLAINTEXT")
		c.send(frameOf(metadataOf(1), 7, "c"))
		_, got := c.receive()
		require.True(t, bytes.Equal(want, got), "%d bytes first", first)
	}
}
