package protocol

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// fakeBroker answers a few APIs as a broker would, without keeping anything.
type fakeBroker struct {
	appended  atomic.Int64 // partitions produced to, in order of submits
	submitted chan int32   // correlation ids in order of submits, if set
	ended     chan error   // why parked fetches ended, if set
	hold      chan struct{}
}

func (b *fakeBroker) apis() []API {
	return []API{
		{Key: 0, Min: 3, Max: 13, Advertise: &[2]int16{0, 13}, MaxBytes: 100 << 20, Decode: DecodeProduce, Submit: b.produce},
		{Key: 1, Min: 4, Max: 18, Detached: true, Submit: b.fetch},
		{Key: 3, Min: 0, Max: 13, Submit: b.metadata},
		{Key: 15, Min: 0, Max: 6, MaxBytes: 1 << 10, Submit: b.echo},
		{Key: 19, Min: 2, Max: 7, Submit: b.echo},
		{Key: 22, Min: 0, Max: 5, Submit: b.echo},
	}
}

func (b *fakeBroker) note(c *Call) {
	if b.submitted != nil {
		b.submitted <- c.CorrelationID
	}
}

// produce answers with the number of the partition's append as its base offset.
func (b *fakeBroker) produce(c *Call) Finish {
	b.note(c)
	req := c.Body.(*ProduceRequest)
	resp := kmsg.NewPtrProduceResponse()
	for _, t := range req.Topics {
		rt := kmsg.NewProduceResponseTopic()
		rt.Topic, rt.TopicID = t.Name, t.ID
		for _, p := range t.Partitions {
			rp := kmsg.NewProduceResponseTopicPartition()
			rp.Partition, rp.BaseOffset = p.Index, b.appended.Add(1)-1
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	if req.Acks == 0 {
		return c.None()
	}
	if b.hold == nil {
		return func() Reply { return Reply{Msg: resp} }
	}
	if len(req.Topics[0].Partitions[0].Records) > lookahead {
		c.MayPark() // so that what follows is read meanwhile
	}
	return func() Reply {
		<-b.hold
		return Reply{Msg: resp}
	}
}

// fetch waits for MaxWait and answers with nothing, by a body in pieces.
func (b *fakeBroker) fetch(c *Call) Finish {
	b.note(c)
	req := c.Request.(*kmsg.FetchRequest)
	resp := req.ResponseKind().(*kmsg.FetchResponse)
	resp.SessionID = req.SessionID
	body := resp.AppendTo(nil)
	reply := Reply{Body: &Buffers{Pieces: [][]byte{body[:1], nil, body[1:]}}}
	if req.MaxWaitMillis <= 0 {
		return c.Reply(reply)
	}
	c.MayPark()
	ctx, draining := c.Ctx, c.Draining()
	return func() Reply {
		t := time.NewTimer(time.Duration(req.MaxWaitMillis) * time.Millisecond)
		defer t.Stop()
		var err error
		select {
		case <-t.C:
		case <-draining:
			err = ErrClosed
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if b.ended != nil {
			b.ended <- err
		}
		return reply
	}
}

func (b *fakeBroker) metadata(c *Call) Finish {
	b.note(c)
	return c.Answer(c.Request.ResponseKind())
}

func (b *fakeBroker) echo(c *Call) Finish {
	b.note(c)
	return Answer(c.Request.ResponseKind())
}

// produceTo is a request with one record-like byte slice for one partition.
func produceTo(acks int16, records []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 9, acks, 1000
	t := kmsg.NewProduceRequestTopic()
	t.Topic = "topic"
	p := kmsg.NewProduceRequestTopicPartition()
	p.Records = records
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

func fetchFor(wait time.Duration) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MaxWaitMillis, req.MinBytes = 12, int32(wait/time.Millisecond), 1
	return req
}

func metadataOf(version int16) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.Version = version
	return req
}

// pipeListener hands out the ends of pipes, for tests under virtual time.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

// dial gives the client's end, or nil if nobody accepts any more.
func (l *pipeListener) dial() net.Conn {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours
	case <-l.closed:
		return nil
	}
}

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
