package records

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/mainstem/mainstem/broker/quota"
	"github.com/mainstem/mainstem/broker/replica/replicatest"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/protocol"
	"github.com/mainstem/mainstem/protocol/batch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is the handlers over a real store.
type rig struct {
	*replicatest.Node
	t      testing.TB
	h      *Handlers
	apis   map[int16]protocol.API
	server *protocol.Server
	quotas *quota.Manager
}

func newRig(t testing.TB, overrides ...string) *rig {
	t.Helper()
	r := &rig{Node: replicatest.Open(t, replicatest.Options{Overrides: overrides}), t: t}
	r.handle()
	return r
}

// handle makes the handlers anew, as after a restart.
func (r *rig) handle() {
	r.h = New(Options{
		Replicas: r.Set, Live: r.Live, NodeID: replicatest.NodeID, Metrics: r.Metrics, Quotas: r.quotas,
	})
	r.apis = make(map[int16]protocol.API)
	for _, a := range r.h.APIs() {
		r.apis[a.Key] = a
	}
}

// submit hands a request to its handler, without sockets.
func (r *rig) submit(ctx context.Context, req kmsg.Request) (*protocol.Call, protocol.Finish) {
	r.t.Helper()
	api, ok := r.apis[req.Key()]
	require.True(r.t, ok)
	client := "test"
	c := &protocol.Call{Ctx: ctx, Key: req.Key(), Version: req.GetVersion(), ClientID: &client, Conn: &protocol.ConnInfo{Listener: "PLAINTEXT"}}
	body := req.AppendTo(nil)
	if api.Decode != nil {
		require.NoError(r.t, api.Decode(c, body))
	} else {
		c.Request = kmsg.RequestForKey(req.Key())
		c.Request.SetVersion(req.GetVersion())
		require.NoError(r.t, c.Request.ReadFrom(body))
	}
	return c, api.Submit(c)
}

// do handles a request without sockets and decodes the answer.
func (r *rig) do(req kmsg.Request) kmsg.Response {
	r.t.Helper()
	c, finish := r.submit(context.Background(), req)
	return r.decode(req, c.Outcome(finish))
}

// whole returns all of a body.
func whole(t testing.TB, body *protocol.Buffers) (all []byte) {
	t.Helper()
	insets := body.Insets
	for i := 0; i <= len(body.Pieces); i++ {
		for ; len(insets) > 0 && insets[0].At == i; insets = insets[1:] {
			for left := insets[0].Size; left > 0; {
				pieces, err := insets[0].Source.More()
				require.NoError(t, err)
				more := bytes.Join(pieces, nil)
				all, left = append(all, more...), left-len(more)
			}
			insets[0].Source.Discard()
		}
		if i < len(body.Pieces) {
			all = append(all, body.Pieces[i]...)
		}
	}
	return all
}

func (r *rig) decode(req kmsg.Request, reply protocol.Reply) kmsg.Response {
	r.t.Helper()
	if reply.Msg != nil {
		return reply.Msg
	}
	require.NotNil(r.t, reply.Body)
	resp := req.ResponseKind()
	require.NoError(r.t, resp.ReadFrom(whole(r.t, reply.Body)))
	if reply.Body.Release != nil {
		reply.Body.Release()
	}
	return resp
}

// client speaks to the handlers through a real server.
type client struct {
	t    testing.TB
	nc   net.Conn
	corr int32
}

func (r *rig) dial() *client {
	r.t.Helper()
	if r.server == nil {
		s, err := protocol.Listen(protocol.Options{
			Listeners: []protocol.Listener{{Name: "PLAINTEXT", Host: "127.0.0.1", Protocol: "PLAINTEXT"}}, APIs: r.h.APIs(),
		})
		require.NoError(r.t, err)
		s.Serve()
		r.server = s
		r.t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			require.NoError(r.t, s.Close(ctx))
		})
	}
	nc, err := net.Dial("tcp", r.server.Addrs()["PLAINTEXT"].String())
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = nc.Close() })
	return &client{t: r.t, nc: nc}
}

func (c *client) send(req kmsg.Request) {
	c.t.Helper()
	c.corr++
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, req, c.corr)
	c.write(frame[4:])
}

func (c *client) write(body []byte) {
	c.t.Helper()
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	_, err := c.nc.Write(append(frame, body...))
	require.NoError(c.t, err)
}

var errClosed = errors.New("connection closed")

// read returns the next answer, header included.
func (c *client) read() ([]byte, error) {
	c.t.Helper()
	require.NoError(c.t, c.nc.SetReadDeadline(time.Now().Add(20*time.Second)))
	var size [4]byte
	if _, err := io.ReadFull(c.nc, size[:]); err != nil {
		return nil, fmt.Errorf("%w: %w", errClosed, err)
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(c.nc, body)
	return body, err
}

func (c *client) ask(req kmsg.Request) kmsg.Response {
	c.t.Helper()
	c.send(req)
	return c.receive(req)
}

func (c *client) receive(req kmsg.Request) kmsg.Response {
	c.t.Helper()
	body, err := c.read()
	require.NoError(c.t, err)
	body = body[4:]
	if req.IsFlexible() {
		body = body[1:]
	}
	resp := req.ResponseKind()
	require.NoError(c.t, resp.ReadFrom(body))
	return resp
}

// newest is the newest version of a request.
func newest[T kmsg.Request](req T) T {
	req.SetVersion(req.MaxVersion())
	return req
}

// spec makes batches of records that all have the given time.
type spec struct {
	batch.Spec
	count int
	time  int64
	value string
	keys  bool
}

func (s spec) build(t testing.TB) []byte {
	t.Helper()
	if s.time == 0 {
		s.time = time.Now().UnixMilli()
	}
	b := batch.NewBuilder(s.Spec)
	for i := range max(s.count, 1) {
		var key []byte
		if s.keys {
			key = []byte("key")
		}
		b.Append(s.time, key, fmt.Append(nil, s.value, i))
	}
	out, err := b.Batch()
	require.NoError(t, err)
	return out
}

func producer(id int64, epoch int16, sequence int32) batch.Spec {
	return batch.Spec{Producer: &batch.Producer{ID: id, Epoch: epoch, Sequence: sequence}}
}

// produceRequest makes a request of the newest version for one topic, a batch for
// each partition from 0 on.
func produceRequest(id meta.TopicID, name string, batches ...[]byte) *kmsg.ProduceRequest {
	req := newest(kmsg.NewPtrProduceRequest())
	req.Acks, req.TimeoutMillis = -1, 5000
	topic := kmsg.ProduceRequestTopic{Topic: name, TopicID: id}
	for i, b := range batches {
		topic.Partitions = append(topic.Partitions, kmsg.ProduceRequestTopicPartition{Partition: int32(i), Records: b})
	}
	req.Topics = append(req.Topics, topic)
	return req
}

// produce appends a batch to a topic's partition 0 and returns the answer's row.
func (r *rig) produce(name string, b []byte) kmsg.ProduceResponseTopicPartition {
	r.t.Helper()
	resp := r.do(produceRequest(r.Image.Topic(name).ID, name, b)).(*kmsg.ProduceResponse)
	return resp.Topics[0].Partitions[0]
}

// fill appends n batches of one record each to a partition.
func (r *rig) fill(name string, partition int32, n int, value string) {
	r.t.Helper()
	for range n {
		req := produceRequest(r.Image.Topic(name).ID, name, spec{value: value}.build(r.t))
		req.Topics[0].Partitions[0].Partition = partition
		resp := r.do(req).(*kmsg.ProduceResponse)
		require.Zero(r.t, resp.Topics[0].Partitions[0].ErrorCode)
	}
}

// fetchRequest asks for one topic's partitions from 0 on, each at an offset, without
// a session.
func fetchRequest(version int16, t *meta.Topic, offsets ...int64) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version = version
	req.MaxBytes, req.MinBytes, req.SessionEpoch = 1<<20, 1, -1
	topic := kmsg.FetchRequestTopic{Topic: t.Name, TopicID: t.ID}
	for i, o := range offsets {
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.FetchOffset, p.PartitionMaxBytes = int32(i), o, 1<<20
		topic.Partitions = append(topic.Partitions, p)
	}
	if len(offsets) > 0 {
		req.Topics = append(req.Topics, topic)
	}
	return req
}

func (r *rig) fetch(req *kmsg.FetchRequest) *kmsg.FetchResponse {
	r.t.Helper()
	return r.do(req).(*kmsg.FetchResponse)
}

// append writes a batch as a coordinator does, past the handlers' checks.
func (r *rig) append(topic string, b []byte) {
	r.t.Helper()
	p := r.Partition(topic, 0)
	epoch, err := p.Writable(false)
	require.NoError(r.t, err)
	a, err := p.Append(b, epoch, log.Coordinator)
	require.NoError(r.t, err)
	require.NoError(r.t, r.Set.Commit(a.Ticket))
}
