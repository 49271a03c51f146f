package meta

import (
	"fmt"
	"slices"
)

// finishTopics works out which topics differ, on copies, and then puts the copies into the trees.
func (b *builder) finishTopics() error {
	for folded, rec := range b.topics {
		if err := b.topicKey(folded, rec); err != nil {
			return err
		}
	}
	for ref, parts := range b.chunks {
		b.chunk(ref, parts)
	}
	for id, configs := range b.topicConf {
		if t := b.edit(id); t != nil {
			t.Configs = configs
		}
	}
	b.epochs()
	if len(b.touched) > 0 {
		b.store()
	}
	return nil
}

// topicKey takes in a topic's own key: made, grown, deleted, or deleted and made again.
func (b *builder) topicKey(folded string, rec *TopicRecord) error {
	was := b.base.byFolded(folded)
	if was != nil && (rec == nil || rec.ID != was.ID) {
		b.touched[was.ID] = nil
	}
	if rec == nil {
		return nil
	}
	if Fold(rec.Name) != folded || !LegalTopicName(rec.Name) {
		return fmt.Errorf("read key %q: the topic's name is %q: %w", dirTopics+folded, rec.Name, ErrCorrupt)
	}
	t := b.edit(rec.ID)
	if t == nil || was == nil || was.ID != rec.ID {
		t = &Topic{ID: rec.ID}
		b.touched[rec.ID] = t
	}
	t.Name, t.Internal = rec.Name, rec.Internal
	for len(t.Partitions) < rec.Partitions {
		if t.Partitions == nil {
			t.Partitions = make([]Partition, 0, rec.Partitions)
		}
		t.Partitions = append(t.Partitions, Partition{Leader: -1}) // Its chunk fills it.
	}
	t.Partitions = t.Partitions[:rec.Partitions]
	return nil
}

// chunk takes in the states of some partitions. A chunk without a topic is what a deletion leaves for a moment.
func (b *builder) chunk(ref chunkRef, parts []Partition) {
	t := b.edit(ref.id)
	from := ref.n * ChunkPartitions
	if t == nil || from >= len(t.Partitions) {
		return
	}
	to := t.Partitions[from:min(from+ChunkPartitions, len(t.Partitions))]
	n := copy(to, parts)
	for i := n; i < len(to); i++ {
		to[i] = Partition{Leader: -1}
	}
	b.img.resolve(to)
}

// edit gives the copy of a topic that may be changed, or nil if there is no such topic.
func (b *builder) edit(id TopicID) *Topic {
	if t, ok := b.touched[id]; ok {
		return t
	}
	was := b.base.TopicByID(id)
	if was == nil {
		return nil
	}
	t := *was
	t.Partitions = slices.Clone(was.Partitions)
	b.touched[id] = &t
	return &t
}

// epochs raises the epochs of everything that is led by a broker whose openings changed.
func (b *builder) epochs() {
	if len(b.openings) == 0 {
		return
	}
	b.base.byName.Ascend(func(t *Topic) bool {
		if _, ok := b.touched[t.ID]; !ok && slices.ContainsFunc(t.Partitions, b.raised) {
			b.edit(t.ID)
		}
		return true
	})
	for _, t := range b.touched {
		if t != nil {
			b.img.resolve(t.Partitions)
		}
	}
}

func (b *builder) raised(p Partition) bool {
	_, ok := b.openings[p.Leader]
	return ok
}

// store puts the copies into trees that share all else with the trees before.
func (b *builder) store() {
	img := b.img
	img.byName, img.byID, img.folded = b.base.byName.Clone(), b.base.byID.Clone(), b.base.folded.Clone()
	for id := range b.touched {
		if was := b.base.TopicByID(id); was != nil {
			img.byName.Delete(was)
			img.byID.Delete(was)
			img.folded.Delete(foldedName{folded: Fold(was.Name)})
			img.partitions -= len(was.Partitions)
		}
	}
	for _, t := range b.touched {
		if t == nil {
			continue
		}
		img.byName.ReplaceOrInsert(t)
		img.byID.ReplaceOrInsert(t)
		if folded := Fold(t.Name); folded != t.Name {
			img.folded.ReplaceOrInsert(foldedName{folded: folded, name: t.Name})
		}
		img.partitions += len(t.Partitions)
	}
}
