package groups

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group"
	"github.com/mainstem/mainstem/protocol"
)

// Versions of OffsetFetch from which there is a code for the whole answer, and
// from which many groups may be asked about.
const (
	fetchTopCode = 2
	fetchGroups  = 8
)

// groupFetch is one group of an OffsetFetch on its way.
type groupFetch struct {
	ask     kmsg.OffsetFetchRequestGroup
	promise *coordinator.Promise[group.Fetched]
}

// offsetFetch answers OffsetFetch.
func (h *Handlers) offsetFetch(c *protocol.Call) protocol.Finish {
	req := c.Request.(*kmsg.OffsetFetchRequest)
	asked := req.Groups
	if req.Version < fetchGroups {
		asked = []kmsg.OffsetFetchRequestGroup{singleGroup(req)}
	}
	fetches := make([]groupFetch, len(asked))
	for i := range asked {
		f := h.fetchOf(req, &asked[i])
		fetches[i] = groupFetch{asked[i], coordinator.Ask(h.shard(f.Group),
			func(m *group.Machine, t *coordinator.Turn, p *coordinator.Promise[group.Fetched]) {
				m.FetchOffsets(t, f, p)
			})}
	}
	return func() protocol.Reply {
		resp := req.ResponseKind().(*kmsg.OffsetFetchResponse)
		for i := range fetches {
			got, err := fetches[i].promise.Wait(c.Ctx, c.Draining())
			if err != nil {
				got.Code = code(c, err)
			} else {
				count(c, got.Code)
			}
			row := h.fetchRow(req.Version, &fetches[i].ask, got)
			if req.Version >= fetchGroups {
				resp.Groups = append(resp.Groups, row)
				continue
			}
			fillSingle(resp, &row)
		}
		return protocol.Reply{Msg: resp}
	}
}

// singleGroup is a request of a version that asks about one group.
func singleGroup(req *kmsg.OffsetFetchRequest) kmsg.OffsetFetchRequestGroup {
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = req.Group
	if req.Topics == nil {
		return g
	}
	g.Topics = make([]kmsg.OffsetFetchRequestGroupTopic, len(req.Topics))
	for i := range req.Topics {
		g.Topics[i].Topic, g.Topics[i].Partitions = req.Topics[i].Topic, req.Topics[i].Partitions
	}
	return g
}

// fetchOf is what the machine is asked. Topics of unknown ids are left out.
func (h *Handlers) fetchOf(req *kmsg.OffsetFetchRequest, g *kmsg.OffsetFetchRequestGroup) group.Fetch {
	f := group.Fetch{
		Group: g.Group, MemberID: g.MemberID, MemberEpoch: g.MemberEpoch,
		All: g.Topics == nil && req.Version >= fetchTopCode, Stable: req.RequireStable,
	}
	for i := range g.Topics {
		topic := &g.Topics[i]
		ask := group.FetchTopic{Name: topic.Topic, Partitions: topic.Partitions}
		switch t, err := h.named(req.Version, topic.Topic, topic.TopicID); {
		case err == nil:
			ask.Name, ask.ID = t.Name, t.ID
		case req.Version >= byTopicID:
			continue
		}
		f.Topics = append(f.Topics, ask)
	}
	return f
}

// fetchRow is the answer about one group, in the layout of the newest version.
func (h *Handlers) fetchRow(version int16, ask *kmsg.OffsetFetchRequestGroup, got group.Fetched) kmsg.OffsetFetchResponseGroup {
	row := kmsg.NewOffsetFetchResponseGroup()
	row.Group, row.ErrorCode = ask.Group, got.Code
	if got.Code != 0 {
		if version < fetchTopCode {
			row.Topics = unfetched(ask, got.Code)
		}
		return row
	}
	for i := range got.Topics {
		t := &got.Topics[i]
		if version >= byTopicID && t.ID == (group.TopicID{}) {
			if known := h.replicas.Topic(t.Name); known != nil {
				t.ID = known.ID
			}
		}
		if version >= byTopicID && h.replicas.TopicByID(t.ID) == nil {
			continue // It is gone, or was never named by an id: there is no way to name it.
		}
		out := kmsg.NewOffsetFetchResponseGroupTopic()
		out.Topic, out.TopicID = t.Name, t.ID
		for j := range t.Partitions {
			p := &t.Partitions[j]
			o := kmsg.NewOffsetFetchResponseGroupTopicPartition()
			o.Partition, o.Offset, o.LeaderEpoch, o.Metadata, o.ErrorCode = p.Partition, p.Offset, p.Epoch, &p.Metadata, p.Code
			out.Partitions = append(out.Partitions, o)
		}
		row.Topics = append(row.Topics, out)
	}
	if version >= byTopicID {
		row.Topics = append(row.Topics, h.unknownIDs(ask)...)
	}
	return row
}

// unknownIDs are the topics that were asked about and do not exist.
func (h *Handlers) unknownIDs(ask *kmsg.OffsetFetchRequestGroup) []kmsg.OffsetFetchResponseGroupTopic {
	unknown := kmsg.OffsetFetchRequestGroup{}
	for i := range ask.Topics {
		if h.replicas.TopicByID(ask.Topics[i].TopicID) == nil {
			unknown.Topics = append(unknown.Topics, ask.Topics[i])
		}
	}
	return unfetched(&unknown, kerr.UnknownTopicID.Code)
}

// unfetched gives all that was asked about the same error.
func unfetched(ask *kmsg.OffsetFetchRequestGroup, code int16) []kmsg.OffsetFetchResponseGroupTopic {
	var rows []kmsg.OffsetFetchResponseGroupTopic
	for i := range ask.Topics {
		t := kmsg.NewOffsetFetchResponseGroupTopic()
		t.Topic, t.TopicID = ask.Topics[i].Topic, ask.Topics[i].TopicID
		for _, partition := range ask.Topics[i].Partitions {
			p := kmsg.NewOffsetFetchResponseGroupTopicPartition()
			p.Partition, p.Offset, p.LeaderEpoch, p.Metadata, p.ErrorCode = partition, -1, -1, new(string), code
			t.Partitions = append(t.Partitions, p)
		}
		rows = append(rows, t)
	}
	return rows
}

// fillSingle puts a group into an answer that is about one only.
func fillSingle(resp *kmsg.OffsetFetchResponse, row *kmsg.OffsetFetchResponseGroup) {
	resp.ErrorCode = row.ErrorCode
	for i := range row.Topics {
		t := kmsg.NewOffsetFetchResponseTopic()
		t.Topic = row.Topics[i].Topic
		for _, p := range row.Topics[i].Partitions {
			o := kmsg.NewOffsetFetchResponseTopicPartition()
			o.Partition, o.Offset, o.LeaderEpoch, o.Metadata, o.ErrorCode = p.Partition, p.Offset, p.LeaderEpoch, p.Metadata, p.ErrorCode
			t.Partitions = append(t.Partitions, o)
		}
		resp.Topics = append(resp.Topics, t)
	}
}
