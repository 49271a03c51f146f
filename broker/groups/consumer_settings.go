package groups

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mainstem/mainstem/broker/config"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/coordinator/group"
)

// consumerSettings are those of consumer groups, and the bounds of what single
// groups may have of their own.
type consumerSettings struct {
	group.ConsumerSettings
	disabled                       bool // the protocol is not served
	session, heartbeat, assignment bounds
}

type bounds struct{ low, high time.Duration }

// Policies of moving groups with members from one protocol to the other.
const (
	policyBoth      = "bidirectional"
	policyUpgrade   = "upgrade"
	policyDowngrade = "downgrade"
)

func readConsumerSettings(l *config.Live) *consumerSettings {
	policy := l.String("group.consumer.migration.policy")
	is := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(policy, name) })
	}
	between := func(name string) bounds {
		return bounds{l.Millis("group.consumer.min." + name), l.Millis("group.consumer.max." + name)}
	}
	return &consumerSettings{
		ConsumerSettings: group.ConsumerSettings{
			SessionTimeout:     l.Millis("group.consumer.session.timeout.ms"),
			HeartbeatInterval:  l.Millis("group.consumer.heartbeat.interval.ms"),
			AssignmentInterval: l.Millis("group.consumer.assignment.interval.ms"),
			MaxSize:            l.Int("group.consumer.max.size"),
			Assignors:          l.List("group.consumer.assignors"),
			Upgrade:            is(policyBoth, policyUpgrade),
			Downgrade:          is(policyBoth, policyDowngrade),
		},
		disabled:   !slices.Contains(l.List("group.coordinator.rebalance.protocols"), "consumer"),
		session:    between("session.timeout.ms"),
		heartbeat:  between("heartbeat.interval.ms"),
		assignment: between("assignment.interval.ms"),
	}
}

// withoutConsumers tells whether the protocol of consumer groups is not served,
// by this broker's settings or by the cluster's features.
func (h *Handlers) withoutConsumers() bool {
	img := h.replicas.Image()
	return h.consumers.Load().disabled || img != nil && img.Level(meta.GroupVersion) < 1
}

// consumerOf are the settings of one group.
func (h *Handlers) consumerOf(id string) *group.ConsumerSettings {
	all, img := h.consumers.Load(), h.replicas.Image()
	if img == nil {
		return &all.ConsumerSettings
	}
	return all.with(img.Configs(meta.Resource{Type: meta.ResourceGroup, Name: id}))
}

// with are the settings of a group that has some of its own.
func (s *consumerSettings) with(own map[string]string) *group.ConsumerSettings {
	if len(own) == 0 {
		return &s.ConsumerSettings
	}
	of := s.ConsumerSettings
	override(&of.SessionTimeout, own["consumer.session.timeout.ms"], s.session)
	override(&of.HeartbeatInterval, own["consumer.heartbeat.interval.ms"], s.heartbeat)
	override(&of.AssignmentInterval, own["consumer.assignment.interval.ms"], s.assignment)
	return &of
}

// override takes a group's own setting, if it has one. It was checked when it was
// set; the bounds may have moved since.
func override(setting *time.Duration, text string, b bounds) {
	if n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32); err == nil {
		*setting = min(max(time.Duration(n)*time.Millisecond, b.low), b.high)
	}
}
