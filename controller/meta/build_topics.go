package meta

import (
	"fmt"
	"maps"
	"slices"
)

// edited is a topic that differs from the one in the base image.
type edited struct {
	was *Topic // nil = not there
	is  *Topic // a copy that may still be changed; nil = gone
}

// finishTopics works out which topics differ, on copies, and then puts the copies into the trees. A topic is copied only when
// something about it is not as it was.
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
		if t := b.peek(id); t != nil && !maps.Equal(t.Configs, configs) {
			b.edit(t).Configs = configs
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
		b.touched[was.ID] = &edited{was: was}
	}
	if rec == nil {
		return nil
	}
	if Fold(rec.Name) != folded || !LegalTopicName(rec.Name) {
		return fmt.Errorf("read key %q: the topic's name is %q: %w", dirTopics+folded, rec.Name, ErrCorrupt)
	}
	var t *Topic
	switch {
	case was == nil || was.ID != rec.ID:
		t = &Topic{ID: rec.ID}
		b.touched[rec.ID] = &edited{is: t}
	case was.Name == rec.Name && was.Internal == rec.Internal && len(was.Partitions) == rec.Partitions:
		return nil
	default:
		t = b.edit(was)
	}
	t.Name, t.Internal = rec.Name, rec.Internal
	t.Partitions = slices.Grow(t.Partitions, max(rec.Partitions-len(t.Partitions), 0))
	for len(t.Partitions) < rec.Partitions {
		t.Partitions = append(t.Partitions, Partition{Leader: -1}) // Its chunk fills it.
	}
	t.Partitions = t.Partitions[:rec.Partitions]
	return nil
}

// chunk takes in the states of some partitions. A chunk without a topic is what a deletion leaves for a moment.
func (b *builder) chunk(ref chunkRef, parts []Partition) {
	t := b.peek(ref.id)
	from := ref.n * ChunkPartitions
	if t == nil || from >= len(t.Partitions) {
		return
	}
	to := min(from+ChunkPartitions, len(t.Partitions))
	for len(parts) < to-from {
		parts = append(parts, Partition{Leader: -1})
	}
	parts = parts[:to-from]
	b.img.resolve(parts)
	if !equalPartitions(t.Partitions[from:to], parts) {
		copy(b.edit(t).Partitions[from:to], parts)
	}
}

// peek gives a topic as it is by now, to read, or nil if there is none.
func (b *builder) peek(id TopicID) *Topic {
	if e, ok := b.touched[id]; ok {
		return e.is
	}
	return b.base.TopicByID(id)
}

// edit gives the copy of a topic that may be changed.
func (b *builder) edit(t *Topic) *Topic {
	if e, ok := b.touched[t.ID]; ok {
		return e.is
	}
	is := *t
	is.Partitions = slices.Clone(t.Partitions)
	b.touched[t.ID] = &edited{was: t, is: &is}
	return &is
}

// epochs raises the epochs of everything that is led by a broker whose openings changed.
func (b *builder) epochs() {
	if len(b.openings) == 0 {
		return
	}
	for _, e := range b.touched {
		if e.is != nil {
			b.img.resolve(e.is.Partitions)
		}
	}
	b.base.byName.Ascend(func(t *Topic) bool {
		if _, ok := b.touched[t.ID]; !ok && slices.ContainsFunc(t.Partitions, b.isRaised) {
			b.img.resolve(b.edit(t).Partitions)
		}
		return true
	})
}

func (b *builder) isRaised(p Partition) bool { return b.img.epochOf(&p) != p.LeaderEpoch }

// store puts the copies into trees that share all else with the trees before.
func (b *builder) store() {
	img := b.img
	img.byName, img.byID, img.folded = b.base.byName.Clone(), b.base.byID.Clone(), b.base.folded.Clone()
	for _, e := range b.touched {
		if e.was == nil {
			continue
		}
		img.partitions -= len(e.was.Partitions)
		if e.is != nil && e.is.Name == e.was.Name {
			continue // It is replaced.
		}
		img.byName.Delete(e.was)
		img.byID.Delete(e.was)
		img.folded.Delete(foldedName{folded: Fold(e.was.Name)})
	}
	for _, e := range b.touched {
		if e.is == nil {
			continue
		}
		img.byName.ReplaceOrInsert(e.is)
		img.byID.ReplaceOrInsert(e.is)
		if folded := Fold(e.is.Name); folded != e.is.Name {
			img.folded.ReplaceOrInsert(foldedName{folded: folded, name: e.is.Name})
		}
		img.partitions += len(e.is.Partitions)
	}
}
