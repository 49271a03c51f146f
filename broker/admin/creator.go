package admin

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/mainstem/mainstem/controller"
	"github.com/mainstem/mainstem/controller/meta"
)

// creator makes topics in the background that clients have asked about and that
// do not exist. The clients are told so and ask again.
type creator struct {
	h      *Handlers
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	urgent chan struct{} // Holds one token: do not collect any longer.

	mu      sync.Mutex
	closed  bool
	running bool
	wanted  []string
	pending map[string]bool // wanted, and what is being made.
}

// maxWanted bounds what waits to be made: what is beyond it is asked for again.
const maxWanted = 10_000

// collectFor is how long wishes are collected, so that topics that are asked for
// at once, by one client or by many, are made by one write of the metadata and
// taken in by one image. It is less than the pause after which clients ask
// again, 100 ms in those of most languages, so nobody waits longer for it. Kafka
// takes about as long.
const collectFor = 50 * time.Millisecond

func newCreator(h *Handlers) *creator {
	c := &creator{h: h, pending: map[string]bool{}, urgent: make(chan struct{}, 1)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// want asks for topics. It does not wait.
func (c *creator) want(names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wantLocked(names)
}

// fresh are those of the names that are not on their way already.
func (c *creator) fresh(names []string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return c.pending[name] })
}

// CreateInternal asks for an internal topic to be made, at once: a coordinator
// cannot begin without it. It does not wait.
func (h *Handlers) CreateInternal(name string) {
	c := h.creator
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wantLocked([]string{name})
	if !slices.Contains(c.wanted, name) {
		return // It is being made.
	}
	select {
	case c.urgent <- struct{}{}:
	default:
	}
}

// wantLocked notes wishes.
//
// REQUIRES: mu held.
func (c *creator) wantLocked(names []string) {
	for _, name := range names {
		if !c.pending[name] && len(c.wanted) < maxWanted {
			c.pending[name] = true
			c.wanted = append(c.wanted, name)
		}
	}
	if !c.running && !c.closed && len(c.wanted) > 0 {
		c.running = true
		c.wg.Go(c.run)
	}
}

// run makes what is wanted until nothing is left.
func (c *creator) run() {
	for {
		c.collect()
		batch := c.take()
		if c.ctx.Err() == nil {
			c.build(batch)
		}
		if !c.made(batch) {
			return
		}
	}
}

// collect waits for more wishes.
func (c *creator) collect() {
	timer := time.NewTimer(collectFor)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.urgent:
	case <-c.ctx.Done():
	}
}

// take gives what was collected.
func (c *creator) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	batch := c.wanted
	c.wanted = nil
	select {
	case <-c.urgent: // Its wish is in the batch.
	default:
	}
	return batch
}

// made forgets wishes that were dealt with, and tells whether there are others.
func (c *creator) made(batch []string) (more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range batch {
		delete(c.pending, name)
	}
	c.running = len(c.wanted) > 0 && !c.closed
	return c.running
}

func (c *creator) build(names []string) {
	ctx, cancel := context.WithTimeout(c.ctx, 30*time.Second)
	defer cancel()
	image := c.h.opts.Controller.Image()
	var plans []topicPlan
	start := image.PartitionCount()
	for _, name := range names {
		if image.Colliding(name) != nil {
			continue // Somebody was faster.
		}
		p := c.h.planAutomatic(image, name, start)
		start += len(p.Assignments)
		plans = append(plans, p)
	}
	c.h.commitTopics(ctx, plans)
	for i := range plans {
		if p := &plans[i]; p.err != nil && ctx.Err() == nil {
			c.h.opts.Logger.Warn("topic that a client asked about was not created", zap.String("topic", p.Name), zap.Error(p.err))
		}
	}
}

// close gives up what is being made and waits for that.
func (c *creator) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.wg.Wait()
}

// planAutomatic plans a topic of which only the name is known. Its leaders go
// around the brokers from start.
func (h *Handlers) planAutomatic(image *meta.Image, name string, start int) topicPlan {
	v := h.opts.Live.Values()
	partitions, replicas := v.NumPartitions, v.DefaultReplicationFactor
	p := topicPlan{NewTopic: controller.NewTopic{Name: name}}
	if prefix := internalSettings(name); prefix != "" {
		p.Internal = true
		partitions = h.opts.Live.Int(prefix + ".num.partitions")
		// A small cluster has no room for as many replicas as a large one should have.
		replicas = min(h.opts.Live.Int(prefix+".replication.factor"), max(1, len(candidates(image))))
		p.Configs = h.internalConfigs(name, prefix)
	}
	p.Assignments, p.err = place(candidates(image), partitions, replicas, start)
	return p
}

// internalSettings is the start of the broker configs about an internal topic,
// "" for any other.
func internalSettings(name string) string {
	switch name {
	case consumerOffsets:
		return "offsets.topic"
	case transactionState:
		return "transaction.state.log"
	case shareGroupState:
		return "share.coordinator.state.topic"
	}
	return ""
}

// internalConfigs are the topic configs that an internal topic is made with.
func (h *Handlers) internalConfigs(name, prefix string) map[string]string {
	configs := map[string]string{"cleanup.policy": "compact", "segment.bytes": h.opts.Live.String(prefix + ".segment.bytes")}
	switch name {
	case consumerOffsets:
		configs["compression.type"] = "producer"
	case transactionState:
		configs["compression.type"] = "uncompressed"
		configs["unclean.leader.election.enable"] = "false"
		configs["min.insync.replicas"] = h.opts.Live.String(prefix + ".min.isr")
	case shareGroupState:
		configs["cleanup.policy"] = "delete"
		configs["retention.ms"] = "-1"
		configs["compression.type"] = "producer"
		configs["min.insync.replicas"] = h.opts.Live.String(prefix + ".min.isr")
	}
	return configs
}
