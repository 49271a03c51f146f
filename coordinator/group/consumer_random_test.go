package group

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group/assign"
	"github.com/mainstem/mainstem/coordinator/journaltest"
)

// TestNoPartitionHasTwoReaders plays groups at random: members come, go, fall
// silent, change what they read, lose answers; topics come, grow and go; the
// coordinator restarts. At no time do two clients that are in session hold the same
// partition; and when all is quiet every partition has a reader.
func TestNoPartitionHasTwoReaders(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlay(t, seed)
				defer p.stage.runtime.Close()
				for range 400 {
					p.act()
					p.checkReaders()
				}
				p.settle()
			})
		})
	}
}

// client is a consumer as a client library plays it.
type client struct {
	id, instance string
	topics       []string
	regex        *string
	epoch        int32
	has          assign.Set // what it reads
	due          assign.Set // what it was told to read, and does not yet
	acked        bool       // what it has was said since it changed
	deadline     time.Time  // until when its session lasts at least
}

type randomPlay struct {
	t       *testing.T
	stage   *stage
	r       *rand.Rand
	clients []*client
	next    int
}

func newPlay(t *testing.T, seed uint64) *randomPlay {
	s := newStage(t)
	s.consumer.MaxSize = 6
	if seed%2 == 0 {
		s.consumer.AssignmentInterval = 2 * time.Second
	}
	p := &randomPlay{t: t, stage: s, r: rand.New(rand.NewPCG(seed, 848))}
	p.topic("a", 3)
	p.topic("b", 2)
	return p
}

func (p *randomPlay) topic(name string, partitions int) {
	p.stage.topic(&args{Args: &journaltest.Args{Words: []string{name, fmt.Sprint(partitions)}}, s: p.stage})
	synctest.Wait()
	p.stage.lines = nil
}

// act is one random step.
func (p *randomPlay) act() {
	switch n := p.r.IntN(100); {
	case n < 8 && len(p.clients) < 7:
		p.come()
	case n < 70 && len(p.clients) > 0:
		p.beat(p.clients[p.r.IntN(len(p.clients))], p.r.IntN(10) == 0)
	case n < 75 && len(p.clients) > 0:
		p.leave(p.clients[p.r.IntN(len(p.clients))])
	case n < 80 && len(p.clients) > 0:
		p.subscribe(p.clients[p.r.IntN(len(p.clients))])
	case n < 85:
		p.topic([]string{"a", "b", "c"}[p.r.IntN(3)], p.r.IntN(6))
	case n < 88:
		p.stage.lead()
	default:
		<-time.After(time.Duration(p.r.IntN(8000)) * time.Millisecond)
	}
}

func (p *randomPlay) subscription(c *client) {
	c.topics, c.regex = nil, new(string)
	for _, name := range []string{"a", "b", "c"} {
		if p.r.IntN(2) == 0 {
			c.topics = append(c.topics, name)
		}
	}
	if p.r.IntN(3) == 0 {
		*c.regex = "[bc]"
	}
}

func (p *randomPlay) come() {
	p.next++
	c := &client{id: fmt.Sprint("m", p.next)}
	if p.r.IntN(3) == 0 {
		c.instance = fmt.Sprint("i", p.r.IntN(3))
	}
	p.subscription(c)
	p.clients = append(p.clients, c)
	p.beat(c, false)
}

func (p *randomPlay) subscribe(c *client) {
	p.subscription(c)
	c.acked = false
}

// request is the client's next heartbeat: a full one if there is something to say.
func (c *client) request() *kmsg.ConsumerGroupHeartbeatRequest {
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.MemberEpoch = "g", c.id, c.epoch
	if c.instance != "" {
		req.InstanceID = &c.instance
	}
	if c.epoch > 0 && c.acked {
		return req
	}
	req.RebalanceTimeoutMillis, req.SubscribedTopicNames, req.SubscribedTopicRegex = 30000, slices.Clone(c.topics), c.regex
	if req.SubscribedTopicNames == nil {
		req.SubscribedTopicNames = []string{}
	}
	req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	for _, tp := range c.has {
		t := kmsg.NewConsumerGroupHeartbeatRequestTopic()
		t.TopicID, t.Partitions = tp.Topic, tp.Partitions
		req.Topics = append(req.Topics, t)
	}
	return req
}

// send sends a heartbeat; nil says that it was not answered.
func (p *randomPlay) send(req *kmsg.ConsumerGroupHeartbeatRequest) *kmsg.ConsumerGroupHeartbeatResponse {
	promise := coordinator.Ask(p.stage.shard(), func(m *Machine, t *coordinator.Turn, pr *ConsumerHeartbeatPromise) {
		m.ConsumerHeartbeat(t, Client{ID: "c", Host: "/h", Version: 1}, req, pr)
	})
	resp, err := promise.Wait(p.t.Context(), nil)
	require.NoError(p.t, err)
	return resp
}

// beat sends a heartbeat. If its answer is lost the client does not learn of it, and
// says all that it has to say the next time.
func (p *randomPlay) beat(c *client, lost bool) {
	// First it does what it was told: it gives back, and then reads what is new.
	if c.due != nil {
		c.has, c.due, c.acked = c.due, nil, false
	}
	resp := p.send(c.request())
	if lost {
		c.acked = false
		return
	}
	switch resp.ErrorCode {
	case 0:
		c.epoch, c.acked = resp.MemberEpoch, true
		c.deadline = time.Now().Add(p.stage.consumer.SessionTimeout)
		if resp.Assignment != nil {
			c.due = responded(resp)
			if c.due == nil {
				c.due = assign.Set{}
			}
			// Reading stops at once where it must.
			c.has = c.has.And(c.due)
			c.acked = false
		}
	case kerr.FencedMemberEpoch.Code, kerr.UnknownMemberID.Code:
		c.epoch, c.has, c.due, c.acked = 0, nil, nil, false
	case kerr.GroupMaxSizeReached.Code, kerr.UnreleasedInstanceID.Code, kerr.FencedInstanceID.Code, kerr.GroupIDNotFound.Code:
		p.forget(c)
	default:
		require.Fail(p.t, "unexpected answer", "%v: %s", kerr.ErrorForCode(resp.ErrorCode), *resp.ErrorMessage)
	}
}

// leave has a client go: for good, for a while, or in silence.
func (p *randomPlay) leave(c *client) {
	p.forget(c)
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.MemberEpoch = "g", c.id, epochLeave
	switch n := p.r.IntN(3); {
	case n == 0:
		return
	case n == 1 && c.instance != "":
		req.MemberEpoch = epochStaticLeave
	}
	if c.instance != "" {
		req.InstanceID = &c.instance
	}
	p.send(req)
}

func (p *randomPlay) forget(c *client) {
	p.clients = slices.DeleteFunc(p.clients, func(o *client) bool { return o == c })
}

// checkReaders tells whether two clients read the same partition. Who has been
// silent for a session has stopped reading, as client libraries do.
func (p *randomPlay) checkReaders() {
	readers := map[partitionID]string{}
	for _, c := range p.clients {
		if time.Now().After(c.deadline) {
			c.has, c.due = nil, nil
			continue
		}
		for _, tp := range c.has {
			for _, n := range tp.Partitions {
				at := partitionID{tp.Topic, n}
				require.Empty(p.t, readers[at], "%s and %s read %s/%d", readers[at], c.id, nameOf(tp.Topic), n)
				readers[at] = c.id
			}
		}
	}
}

// settle lets everybody heartbeat in peace: then all is read by those who want it.
func (p *randomPlay) settle() {
	for range 20 {
		for _, c := range slices.Clone(p.clients) {
			p.beat(c, false)
			p.checkReaders()
		}
		<-time.After(3 * time.Second)
	}
	wanted := map[string]bool{}
	for _, c := range p.clients {
		for name := range p.stage.world.Names() {
			if slices.Contains(c.topics, name) || *c.regex != "" && strings.Contains("bc", name) {
				wanted[name] = true
			}
		}
	}
	total, read := 0, 0
	for name := range wanted {
		topic, _ := p.stage.world.Topic(name)
		total += topic.Partitions
	}
	for _, c := range p.clients {
		read += c.has.Len()
	}
	require.Equal(p.t, total, read)
	p.checkReplay()
}

// checkReplay tells whether a coordinator that loads the log knows what the one
// before knew.
func (p *randomPlay) checkReplay() {
	before := p.describe()
	p.stage.lead()
	require.Equal(p.t, before, p.describe())
}

func (p *randomPlay) describe() string {
	p.stage.consumers(&args{Args: &journaltest.Args{}, s: p.stage})
	synctest.Wait()
	p.stage.lines = nil
	p.stage.collect()
	lines := strings.Split(p.stage.lines[0], "\n")
	slices.Sort(lines[1:]) // The order in which members came is not recorded.
	return strings.Join(lines, "\n")
}
