package replica

import (
	"errors"
	"fmt"

	"github.com/mainstem/mainstem/broker/config"
	"github.com/mainstem/mainstem/broker/metrics"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/log"
)

// configOfLocked is a topic's configuration. Topics without settings of their own
// share one.
// REQUIRES: mu held.
func (s *Set) configOfLocked(m *meta.Topic) *config.Topic {
	if len(m.Configs) > 0 {
		return s.live.Topic(m.Configs)
	}
	return s.defaults
}

// reconfigureLocked renews the topics' configurations after a setting of the
// broker that they fall back on has changed.
// REQUIRES: mu held.
func (s *Set) reconfigureLocked() error {
	gen := s.live.TopicGeneration()
	if gen == s.configGen && s.defaults != nil {
		return nil
	}
	s.defaults = s.live.Topic(nil)
	var errs []error
	for t := range s.Topics() {
		v := t.view.Load()
		t.config.Store(s.configOfLocked(v.meta))
		for _, p := range v.parts {
			if p != nil {
				errs = append(errs, s.configure(p))
				p.advance()
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s.configGen = gen
	return nil
}

// configure hands the settings that the store needs down to it.
func (s *Set) configure(p *Partition) error {
	c := p.topic.Config()
	p.log.SetRoll(log.Roll{Ms: c.SegmentMs, Bytes: int64(c.SegmentBytes)})
	if d := p.topic.durability(); d != p.log.Durability() {
		if err := s.store.SetDurability(p.log.ID(), d); err != nil {
			return fmt.Errorf("set durability of %s-%d: %w", p.topic.Name, p.index, err)
		}
	}
	return nil
}

// durability is the topic's; the broker's own topics are always synced.
func (t *Topic) durability() log.Durability {
	if t.Config().Durability == config.Async && !t.Internal {
		return log.Async
	}
	return log.Fsync
}

func (s *Set) statsOf(topic string) *metrics.Topic {
	if s.stats == nil {
		return new(metrics.Topic)
	}
	return s.stats.Topic(topic)
}
