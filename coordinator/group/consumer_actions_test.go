package group

import (
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group/assign"
)

// world is the cluster that consumer groups see in a script.
type world struct {
	mu      sync.Mutex
	topics  map[string]Topic // guarded by mu
	version int64            // guarded by mu
}

func newWorld() *world { return &world{topics: map[string]Topic{}, version: 1} }

// put makes or changes a topic, or deletes one if it has no partitions. It tells
// whether it was there.
func (w *world) put(name string, t Topic) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, known := w.topics[name]
	w.version++
	if w.topics[name] = t; t.Partitions == 0 {
		delete(w.topics, name)
	}
	return known
}

func (w *world) Topic(name string) (Topic, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, ok := w.topics[name]
	return t, ok
}

func (w *world) Name(id TopicID) (string, bool) {
	name := nameOf(id)
	_, ok := w.Topic(name)
	return name, ok
}

func (w *world) Names() iter.Seq[string] {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Values(slices.Collect(maps.Keys(w.topics)))
}

func (w *world) Version() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.version
}

// idOf is the id of a topic in scripts: its name.
func idOf(name string) (id TopicID) {
	copy(id[:], name)
	return id
}

func nameOf(id TopicID) string { return strings.TrimRight(string(id[:]), "\x00") }

// scriptedConsumers are the settings of scripts.
func scriptedConsumers() *ConsumerSettings {
	return &ConsumerSettings{
		SessionTimeout: 45 * time.Second, HeartbeatInterval: 5 * time.Second, AssignmentInterval: 0,
		MaxSize: 100, Assignors: []string{"uniform", "range"}, Upgrade: true, Downgrade: true,
	}
}

// consumerCommands are those of consumer groups.
func consumerCommands() map[string]func(*stage, *args) {
	return map[string]func(*stage, *args){
		"topic": (*stage).topic, "hb": (*stage).hb, "consumers": (*stage).consumers, "settings": (*stage).settings,
		"cfetch": (*stage).cfetch, "ccommit": (*stage).ccommit, "lead": (*stage).leadSync,
	}
}

// topic NAME PARTITIONS [racks=a+b+c]: it is there with so many partitions; 0 deletes it.
func (s *stage) topic(a *args) {
	name := a.Words[0]
	n, err := strconv.Atoi(a.Words[1])
	require.NoError(s.t, err)
	t := Topic{ID: idOf(name), Partitions: n}
	if racks := a.Str("racks", ""); racks != "" {
		for _, r := range strings.Split(racks, "+") {
			t.Racks = append(t.Racks, []string{r})
		}
	}
	known := s.world.put(name, t)
	comeOrGone, changed := []string{name}, []string(nil)
	if known && n > 0 {
		comeOrGone, changed = changed, comeOrGone
	}
	coordinator.Ask(s.shard(), func(m *Machine, _ *coordinator.Turn, p *coordinator.Promise[bool]) {
		m.TopicsChanged(comeOrGone, changed)
		p.Keep(true)
	})
}

// hb NAME [epoch=] [topics=a+b] [regex=] [owned=a:0+1/b:2] [instance=] [rack=] [assignor=] [rebalance=30s] [id=] [v=1] [group=g]
// joins with epoch=0; a member's own epoch is the default. A join says all that it must.
func (s *stage) hb(a *args) {
	name, x, id := a.who()
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Version = int16(a.Num("v", 1))
	if id == "" && req.Version > 0 {
		id = a.Str("id", name)
	}
	req.Group, req.MemberID, req.MemberEpoch = a.Str("group", "g"), id, int32(a.Num("epoch", int64(x.generation)))
	req.InstanceID, req.RackID, req.ServerAssignor = a.Opt("instance"), a.Opt("rack"), a.Opt("assignor")
	req.SubscribedTopicRegex = a.Opt("regex")
	if v, ok := a.Named["topics"]; ok {
		req.SubscribedTopicNames = []string{}
		if v != "" {
			req.SubscribedTopicNames = strings.Split(v, "+")
		}
	}
	if _, ok := a.Named["rebalance"]; ok || req.MemberEpoch == 0 {
		req.RebalanceTimeoutMillis = int32(a.Duration("rebalance", 30*time.Second).Milliseconds())
	}
	if owned, ok := a.Named["owned"]; ok || req.MemberEpoch == 0 {
		req.Topics = s.owned(owned)
	}
	who := Client{ID: name, Host: "/127.0.0.1", Version: req.Version}
	p := coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *ConsumerHeartbeatPromise) {
		m.ConsumerHeartbeat(t, who, req, p)
	})
	await(s, p, func(resp *kmsg.ConsumerGroupHeartbeatResponse) string {
		if resp.ErrorCode != 0 {
			return fmt.Sprintf("%s: %s: %s", name, errorName(resp.ErrorCode), *resp.ErrorMessage)
		}
		if resp.MemberEpoch > 0 || resp.MemberEpoch == epochStaticLeave {
			x.id, x.generation = *resp.MemberID, resp.MemberEpoch
		}
		line := fmt.Sprintf("%s: epoch %d", name, resp.MemberEpoch)
		if *resp.MemberID != name {
			line += " id=" + *resp.MemberID
		}
		if resp.Assignment != nil {
			line += " has"
			for _, t := range resp.Assignment.Topics {
				line += fmt.Sprintf(" %s%v", nameOf(t.TopicID), t.Partitions)
			}
		}
		return line
	})
}

// owned are partitions as a:0+1/b:2.
func (s *stage) owned(text string) []kmsg.ConsumerGroupHeartbeatRequestTopic {
	list := []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	for _, one := range strings.Split(text, "/") {
		topic, partitions, ok := strings.Cut(one, ":")
		if !ok {
			continue
		}
		t := kmsg.NewConsumerGroupHeartbeatRequestTopic()
		t.TopicID = idOf(topic)
		for _, p := range strings.Split(partitions, "+") {
			n, err := strconv.Atoi(p)
			require.NoError(s.t, err)
			t.Partitions = append(t.Partitions, int32(n))
		}
		list = append(list, t)
	}
	return list
}

// consumers [group]: what ConsumerGroupDescribe shows.
func (s *stage) consumers(a *args) {
	id := "g"
	if len(a.Words) > 0 {
		id = a.Words[0]
	}
	type row = kmsg.ConsumerGroupDescribeResponseGroup
	p := coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *coordinator.Promise[row]) { m.DescribeConsumer(t, id, p) })
	await(s, p, func(g row) string {
		if g.ErrorCode != 0 {
			return fmt.Sprintf("%s: %s: %s", g.Group, errorName(g.ErrorCode), *g.ErrorMessage)
		}
		line := fmt.Sprintf("%s: %s, epoch %d, assigned %d by %s", g.Group, g.State, g.Epoch, g.AssignmentEpoch, g.AssignorName)
		for _, m := range g.Members {
			line += fmt.Sprintf("\n    %s: epoch %d, has%s, target%s", m.MemberID, m.MemberEpoch, showAssignment(m.Assignment), showAssignment(m.TargetAssignment))
			if m.MemberType == classicMember {
				line += ", classic"
			}
			if m.InstanceID != nil {
				line += ", instance " + *m.InstanceID
			}
		}
		return line
	})
}

func showAssignment(a kmsg.Assignment) string {
	line := ""
	for _, t := range a.TopicPartitions {
		line += fmt.Sprintf(" %s%v", t.Topic, t.Partitions)
	}
	if line == "" {
		return " nothing"
	}
	return line
}

// settings [interval=1s] [session=] [max-size=] [policy=disabled|upgrade|downgrade|bidirectional].
func (s *stage) settings(a *args) {
	s.consumer.AssignmentInterval = a.Duration("interval", s.consumer.AssignmentInterval)
	s.consumer.SessionTimeout = a.Duration("session", s.consumer.SessionTimeout)
	s.consumer.MaxSize = int(a.Num("max-size", int64(s.consumer.MaxSize)))
	if policy, ok := a.Named["policy"]; ok {
		s.consumer.Upgrade = policy == "upgrade" || policy == "bidirectional"
		s.consumer.Downgrade = policy == "downgrade" || policy == "bidirectional"
	}
}

// cfetch NAME [epoch=]: an OffsetFetch of a member.
func (s *stage) cfetch(a *args) {
	name, x, id := a.who()
	f := Fetch{Group: a.Str("group", "g"), MemberID: &id, MemberEpoch: int32(a.Num("epoch", int64(x.generation))), All: true}
	p := coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *coordinator.Promise[Fetched]) { m.FetchOffsets(t, f, p) })
	await(s, p, func(got Fetched) string { return name + ": fetched " + errorName(got.Code) })
}

// ccommit NAME topic/0:offset... [epoch=] [v=9]: an OffsetCommit of a member.
func (s *stage) ccommit(a *args) {
	name, x, id := a.who()
	a.Words = a.Words[1:]
	list, _ := s.offsets(a)
	for i := range list {
		list[i].TopicID = idOf(list[i].Topic)
	}
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.Generation = a.Str("group", "g"), id, int32(a.Num("epoch", int64(x.generation)))
	version := int16(a.Num("v", 9))
	p := coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *Codes) {
		m.CommitOffsets(t, Client{Version: version}, req, list, p)
	})
	await(s, p, showCodes(name+": committed"))
}

// showConsumerRecord shows a record of a consumer group, as it is read.
func showConsumerRecord(r coordinator.Record) string {
	kind := int16(binary.BigEndian.Uint16(r.Key))
	id, rest, err := takeString(r.Key[2:])
	if err != nil {
		return err.Error()
	}
	line := fmt.Sprintf("%d %s", kind, id)
	if len(rest) > 0 {
		name, _, err := takeString(rest)
		if err != nil {
			return err.Error()
		}
		line += " " + string(name)
	}
	if r.Value == nil {
		return line + ": gone"
	}
	v, err := readValue(r.Value)
	if err != nil {
		return line + ": " + err.Error()
	}
	line += ":" + showConsumerValue(kind, v)
	if v.Complete() != nil || len(v.Src) > 0 {
		line += " and what is malformed"
	}
	return line
}

func showConsumerValue(kind int16, v *valueReader) string {
	switch kind {
	case keyGroupEpoch:
		line := fmt.Sprintf(" epoch %d", v.Int32())
		if v.tag() != nil {
			line += " with hash"
		}
		return line
	case keyMember:
		return showMemberValue(v)
	case keyTargetEpoch:
		line := fmt.Sprintf(" assigned %d", v.Int32())
		v.tag()
		return line
	case keyTarget:
		line := " target" + showSet(v.set(nil), nil)
		v.tag()
		return line
	case keyCurrent:
		epochs := map[partitionID]int32{}
		note := func(at partitionID, e int32) { epochs[at] = e }
		line := fmt.Sprintf(" epoch %d after %d, state %d,", v.Int32(), v.Int32(), v.Int8())
		line += " has" + showSet(v.set(note), epochs) + ", revoking" + showSet(v.set(note), epochs)
		v.tag()
		return line
	case keyPattern:
		line := fmt.Sprintf(" topics %v", v.names())
		v.Int64()
		v.Int64()
		v.tag()
		return line
	}
	return " unknown"
}

func showMemberValue(v *valueReader) string {
	line := ""
	for _, what := range []string{"instance", "rack"} {
		if s := v.CompactNullableString(); s != nil {
			line += " " + what + " " + *s
		}
	}
	line += fmt.Sprintf(" client %s%s topics %v", v.CompactString(), v.CompactString(), v.names())
	if s := v.CompactNullableString(); s != nil {
		line += " regex " + *s
	}
	line += fmt.Sprintf(" rebalance %dms", v.Int32())
	if s := v.CompactNullableString(); s != nil {
		line += " assignor " + *s
	}
	if c := v.classic(); c != nil {
		line += fmt.Sprintf(" classic(%v", c.session)
		for _, p := range c.protocols {
			line += " " + p.name
		}
		line += ")"
	}
	return line
}

func showSet(s assign.Set, epochs map[partitionID]int32) string {
	if len(s) == 0 {
		return " nothing"
	}
	line := ""
	for _, t := range s {
		line += " " + nameOf(t.Topic) + "["
		for i, p := range t.Partitions {
			if i > 0 {
				line += " "
			}
			line += strconv.Itoa(int(p))
			if e, ok := epochs[partitionID{t.Topic, p}]; ok {
				line += fmt.Sprintf("@%d", e)
			}
		}
		line += "]"
	}
	return line
}

// lead NAME other=t:0+1/u:0... [userdata=x] [group=g]: the SyncGroup of a leader that assigns partitions.
func (s *stage) leadSync(a *args) {
	name, x, id := a.who()
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.Generation = a.Str("group", "g"), id, x.generation
	for _, other := range slices.Sorted(maps.Keys(a.Named)) {
		if s.members[other] == nil {
			continue // Another argument.
		}
		assignment := kmsg.NewConsumerMemberAssignment()
		if data := a.Opt("userdata"); data != nil {
			assignment.UserData = []byte(*data)
		}
		for _, t := range s.owned(a.Named[other]) {
			topic := kmsg.NewConsumerMemberAssignmentTopic()
			topic.Topic, topic.Partitions = nameOf(t.TopicID), t.Partitions
			assignment.Topics = append(assignment.Topics, topic)
		}
		r := kmsg.NewSyncGroupRequestGroupAssignment()
		r.MemberID, r.MemberAssignment = s.members[other].id, assignment.AppendTo(nil)
		req.GroupAssignment = append(req.GroupAssignment, r)
	}
	p := coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *syncPromise) { m.SyncGroup(t, Client{}, req, p) })
	await(s, p, func(resp *kmsg.SyncGroupResponse) string {
		return fmt.Sprintf("%s: synced %s %s", name, errorName(resp.ErrorCode), decodedAssignment(resp.MemberAssignment))
	})
}

// decodedAssignment is what a member of the classic protocol is assigned.
func decodedAssignment(b []byte) string {
	a := kmsg.NewConsumerMemberAssignment()
	if err := a.ReadFrom(b); err != nil {
		return err.Error()
	}
	line := fmt.Sprintf("v%d", a.Version)
	for _, t := range a.Topics {
		slices.Sort(t.Partitions)
		line += fmt.Sprintf(" %s%v", t.Topic, t.Partitions)
	}
	return line
}
