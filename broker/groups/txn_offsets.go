package groups

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group"
)

// OffsetsPartition is the partition of __consumer_offsets that has a group; false
// while there is no such topic.
func (h *Handlers) OffsetsPartition(id string) (int32, bool) {
	t := h.replicas.Topic(OffsetsTopic)
	if t == nil {
		return 0, false
	}
	return coordinator.Partition(id, t.Partitions()), true
}

// CommitTxnOffsets has offsets of partitions that exist committed in a
// transaction. The promise is kept with a code for each of them. check is called
// in the turn before anything else, and may refuse: no marker comes between it and
// the commit.
func (h *Handlers) CommitTxnOffsets(who group.Client, req *kmsg.TxnOffsetCommitRequest, list []group.Offset, check func() error) *group.Codes {
	return coordinator.Ask(h.shard(req.Group), func(m *group.Machine, t *coordinator.Turn, p *group.Codes) {
		if err := check(); err != nil {
			p.Fail(err)
			return
		}
		m.CommitTxnOffsets(t, who, req, list, p)
	})
}

// EndTxn writes the end of a transaction to a partition of __consumer_offsets.
func (h *Handlers) EndTxn(partition int32, marker coordinator.Marker) *coordinator.Promise[struct{}] {
	return coordinator.Ask(h.runtime.Shard(partition), func(m *group.Machine, t *coordinator.Turn, p *coordinator.Promise[struct{}]) {
		m.EndTxn(t, marker, p)
	})
}
