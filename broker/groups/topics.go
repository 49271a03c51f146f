package groups

import (
	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group"
)

// topics is the cluster's metadata as the machines see it.
type topics struct{ set *replica.Set }

// Deleted tells that the topic was deleted, or that its name is another's now.
func (t topics) Deleted(name string, id group.TopicID) bool {
	img := t.set.Image()
	if img == nil || img.TopicByID(id) != nil {
		return false
	}
	return img.Deleted(id) || img.Topic(name) != nil
}

// Forget has the shards delete the offsets of topics that were deleted.
func (h *Handlers) Forget(deleted []*meta.Topic) {
	if len(deleted) == 0 {
		return
	}
	ids := make(map[string]group.TopicID, len(deleted))
	for _, t := range deleted {
		ids[t.Name] = t.ID
	}
	for _, s := range h.runtime.Shards() {
		s.Do(forget{func(name string, id group.TopicID) bool {
			gone, ok := ids[name]
			return ok && (id == gone || id == group.TopicID{})
		}})
	}
}

// forget is a turn that deletes offsets. A shard that is not loaded does it when
// it is.
type forget struct {
	deleted func(name string, id group.TopicID) bool
}

func (f forget) Run(m *group.Machine, t *coordinator.Turn) { m.ForgetTopics(t, f.deleted) }
func (f forget) Fail(error)                                {}
