package admin

import (
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/broker/config"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/protocol"
)

func (h *Handlers) describeConfigs(c *protocol.Call, req *kmsg.DescribeConfigsRequest, answer *kmsg.DescribeConfigsResponse) {
	image := h.opts.Controller.Image()
	for _, r := range req.Resources {
		row := kmsg.NewDescribeConfigsResponseResource()
		row.ResourceType, row.ResourceName = r.ResourceType, r.ResourceName
		entries, err := h.describe(image, r)
		if err != nil {
			row.ErrorCode, row.ErrorMessage = code(c, err)
		} else {
			row.ErrorMessage = new(string)
			row.Configs = choose(entries, r.ConfigNames, req)
		}
		answer.Resources = append(answer.Resources, row)
	}
}

// choose keeps the entries of the names asked for, all if none were, and what
// was asked for of them.
func choose(entries []config.Entry, names []string, req *kmsg.DescribeConfigsRequest) []config.Entry {
	chosen := entries[:0]
	for _, e := range entries {
		if len(names) > 0 && !slices.Contains(names, e.Name) {
			continue
		}
		if !req.IncludeSynonyms {
			e.ConfigSynonyms = nil
		}
		if !req.IncludeDocumentation && e.Source != kmsg.ConfigSourceDynamicBrokerLoggerConfig {
			e.Documentation = nil
		}
		chosen = append(chosen, e)
	}
	return chosen
}

func (h *Handlers) describe(image *meta.Image, r kmsg.DescribeConfigsRequestResource) ([]config.Entry, error) {
	name := r.ResourceName
	switch meta.ResourceType(r.ResourceType) {
	case meta.ResourceTopic:
		if err := checkTopicName(name); err != nil {
			return nil, err
		}
		topic := image.Topic(name)
		if topic == nil {
			return nil, refuse(kerr.UnknownTopicOrPartition, "topic %q does not exist", name)
		}
		return h.opts.Live.DescribeTopic(topic.Configs), nil
	case meta.ResourceBroker:
		if name == "" {
			return h.opts.Live.DescribeCluster(), nil
		}
		if err := h.checkNode(name); err != nil {
			return nil, err
		}
		return h.opts.Live.DescribeBroker(), nil
	case resourceLogger:
		if err := h.checkNode(name); err != nil {
			return nil, err
		}
		return h.describeLoggers(), nil
	case meta.ResourceGroup:
		if name == "" {
			return nil, refuse(kerr.InvalidRequest, "the group's name is empty")
		}
		return h.opts.Live.DescribeGroup(image.Configs(meta.Resource{Type: meta.ResourceGroup, Name: name})), nil
	case meta.ResourceClientMetrics:
		if name == "" {
			return nil, refuse(kerr.InvalidRequest, "the subscription's name is empty")
		}
		return config.DescribeClientMetrics(image.Configs(meta.Resource{Type: meta.ResourceClientMetrics, Name: name})), nil
	}
	return nil, refuse(kerr.InvalidRequest, "resource type %d is unknown", int8(r.ResourceType))
}

// checkNode takes this broker's id and no other: others answer for themselves.
func (h *Handlers) checkNode(name string) error {
	id, err := strconv.ParseInt(name, 10, 32)
	switch {
	case err != nil:
		return refuse(kerr.InvalidRequest, "a broker's name is its number, not %q", clip(name))
	case int32(id) != h.opts.NodeID:
		return refuse(kerr.InvalidRequest, "this is broker %d; ask broker %d itself", h.opts.NodeID, id)
	}
	return nil
}
