package admin

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// BenchmarkMetadataOfEverything is what a client pays that asks for all topics
// of a cluster of 100,000 partitions.
func BenchmarkMetadataOfEverything(b *testing.B) {
	w := newWorld(b, "")
	for i := range 11 {
		w.create(9091, fmt.Sprintf("t%d", i))
	}
	req := kmsg.NewPtrMetadataRequest()
	req.Version = 12
	api := w.apis[int16(kmsg.Metadata)]
	buf := []byte(nil)
	b.ReportAllocs()
	for b.Loop() {
		reply, err := api.Do(b.Context(), req, w.conn)
		if err != nil {
			b.Fatal(err)
		}
		reply.Msg.SetVersion(12)
		buf = reply.Msg.AppendTo(buf[:0])
	}
	b.SetBytes(int64(len(buf)))
}

// BenchmarkMetadataOfOneTopic is the usual refresh.
func BenchmarkMetadataOfOneTopic(b *testing.B) {
	w := newWorld(b, "")
	w.create(10, "t")
	name := "t"
	req := kmsg.NewPtrMetadataRequest()
	req.Version, req.Topics = 12, []kmsg.MetadataRequestTopic{{Topic: &name}}
	api := w.apis[int16(kmsg.Metadata)]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := api.Do(b.Context(), req, w.conn); err != nil {
			b.Fatal(err)
		}
	}
}
