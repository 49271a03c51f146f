package protocol

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// FuzzConnection sends anything to a server: it ends the connection or answers,
// holds nothing afterwards, and takes no more memory than the input warrants.
func FuzzConnection(f *testing.F) {
	rng := rand.New(rand.NewPCG(31, 32))
	broker := &fakeBroker{}
	for _, api := range broker.apis() {
		for v := api.Min; v <= api.Max; v++ {
			f.Add(frameOf(someRequest(rng, api.Key, v, false), 7, "c"))
		}
	}
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	s, err := Listen(Options{APIs: broker.apis()})
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, s.Close(context.Background())) })
	ln := &listener{Listener{Name: "L"}, newPipeListener()}
	f.Fuzz(func(t *testing.T, sent []byte) {
		ours, theirs := net.Pipe()
		require.True(t, s.gate.enter("L", addrOf(theirs.RemoteAddr())))
		s.start(ln, theirs, addrOf(theirs.RemoteAddr()))
		require.NoError(t, ours.SetDeadline(time.Now().Add(10*time.Second)))
		done := make(chan struct{})
		go func() {
			_, _ = io.Copy(io.Discard, ours)
			close(done)
		}()
		_, _ = ours.Write(sent)
		_ = ours.Close()
		<-done
	})
}

func FuzzHeader(f *testing.F) {
	f.Add([]byte{0, 18, 0, 3, 0, 0, 0, 1, 0, 1, 'c', 1, 99, 1, 'x', 1}, true)
	f.Add([]byte{0, 18, 0, 3, 0, 0, 0, 1, 0xff, 0xff}, false)
	f.Fuzz(func(t *testing.T, frame []byte, flexible bool) {
		h, body, err := parseHeader(frame, flexible)
		if err == nil {
			require.LessOrEqual(t, len(body)+len(h.clientID)+minFrame, len(frame))
		}
	})
}

// FuzzBoundedDecode decodes anything as any request: without a panic, and with
// memory in proportion to the input. What decodes is encoded and decoded again
// to the same.
func FuzzBoundedDecode(f *testing.F) {
	rng := rand.New(rand.NewPCG(41, 42))
	for i, row := range schemaTable {
		for v := range versionsOfKmsg(row.key) {
			f.Add(uint8(i), uint8(v), someRequest(rng, row.key, int16(v), false).AppendTo(nil))
		}
	}
	f.Fuzz(func(t *testing.T, api, version uint8, body []byte) {
		row := schemaTable[int(api)%len(schemaTable)]
		v := int16(int(version) % versionsOfKmsg(row.key))
		req := kmsg.RequestForKey(row.key)
		req.SetVersion(v)
		var err error
		took := allocated(func() { err = BoundedDecode(req, body) })
		require.Less(t, took, uint64(1<<20+256*len(body)))
		if err != nil {
			return
		}
		again := kmsg.RequestForKey(row.key)
		again.SetVersion(v)
		encoded := req.AppendTo(nil)
		require.NoError(t, BoundedDecode(again, encoded))
		require.Equal(t, encoded, again.AppendTo(nil))
	})
}
