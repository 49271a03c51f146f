package group

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/journaltest"
)

// errorName is the name of a code.
func errorName(code int16) string {
	if code == 0 {
		return "ok"
	}
	var named *kerr.Error
	errors.As(kerr.ErrorForCode(code), &named)
	return named.Message
}

// join NAME [v=9] [group=g] [type=consumer] [protocols=range:t1+t2,sticky] [instance=] [session=10s] [rebalance=60s] [id=].
func (s *stage) join(a *args) {
	name, x, id := a.who()
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version = int16(a.Num("v", 9))
	req.Group, req.MemberID, req.InstanceID = a.Str("group", "g"), id, a.Opt("instance")
	req.ProtocolType = a.Str("type", consumerType)
	req.SessionTimeoutMillis = int32(a.Duration("session", 10*time.Second).Milliseconds())
	req.RebalanceTimeoutMillis = int32(a.Duration("rebalance", time.Minute).Milliseconds())
	for _, p := range strings.Split(a.Str("protocols", "range:t"), ",") {
		if p == "" {
			continue
		}
		protocol, topics, isList := strings.Cut(p, ":")
		r := kmsg.NewJoinGroupRequestProtocol()
		r.Name, r.Metadata = protocol, []byte(topics)
		if isList {
			r.Metadata = subscription(strings.Split(topics, "+"))
		}
		req.Protocols = append(req.Protocols, r)
	}
	who := Client{ID: name, Host: "/127.0.0.1", Version: req.Version}
	p := coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *joinPromise) { m.JoinGroup(t, who, req, p) })
	await(s, p, func(resp *kmsg.JoinGroupResponse) string {
		if resp.ErrorCode == 0 || resp.ErrorCode == kerr.MemberIDRequired.Code {
			x.id = resp.MemberID
		}
		if resp.ErrorCode != 0 {
			return fmt.Sprintf("%s: %s id=%s", name, errorName(resp.ErrorCode), resp.MemberID)
		}
		x.generation = resp.Generation
		line := fmt.Sprintf("%s: joined id=%s generation=%d leader=%s protocol=%s", name, resp.MemberID, resp.Generation, resp.LeaderID, *resp.Protocol)
		if resp.SkipAssignment {
			line += " skip"
		}
		for _, m := range resp.Members {
			line += " +" + m.MemberID
		}
		return line
	})
}

// subscription is a consumer's, of version 0.
func subscription(topics []string) []byte {
	b := []byte{0, 0}
	b = binary.BigEndian.AppendUint32(b, uint32(len(topics)))
	for _, t := range topics {
		b = appendString(b, t)
	}
	return append(b, 0xff, 0xff, 0xff, 0xff)
}

// sync NAME [assign=name:what,name:what] [gen=] [type=] [protocol=] [group=g].
func (s *stage) sync(a *args) {
	name, x, id := a.who()
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.InstanceID = a.Str("group", "g"), id, a.Opt("instance")
	req.Generation = int32(a.Num("gen", int64(x.generation)))
	req.ProtocolType, req.Protocol = a.Opt("type"), a.Opt("protocol")
	for _, one := range strings.Split(a.Str("assign", ""), ",") {
		if member, what, ok := strings.Cut(one, ":"); ok {
			r := kmsg.NewSyncGroupRequestGroupAssignment()
			r.MemberID, r.MemberAssignment = member, []byte(what)
			if m := s.members[member]; m != nil {
				r.MemberID = m.id
			}
			req.GroupAssignment = append(req.GroupAssignment, r)
		}
	}
	p := coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *syncPromise) { m.SyncGroup(t, Client{}, req, p) })
	await(s, p, func(resp *kmsg.SyncGroupResponse) string {
		if resp.ErrorCode != 0 {
			return fmt.Sprintf("%s: %s", name, errorName(resp.ErrorCode))
		}
		if a.Str("show", "") == "partitions" {
			return fmt.Sprintf("%s: synced %s", name, decodedAssignment(resp.MemberAssignment))
		}
		return fmt.Sprintf("%s: synced %q", name, resp.MemberAssignment)
	})
}

// beat NAME [gen=] [instance=] [group=g].
func (s *stage) beat(a *args) {
	name, x, id := a.who()
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.InstanceID = a.Str("group", "g"), id, a.Opt("instance")
	req.Generation = int32(a.Num("gen", int64(x.generation)))
	p := coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *coordinator.Promise[int16]) { m.Heartbeat(t, req, p) })
	await(s, p, func(code int16) string { return name + ": " + errorName(code) })
}

// leave NAME... [instance=] [group=g]; a name that is not known is an id.
func (s *stage) leave(a *args) {
	var members []kmsg.LeaveGroupRequestMember
	for _, name := range a.Words {
		m := kmsg.NewLeaveGroupRequestMember()
		m.MemberID = name
		if x := s.members[name]; x != nil {
			m.MemberID = x.id
		}
		members = append(members, m)
	}
	if len(a.Words) == 0 {
		members = append(members, kmsg.NewLeaveGroupRequestMember())
	}
	members[0].InstanceID = a.Opt("instance")
	p := coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *coordinator.Promise[Left]) {
		m.LeaveGroup(t, Client{}, a.Str("group", "g"), members, p)
	})
	await(s, p, func(left Left) string {
		line := "left: " + errorName(left.Code)
		for _, c := range left.Members {
			line += " " + errorName(c)
		}
		return line
	})
}

// commit [NAME] topic/0:offset... [metadata=] [gen=] [v=] [retention=] [group=g].
func (s *stage) commit(a *args) {
	offsets, name := s.offsets(a)
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version = int16(a.Num("v", 8))
	req.Group, req.MemberID, req.Generation = a.Str("group", "g"), a.Str("id", ""), int32(a.Num("gen", -1))
	if x := s.members[name]; x != nil && name != "" {
		req.MemberID, req.Generation = a.Str("id", x.id), int32(a.Num("gen", int64(x.generation)))
	}
	if d, ok := a.Named["retention"]; ok {
		req.RetentionTimeMillis = s.parse(d).Milliseconds()
	}
	p := coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *Codes) {
		m.CommitOffsets(t, Client{Version: req.Version}, req, offsets, p)
	})
	await(s, p, showCodes("committed"))
}

func showCodes(what string) func([]int16) string {
	return func(codes []int16) string {
		line := what + ":"
		for _, c := range codes {
			line += " " + errorName(c)
		}
		return line
	}
}

// offsets are the arguments topic/partition:offset, and the word that is none.
func (s *stage) offsets(a *args) (list []Offset, name string) {
	for _, w := range a.Words {
		at, offset, ok := strings.Cut(w, ":")
		if !ok {
			name = w
			continue
		}
		p := s.place(at)
		n, err := strconv.ParseInt(offset, 10, 64)
		require.NoError(s.t, err)
		o := Offset{Topic: p.topic, Partition: p.partition, Offset: n, Epoch: int32(a.Num("epoch", -1)), Metadata: a.Opt("metadata")}
		if id := a.Str("topic-id", ""); id != "" {
			o.TopicID[15] = id[0]
		}
		list = append(list, o)
	}
	return list, name
}

func (s *stage) place(text string) place {
	topic, partition, _ := strings.Cut(text, "/")
	n, err := strconv.ParseInt(partition, 10, 32)
	require.NoError(s.t, err)
	return place{topic, int32(n)}
}

// fetch [topic/0...] [stable=1] [topic-id=] [group=g]; without partitions, all.
func (s *stage) fetch(a *args) {
	f := Fetch{Group: a.Str("group", "g"), MemberEpoch: -1, All: len(a.Words) == 0, Stable: a.Num("stable", 0) == 1}
	for _, w := range a.Words {
		at := s.place(w)
		ask := FetchTopic{Name: at.topic, Partitions: []int32{at.partition}}
		if id := a.Str("topic-id", ""); id != "" {
			ask.ID[15] = id[0]
		}
		f.Topics = append(f.Topics, ask)
	}
	p := coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *coordinator.Promise[Fetched]) { m.FetchOffsets(t, f, p) })
	await(s, p, func(got Fetched) string {
		line := "offsets: " + errorName(got.Code)
		for _, t := range got.Topics {
			for _, o := range t.Partitions {
				line += fmt.Sprintf(" %s/%d:%d", t.Name, o.Partition, o.Offset)
				if o.Metadata != "" {
					line += fmt.Sprintf("(%s)", o.Metadata)
				}
				if o.Code != 0 {
					line += " " + errorName(o.Code)
				}
			}
		}
		return line
	})
}

// txn PRODUCER topic/0:offset... [NAME's member with gen=] [group=g].
func (s *stage) txn(a *args) {
	offsets, producer := s.offsets(a)
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.Group, req.MemberID, req.Generation = a.Str("group", "g"), a.Str("id", ""), int32(a.Num("gen", -1))
	if x := s.members[a.Str("as", "")]; x != nil {
		req.MemberID, req.Generation = a.Str("id", x.id), int32(a.Num("gen", int64(x.generation)))
	}
	id, err := strconv.ParseInt(producer, 10, 64)
	require.NoError(s.t, err)
	req.ProducerID = id
	if a.Str("refused", "") != "" {
		s.log.Refuse(kerr.InvalidProducerEpoch)
		defer func() {
			s.shardIdle()
			s.log.Refuse(nil)
		}()
	}
	p := coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *Codes) {
		m.CommitTxnOffsets(t, Client{Version: 3}, req, offsets, p)
	})
	await(s, p, showCodes("staged"))
}

// shardIdle waits until the turns that were asked for are over.
func (s *stage) shardIdle() {
	p := coordinator.Ask(s.shard(), func(_ *Machine, _ *coordinator.Turn, p *coordinator.Promise[bool]) { p.Keep(true) })
	_, err := p.Wait(s.t.Context(), nil)
	require.NoError(s.t, err)
}

// end PRODUCER commit|abort.
func (s *stage) end(a *args) {
	id, err := strconv.ParseInt(a.Words[0], 10, 64)
	require.NoError(s.t, err)
	m := coordinator.Marker{Producer: coordinator.Producer{ID: id}, Commit: a.Words[1] == "commit"}
	p := coordinator.Ask(s.shard(), func(g *Machine, t *coordinator.Turn, p *coordinator.Promise[struct{}]) { g.EndTxn(t, m, p) })
	await(s, p, func(struct{}) string { return "ended" })
}

func (s *stage) list(*args) {
	p := coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *coordinator.Promise[[]Listed]) { m.List(t, p) })
	await(s, p, func(list []Listed) string {
		line := "groups:"
		for _, g := range list {
			line += fmt.Sprintf(" %s(%s,%q,%s)", g.ID, g.Kind, g.ProtocolType, g.State)
		}
		return line
	})
}

// describe [group] [v=6].
func (s *stage) describe(a *args) {
	id := "g"
	if len(a.Words) > 0 {
		id = a.Words[0]
	}
	p := coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *coordinator.Promise[kmsg.DescribeGroupsResponseGroup]) {
		m.DescribeClassic(t, Client{Version: int16(a.Num("v", 6))}, id, p)
	})
	await(s, p, func(g kmsg.DescribeGroupsResponseGroup) string {
		line := fmt.Sprintf("%s: %s %s %q %q", g.Group, errorName(g.ErrorCode), g.State, g.ProtocolType, g.Protocol)
		for _, m := range g.Members {
			line += fmt.Sprintf(" %s(%d bytes, %q)", m.MemberID, len(m.ProtocolMetadata), m.MemberAssignment)
		}
		return line
	})
}

func (s *stage) delete(a *args) {
	p := coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *coordinator.Promise[int16]) { m.DeleteGroup(t, a.Words[0], p) })
	await(s, p, func(code int16) string { return "deleted: " + errorName(code) })
}

// delete-offsets topic/0... [group=g].
func (s *stage) deleteOffsets(a *args) {
	var topics []TopicPartitions
	for _, w := range a.Words {
		at := s.place(w)
		topics = append(topics, TopicPartitions{at.topic, []int32{at.partition}})
	}
	p := coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *coordinator.Promise[OffsetsDeleted]) {
		m.DeleteOffsets(t, a.Str("group", "g"), topics, p)
	})
	await(s, p, func(got OffsetsDeleted) string {
		return showCodes("deleted: " + errorName(got.Code))(got.Topics)
	})
}

// forget topic: it was deleted, while somebody leads or not (unled=1).
func (s *stage) forget(a *args) {
	s.deleted[a.Words[0]] = true
	if a.Num("unled", 0) == 1 {
		return
	}
	coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *coordinator.Promise[bool]) {
		m.ForgetTopics(t, s.Deleted)
	})
}

func (s *stage) advance(a *args) { <-time.After(s.parse(a.Words[0])) }
func (s *stage) restart(*args)   { s.lead() }

// set changes settings.
func (s *stage) change(a *args) {
	s.set.MaxSize = int(a.Num("max-size", int64(s.set.MaxSize)))
	s.set.InitialRebalanceDelay = a.Duration("delay", s.set.InitialRebalanceDelay)
}

// showEntry is a line for each record.
func showEntry(e *journaltest.Entry) []string {
	if e.Marker != nil {
		return []string{fmt.Sprintf("-> marker of %d, commit %t", e.Producer.ID, e.Marker.Commit)}
	}
	var lines []string
	for _, r := range e.Records {
		line := "-> " + showRecord(r)
		if e.Producer != nil {
			line += fmt.Sprintf(" in a transaction of %d", e.Producer.ID)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// showRecord reads a record with kmsg, which knows Kafka's layouts.
func showRecord(r coordinator.Record) string {
	if kind := binary.BigEndian.Uint16(r.Key); kind == keyClassic {
		k, v := kmsg.NewGroupMetadataKey(), kmsg.NewGroupMetadataValue()
		if err := k.ReadFrom(r.Key); err != nil {
			return err.Error()
		}
		if r.Value == nil {
			return fmt.Sprintf("group %s: gone", k.Group)
		}
		if err := v.ReadFrom(r.Value); err != nil {
			return err.Error()
		}
		line := fmt.Sprintf("group %s v%d: %q generation %d", k.Group, v.Version, v.ProtocolType, v.Generation)
		for _, m := range v.Members {
			line += fmt.Sprintf(" %s(%q)", m.MemberID, m.Assignment)
		}
		return line
	}
	if kind := binary.BigEndian.Uint16(r.Key); kind > keyClassic {
		return showConsumerRecord(r)
	}
	k, v := kmsg.NewOffsetCommitKey(), kmsg.NewOffsetCommitValue()
	if err := k.ReadFrom(r.Key); err != nil {
		return err.Error()
	}
	if r.Value == nil {
		return fmt.Sprintf("offset %s %s/%d: gone", k.Group, k.Topic, k.Partition)
	}
	if err := v.ReadFrom(r.Value); err != nil {
		return err.Error()
	}
	line := fmt.Sprintf("offset %s %s/%d v%d: %d", k.Group, k.Topic, k.Partition, v.Version, v.Offset)
	if v.Metadata != "" {
		line += fmt.Sprintf(" %q", v.Metadata)
	}
	return line
}
