package group

import (
	"maps"
	"slices"

	"github.com/mainstem/mainstem/coordinator"
)

// expire forgets offsets that were kept for long enough, and groups that have
// neither members nor offsets.
func (m *Machine) expire(t *coordinator.Turn) {
	for _, id := range slices.Collect(maps.Keys(m.groups)) {
		m.expireGroup(t, id)
	}
	t.Set(&m.expiry, t.Now().Add(m.settings().OffsetRetentionCheck))
}

func (m *Machine) expireGroup(t *coordinator.Turn, id string) {
	g := m.groups[id]
	if since, ok := g.offsetsAge(); ok && m.offsets[id] != nil {
		now, retention := t.NowMillis(), m.settings().OffsetRetention.Milliseconds()
		for _, at := range m.offsets[id].expired(now-retention, now, millisOf(since), g.reads) {
			m.dropOffset(t, id, at)
		}
	}
	if m.offsets[id] == nil && g.empty() {
		m.dropGroup(t, id)
	}
}

// expired are the partitions whose offsets are from before oldest, or to go by
// now. since, unless it is -1, counts instead of the time of each commit. What
// members read stays, and what a transaction holds.
func (o *offsets) expired(oldest, now, since int64, reads func(topic string) bool) []place {
	var out []place
	for topic, parts := range o.topics {
		if reads(topic) {
			continue
		}
		for partition, c := range parts {
			from := c.at
			if since >= 0 {
				from = since
			}
			over := from <= oldest
			if c.expires >= 0 {
				over = c.expires <= now
			}
			if over && !o.isPending(topic, partition) {
				out = append(out, place{topic, partition})
			}
		}
	}
	return out
}
