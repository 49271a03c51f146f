package admin

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/broker/config"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/protocol"
)

type alteration = kmsg.IncrementalAlterConfigsRequestResourceConfig

// incrementalAlterConfigs changes the named configs of each resource and leaves
// the others as they are.
func (h *Handlers) incrementalAlterConfigs(c *protocol.Call, req *kmsg.IncrementalAlterConfigsRequest, answer *kmsg.IncrementalAlterConfigsResponse) {
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
			err = h.changeConfigs(ctx, resource, r.Configs, req.ValidateOnly)
		}
		row := kmsg.NewIncrementalAlterConfigsResponseResource()
		row.ResourceType, row.ResourceName = r.ResourceType, r.ResourceName
		row.ErrorCode, row.ErrorMessage = code(c, err)
		answer.Resources = append(answer.Resources, row)
	}
}

func (h *Handlers) changeConfigs(ctx context.Context, r meta.Resource, configs []alteration, validateOnly bool) error {
	if err := checkAlterations(configs); err != nil {
		return err
	}
	if r.Type == resourceLogger {
		if err := h.checkNode(r.Name); err != nil {
			return err
		}
		return h.alterLoggers(configs, validateOnly)
	}
	return h.apply(ctx, r, func(current map[string]string) (map[string]string, error) {
		next := maps.Clone(current)
		if next == nil {
			next = map[string]string{}
		}
		for _, e := range configs {
			if err := alter(r, next, e); err != nil {
				return nil, err
			}
		}
		return next, nil
	}, validateOnly)
}

// checkAlterations judges the form of one resource's changes.
func checkAlterations(configs []alteration) error {
	seen := make(map[string]bool, len(configs))
	for _, e := range configs {
		switch {
		case seen[e.Name]:
			return refuse(kerr.InvalidRequest, "config %q is in the request more than once", clip(e.Name))
		case e.Op < kmsg.IncrementalAlterConfigOpSet || e.Op > kmsg.IncrementalAlterConfigOpSubtract:
			return refuse(kerr.InvalidRequest, "operation %d on config %q is unknown", int8(e.Op), clip(e.Name))
		case e.Op != kmsg.IncrementalAlterConfigOpDelete && e.Value == nil:
			return refuse(kerr.InvalidRequest, "config %q has no value", clip(e.Name))
		}
		seen[e.Name] = true
	}
	return nil
}

// alter makes one change.
func alter(r meta.Resource, configs map[string]string, e alteration) error {
	switch e.Op {
	case kmsg.IncrementalAlterConfigOpSet:
		configs[e.Name] = *e.Value
		return nil
	case kmsg.IncrementalAlterConfigOpDelete:
		if r.Type == meta.ResourceBroker && r.Name == "" && e.Name == "min.insync.replicas" {
			return refuse(kerr.InvalidConfig, "min.insync.replicas of the cluster can be set, not removed")
		}
		delete(configs, e.Name)
		return nil
	}
	d := definition(r.Type, e.Name)
	if d == nil || d.Type != kmsg.ConfigTypeList {
		return refuse(kerr.InvalidConfig, "config %q is no list: it can be set or deleted, not added to or subtracted from", clip(e.Name))
	}
	present, ok := configs[e.Name]
	if !ok {
		present = d.Default
	}
	list := elements(present)
	for _, v := range elements(*e.Value) {
		i := slices.Index(list, v)
		switch {
		case e.Op == kmsg.IncrementalAlterConfigOpAppend && i < 0:
			list = append(list, v)
		case e.Op == kmsg.IncrementalAlterConfigOpSubtract && i >= 0:
			list = slices.Delete(list, i, i+1)
		}
	}
	configs[e.Name] = strings.Join(list, ",")
	return nil
}

// elements splits a list; empty elements do not count.
func elements(s string) []string {
	var list []string
	for _, e := range strings.Split(s, ",") {
		if e = strings.TrimSpace(e); e != "" {
			list = append(list, e)
		}
	}
	return list
}

func definition(t meta.ResourceType, name string) *config.Def {
	switch t {
	case meta.ResourceTopic:
		return config.TopicDef(name)
	case meta.ResourceBroker:
		return config.BrokerDef(name)
	case meta.ResourceGroup:
		return config.GroupDef(name)
	case meta.ResourceClientMetrics:
		return config.ClientMetricsDef(name)
	}
	return nil
}
