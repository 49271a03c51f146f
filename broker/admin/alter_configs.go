package admin

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/mainstem/mainstem/broker/config"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/protocol"
)

// change turns a resource's configs into what they are to be. It does not
// touch its argument.
type change func(current map[string]string) (map[string]string, error)

// alterConfigs replaces the whole set of each resource's configs: what is not
// named goes back to its default.
func (h *Handlers) alterConfigs(c *protocol.Call, req *kmsg.AlterConfigsRequest, answer *kmsg.AlterConfigsResponse) {
	ctx, cancel := deadline(c, defaultTimeoutMs)
	defer cancel()
	times := map[meta.Resource]int{}
	for _, r := range req.Resources {
		times[meta.Resource{Type: int8(r.ResourceType), Name: r.ResourceName}]++
	}
	for _, r := range req.Resources {
		resource := meta.Resource{Type: int8(r.ResourceType), Name: r.ResourceName}
		err := errTwice
		if times[resource] == 1 {
			err = h.replaceConfigs(ctx, resource, r.Configs, req.ValidateOnly)
		}
		row := kmsg.NewAlterConfigsResponseResource()
		row.ResourceType, row.ResourceName = r.ResourceType, r.ResourceName
		row.ErrorCode, row.ErrorMessage = code(c, err)
		answer.Resources = append(answer.Resources, row)
	}
}

var errTwice = refuse(kerr.InvalidRequest, "the resource is in the request more than once")

func (h *Handlers) replaceConfigs(ctx context.Context, r meta.Resource, configs []kmsg.AlterConfigsRequestResourceConfig, validateOnly bool) error {
	next := make(map[string]string, len(configs))
	for _, e := range configs {
		if _, ok := next[e.Name]; ok {
			return refuse(kerr.InvalidRequest, "config %q is in the request more than once", clip(e.Name))
		}
		if e.Value == nil {
			return refuse(kerr.InvalidRequest, "config %q has no value", clip(e.Name))
		}
		next[e.Name] = *e.Value
	}
	if r.Type == resourceLogger {
		return unknownType(r.Type)
	}
	return h.apply(ctx, r, func(map[string]string) (map[string]string, error) { return maps.Clone(next), nil }, validateOnly)
}

func unknownType(t meta.ResourceType) error {
	return refuse(kerr.InvalidRequest, "resource type %d is unknown, or its configs cannot be changed this way", t)
}

// apply changes a stored resource's configs, or only looks whether it could.
func (h *Handlers) apply(ctx context.Context, r meta.Resource, alter change, validateOnly bool) error {
	if err := h.checkResource(r); err != nil {
		return err
	}
	var before, after map[string]string // Of the last try, for the log.
	judged := func(current map[string]string) (map[string]string, error) {
		next, err := alter(current)
		if err != nil {
			return nil, err
		}
		if err := h.judge(r, next); err != nil {
			return nil, err
		}
		before, after = current, next
		return next, nil
	}
	image := h.opts.Controller.Image()
	topic := image.Topic(r.Name)
	if r.Type == meta.ResourceTopic && topic == nil {
		if _, err := judged(nil); err != nil {
			return err
		}
		return refuse(kerr.UnknownTopicOrPartition, "topic %q does not exist", r.Name)
	}
	if validateOnly {
		current := image.Configs(r)
		if r.Type == meta.ResourceTopic {
			current = topic.Configs
		}
		_, err := judged(current)
		return err
	}
	if err := h.opts.Controller.AlterConfigs(ctx, r, judged); err != nil {
		return err
	}
	h.opts.Logger.Info("configs changed", zap.String("of", kindOf[r.Type]), zap.String("name", r.Name),
		zap.Strings("changes", differences(r.Type, before, after)))
	return nil
}

// kindOf names the resources whose configs are stored.
var kindOf = map[meta.ResourceType]string{
	meta.ResourceTopic: "topic", meta.ResourceBroker: "broker", meta.ResourceGroup: "group", meta.ResourceClientMetrics: "client metrics",
}

// differences are the lines that a change leaves in the log: key=value for what
// was set, -key for what went. What is or may be a secret is not shown.
func differences(t meta.ResourceType, before, after map[string]string) []string {
	lines := []string{}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if was, ok := before[name]; ok && was == after[name] {
			continue
		}
		shown := "[hidden]"
		if d := definition(t, name); d != nil && !d.Sensitive() {
			shown = clip(after[name])
		}
		lines = append(lines, name+"="+shown)
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, ok := after[name]; !ok {
			lines = append(lines, "-"+name)
		}
	}
	return lines
}

// checkResource judges whose configs are to be changed.
func (h *Handlers) checkResource(r meta.Resource) error {
	switch r.Type {
	case meta.ResourceTopic:
		if r.Name == "" {
			return refuse(kerr.InvalidRequest, "the topic's name is empty: there are no configs for all topics, see the broker's")
		}
		return checkTopicName(r.Name)
	case meta.ResourceBroker:
		if r.Name == "" {
			return nil
		}
		return h.checkNode(r.Name)
	case meta.ResourceGroup, meta.ResourceClientMetrics:
		if r.Name == "" {
			return refuse(kerr.InvalidRequest, "the resource's name is empty")
		}
		return nil
	}
	return unknownType(r.Type)
}

// judge checks the whole set of configs that a resource would have.
func (h *Handlers) judge(r meta.Resource, next map[string]string) error {
	var err error
	kind := kerr.InvalidConfig
	switch r.Type {
	case meta.ResourceTopic:
		err = h.opts.Live.ValidateTopic(next)
	case meta.ResourceGroup:
		err = h.opts.Live.ValidateGroup(next)
	case meta.ResourceClientMetrics:
		if err = config.ValidateClientMetrics(next); errors.Is(err, config.ErrUnknown) {
			kind = kerr.InvalidRequest
		}
	case meta.ResourceBroker:
		scope := config.ThisBroker
		if r.Name == "" {
			scope = config.AllBrokers
		}
		if err = h.opts.Live.ValidateBroker(scope, next); !errors.Is(err, config.ErrClusterOnly) {
			kind = kerr.InvalidRequest
		}
	}
	if err != nil {
		return invalid(kind, err)
	}
	return nil
}
