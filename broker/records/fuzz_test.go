package records

import (
	"context"
	"encoding/hex"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/broker/replica/replicatest"
	"github.com/mainstem/mainstem/log/vfs"
	"github.com/mainstem/mainstem/protocol"
)

// FuzzRequests hands requests made of any bytes to the handlers: whatever can be
// decoded is answered, in a layout that can be decoded, and nothing panics. The
// seeds are requests that were recorded with Kafka.
func FuzzRequests(f *testing.F) {
	for _, e := range recordedExchanges(f) {
		b, err := hex.DecodeString(e.Request)
		if err != nil {
			f.Fatal(err)
		}
		// Header: key, version, correlation id, client id "facts", and tags if flexible.
		body := b[4+4+2+5:]
		if req := kmsg.RequestForKey(e.Key); req != nil {
			if req.SetVersion(e.Version); req.IsFlexible() {
				body = body[1:]
			}
		}
		f.Add(e.Key, e.Version, body)
	}
	disk := vfs.NewMem(1)
	disk.SetCapacity(128 << 20) // A full disk is fine here; the machine's memory is not to be used up.
	r := &rig{Node: replicatest.Open(f, replicatest.Options{FS: disk, Dir: "data"}), t: f}
	r.handle()
	r.Create(
		replicatest.Topic{Name: "wire", Partitions: 2, ID: topicID(f, "699d8e4c333b49949d322191df3c46d9")},
		replicatest.Topic{Name: "wirec", ID: topicID(f, "147572f0e04448c8a192216b335dbe5a"), Configs: map[string]string{"cleanup.policy": "compact"}},
		replicatest.Topic{Name: "wiregz", ID: topicID(f, "91b8a219226c497da83c844f9c85b7ba"), Configs: map[string]string{"compression.type": "gzip"}},
	)
	gone, hangUp := context.WithCancel(context.Background())
	hangUp() // So that nothing waits.
	f.Fuzz(func(t *testing.T, key, version int16, body []byte) {
		api, ok := r.apis[key]
		if !ok || version < api.Min || version > api.Max {
			return
		}
		client := "fuzz"
		c := &protocol.Call{Ctx: gone, Key: key, Version: version, ClientID: &client, Conn: &protocol.ConnInfo{}}
		req := kmsg.RequestForKey(key)
		req.SetVersion(version)
		if api.Decode != nil {
			if api.Decode(c, body) != nil {
				return
			}
		} else if protocol.BoundedDecode(req, body) != nil {
			return
		}
		c.Request = req
		reply := c.Outcome(api.Submit(c))
		if reply.Body == nil {
			return
		}
		resp := req.ResponseKind()
		var flat []byte
		for _, p := range reply.Body.Pieces {
			flat = append(flat, p...)
		}
		if err := resp.ReadFrom(flat); err != nil {
			t.Fatalf("answer of key %d, version %d: %v", key, version, err)
		}
		reply.Body.Release()
	})
}
