package protocol

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeSource brings parts out of one piece of memory, as sources do.
type fakeSource struct {
	parts  [][]byte
	memory []byte
	err    error // when no part is left
}

func (s *fakeSource) Discard() {
	for i := range s.memory {
		s.memory[i] = 0xff
	}
}

func (s *fakeSource) More() ([][]byte, error) {
	s.Discard()
	if len(s.parts) == 0 {
		return nil, s.err
	}
	s.memory = append(s.memory[:0], s.parts[0]...)
	s.parts = s.parts[1:]
	half := len(s.memory) / 2
	return [][]byte{s.memory[:half], s.memory[half:]}, nil
}

// streamed serves bodies of pieces and insets, and returns what a client is to get.
func streamed(t *testing.T, insets [][]int) (*client, []byte) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, 2))
	some := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rnd.IntN(255)) // Never what memory that was discarded holds.
		}
		return b
	}
	var want []byte
	body := &Buffers{}
	for i, sizes := range insets {
		piece := some(100 * i)
		body.Pieces = append(body.Pieces, piece)
		want = append(want, piece...)
		s := &fakeSource{err: errors.New("nothing is left")}
		total := 0
		for _, n := range sizes {
			s.parts = append(s.parts, some(n))
			total += n
		}
		want = append(want, bytes.Join(s.parts, nil)...)
		body.Insets = append(body.Insets, Inset{At: len(body.Pieces), Size: total, Source: s})
	}
	srv := serve(t, Options{APIs: []API{{Key: 3, Min: 0, Max: 13, Submit: func(c *Call) Finish {
		return c.Reply(Reply{Body: body})
	}}}})
	c := dial(t, srv, "PLAINTEXT")
	c.send(frameOf(metadataOf(1), 7, "c"))
	return c, want
}

func TestSourcesBringTheirPartsWhileTheAnswerIsWritten(t *testing.T) {
	for _, insets := range [][][]int{
		{{1}},
		{{300}, {5}, {7, 8, 9}},
		{{warmBytes, warmBytes, 1}, {10, 10}},
		{{strideBytes}, {3*strideBytes + 1, 2}, {strideBytes - 100, 100, 100}},
		{{5000, 1, warmBytes - 5000, 12}, {3}, {2 * strideBytes}, {1}},
	} {
		c, want := streamed(t, insets)
		correlation, got := c.receive()
		require.Equal(t, int32(7), correlation)
		require.True(t, bytes.Equal(want, got), "%v", insets)
	}
}

func TestAnAnswerThatCannotBeCompletedEndsTheConnection(t *testing.T) {
	ended := make(chan error, 1)
	broken := errors.New("broken")
	s := serve(t, Options{
		APIs: []API{{Key: 3, Min: 0, Max: 13, Submit: func(c *Call) Finish {
			source := &fakeSource{parts: [][]byte{make([]byte, 1000)}, err: broken}
			return c.Reply(Reply{Body: &Buffers{Insets: []Inset{{Size: 2000, Source: source}}}})
		}}},
		Events: Events{Closed: func(_ *ConnInfo, err error) { ended <- err }},
	})
	c := dial(t, s, "PLAINTEXT")
	c.send(frameOf(metadataOf(1), 7, "c"))
	n, _ := io.Copy(io.Discard, c.nc)
	require.Less(t, n, int64(2000))
	require.ErrorIs(t, <-ended, broken)
}

func TestASourceThatBringsTooMuchEndsTheConnection(t *testing.T) {
	s := serve(t, Options{APIs: []API{{Key: 3, Min: 0, Max: 13, Submit: func(c *Call) Finish {
		source := &fakeSource{parts: [][]byte{make([]byte, 1000)}}
		return c.Reply(Reply{Body: &Buffers{Insets: []Inset{{Size: 999, Source: source}}}})
	}}}})
	c := dial(t, s, "PLAINTEXT")
	c.send(frameOf(metadataOf(1), 7, "c"))
	n, _ := io.Copy(io.Discard, c.nc)
	require.Less(t, n, int64(999))
}
