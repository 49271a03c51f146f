package group

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group/assign"
)

// TestMembersChangeProtocolsUnderRandomPlay has clients of both protocols in a group
// that may change its kind at any time, while coordinators restart. At no time do two
// of them read the same partition; and when all is quiet every partition has a reader.
func TestMembersChangeProtocolsUnderRandomPlay(t *testing.T) {
	turned := 0
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newMigration(t, seed)
				defer p.play.stage.runtime.Close()
				for range 400 {
					p.act()
					p.checkReaders()
				}
				p.settle()
				if p.kinds[KindClassic] && p.kinds[KindConsumer] {
					turned++
				}
			})
		})
	}
	require.Greater(t, turned, 150, "groups that were of both kinds")
}

// migration is a play with clients of both protocols.
type migration struct {
	play    *randomPlay
	clients []*eitherClient
	kinds   map[Kind]bool // that the group has had
}

// eitherClient is a client that may change its protocol. As a classic one it gives
// back all that it has before it joins again.
type eitherClient struct {
	client
	classic    bool
	generation int32
	join       *joinPromise // waits for its answer
	sync       *syncPromise
	synced     bool // it has an assignment, or had it, in its generation
}

func newMigration(t *testing.T, seed uint64) *migration {
	s := newStage(t)
	s.set.InitialRebalanceDelay = 0
	s.consumer.Upgrade, s.consumer.Downgrade = seed%4 != 0, seed%4 != 1
	if seed%3 == 0 {
		s.consumer.AssignmentInterval = 2 * time.Second
	}
	play := &randomPlay{t: t, stage: s, r: rand.New(rand.NewPCG(seed, 429))}
	play.topic("a", 5)
	return &migration{play: play, kinds: map[Kind]bool{}}
}

func (p *migration) act() {
	r, one := p.play.r, func() *eitherClient { return p.clients[p.play.r.IntN(len(p.clients))] }
	switch n := r.IntN(100); {
	case n < 6 && len(p.clients) < 5:
		p.play.next++
		c := &eitherClient{client: client{topics: []string{"a"}, regex: new(string)}, classic: r.IntN(2) == 0}
		if r.IntN(2) == 0 {
			c.instance = fmt.Sprint("i", p.play.next)
		}
		p.begin(c)
		p.clients = append(p.clients, c)
	case n < 80 && len(p.clients) > 0:
		p.step(one())
	case n < 84 && len(p.clients) > 0:
		p.leave(one())
	case n < 90 && len(p.clients) > 0:
		// A restart with the other protocol. Without a name of its own it leaves first.
		c := one()
		if c.instance == "" {
			p.leave(c)
			p.clients = append(p.clients, c)
		}
		c.classic = !c.classic
		p.begin(c)
	case n < 92:
		p.play.stage.lead()
	default:
		<-time.After(time.Duration(r.IntN(1500)) * time.Millisecond)
	}
	p.note()
}

// note remembers what kind the group is of.
func (p *migration) note() {
	asked := coordinator.Ask(p.play.stage.shard(), func(m *Machine, _ *coordinator.Turn, p *coordinator.Promise[Kind]) {
		if g := m.groups["g"]; g != nil && !g.empty() {
			p.Keep(g.kind())
			return
		}
		p.Keep("")
	})
	kind, err := asked.Wait(p.play.t.Context(), nil)
	require.NoError(p.play.t, err)
	p.kinds[kind] = true
}

// begin has a client start anew: it knows of nothing but its name.
func (p *migration) begin(c *eitherClient) {
	p.play.next++
	c.id, c.epoch, c.has, c.due, c.acked = fmt.Sprint("m", p.play.next), 0, nil, nil, false
	c.join, c.sync, c.synced = nil, nil, false
	if c.classic {
		c.id = ""
	}
}

// step is what a client does next.
func (p *migration) step(c *eitherClient) {
	synctest.Wait()
	switch {
	case !c.classic:
		p.beatNew(c)
	case c.join != nil && c.join.Ready():
		p.joined(c)
	case c.sync != nil && c.sync.Ready():
		p.syncedNow(c)
	case c.join != nil || c.sync != nil:
	case c.synced:
		p.beatClassic(c)
	default:
		p.joinAgain(c)
	}
}

func (p *migration) beatNew(c *eitherClient) {
	p.play.clients = []*client{&c.client}
	p.play.beat(&c.client, false)
	if len(p.play.clients) == 0 {
		p.forget(c) // It was refused.
	}
}

func (p *migration) named(c *eitherClient) *string {
	if c.instance == "" {
		return nil
	}
	return &c.instance
}

func (p *migration) joinAgain(c *eitherClient) {
	c.has, c.synced = nil, false
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.InstanceID, req.ProtocolType = "g", c.id, p.named(c), consumerType
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 10_000, 30_000
	req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: subscription(c.topics)}}
	c.join = coordinator.Ask(p.play.stage.shard(), func(m *Machine, t *coordinator.Turn, p *joinPromise) {
		m.JoinGroup(t, Client{ID: "c", Host: "/h", Version: 7}, req, p)
	})
}

func (p *migration) joined(c *eitherClient) {
	resp, err := c.join.Wait(p.play.t.Context(), nil)
	c.join = nil
	if err != nil {
		return // The coordinator has resigned: it joins again.
	}
	if resp.ErrorCode == kerr.MemberIDRequired.Code {
		c.id = resp.MemberID
		return
	}
	if !p.accepted(c, resp.ErrorCode) {
		return
	}
	c.id, c.generation = resp.MemberID, resp.Generation
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = "g", c.id, p.named(c), c.generation
	req.GroupAssignment = p.deal(resp.Members)
	c.sync = coordinator.Ask(p.play.stage.shard(), func(m *Machine, t *coordinator.Turn, p *syncPromise) {
		m.SyncGroup(t, Client{ID: "c", Host: "/h", Version: 5}, req, p)
	})
}

// deal is what a leader assigns.
func (p *migration) deal(members []kmsg.JoinGroupResponseMember) []kmsg.SyncGroupRequestGroupAssignment {
	var list []kmsg.SyncGroupRequestGroupAssignment
	topic, _ := p.play.stage.world.Topic("a")
	for i := range members {
		a := kmsg.NewConsumerMemberAssignment()
		part := kmsg.NewConsumerMemberAssignmentTopic()
		part.Topic = "a"
		for n := i; n < topic.Partitions; n += len(members) {
			part.Partitions = append(part.Partitions, int32(n))
		}
		a.Topics = append(a.Topics, part)
		list = append(list, kmsg.SyncGroupRequestGroupAssignment{MemberID: members[i].MemberID, MemberAssignment: a.AppendTo(nil)})
	}
	return list
}

func (p *migration) syncedNow(c *eitherClient) {
	resp, err := c.sync.Wait(p.play.t.Context(), nil)
	c.sync = nil
	if err != nil {
		return
	}
	if !p.accepted(c, resp.ErrorCode) {
		return
	}
	var a kmsg.ConsumerMemberAssignment
	if len(resp.MemberAssignment) > 0 {
		require.NoError(p.play.t, a.ReadFrom(resp.MemberAssignment))
	}
	of := map[TopicID][]int32{}
	for _, t := range a.Topics {
		of[idOf(t.Topic)] = t.Partitions
	}
	c.has, c.synced = assign.NewSet(of), true
	p.beatClassic(c) // As what it waited for is some time ago.
}

func (p *migration) beatClassic(c *eitherClient) {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = "g", c.id, p.named(c), c.generation
	asked := coordinator.Ask(p.play.stage.shard(), func(m *Machine, t *coordinator.Turn, p *coordinator.Promise[int16]) { m.Heartbeat(t, req, p) })
	code, err := asked.Wait(p.play.t.Context(), nil)
	require.NoError(p.play.t, err)
	if p.accepted(c, code) {
		c.deadline = time.Now().Add(10 * time.Second)
	}
}

// accepted does what a client does about a code; true says that all is well.
func (p *migration) accepted(c *eitherClient, code int16) bool {
	if code == 0 {
		return true
	}
	c.has, c.synced = nil, false
	switch code {
	case kerr.RebalanceInProgress.Code, kerr.IllegalGeneration.Code:
	case kerr.UnknownMemberID.Code, kerr.FencedInstanceID.Code:
		c.id = "" // What it was called last may not have been recorded.
	default:
		require.Fail(p.play.t, "unexpected answer", "%v", kerr.ErrorForCode(code))
	}
	return false
}

func (p *migration) leave(c *eitherClient) {
	p.forget(c)
	one := kmsg.NewLeaveGroupRequestMember()
	one.MemberID, one.InstanceID = c.id, p.named(c)
	asked := coordinator.Ask(p.play.stage.shard(), func(m *Machine, t *coordinator.Turn, p *coordinator.Promise[Left]) {
		m.LeaveGroup(t, Client{ID: "c"}, "g", []kmsg.LeaveGroupRequestMember{one}, p)
	})
	_, err := asked.Wait(p.play.t.Context(), nil)
	require.NoError(p.play.t, err)
}

func (p *migration) forget(c *eitherClient) {
	p.clients = slices.DeleteFunc(p.clients, func(o *eitherClient) bool { return o == c })
}

func (p *migration) checkReaders() {
	p.play.clients = nil
	for _, c := range p.clients {
		p.play.clients = append(p.play.clients, &c.client)
	}
	p.play.checkReaders()
}

// settle lets everybody do in peace what is to be done. Just before one more leaves,
// and the coordinator restarts.
func (p *migration) settle() {
	if len(p.clients) > 1 {
		p.leave(p.clients[p.play.r.IntN(len(p.clients))])
		p.play.stage.lead()
	}
	for range 40 {
		for _, c := range slices.Clone(p.clients) {
			p.step(c)
			p.checkReaders()
		}
		<-time.After(2500 * time.Millisecond)
	}
	read := 0
	for _, c := range p.clients {
		read += c.has.Len()
	}
	if len(p.clients) > 0 {
		require.Equal(p.play.t, 5, read)
	}
}
