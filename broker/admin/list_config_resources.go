package admin

import (
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/protocol"
)

// resourceLogger is the one kind of config resource that is not stored.
const resourceLogger meta.ResourceType = 8

// listed are the kinds of resources in the order of the answer.
var listed = []meta.ResourceType{
	meta.ResourceGroup, meta.ResourceClientMetrics, resourceLogger, meta.ResourceBroker, meta.ResourceTopic,
}

func formatID(id int32) string { return strconv.Itoa(int(id)) }

func (h *Handlers) listConfigResources(c *protocol.Call, req *kmsg.ListConfigResourcesRequest, answer *kmsg.ListConfigResourcesResponse) {
	asked := req.ResourceTypes
	switch {
	case req.Version == 0:
		asked = []int8{meta.ResourceClientMetrics}
	case len(asked) == 0:
		asked = listed
	}
	for _, t := range asked {
		if !slices.Contains(listed, t) {
			answer.ErrorCode, _ = code(c, refuse(kerr.UnsupportedVersion, "resource type %d is unknown", t))
			return
		}
	}
	image := h.opts.Controller.Image()
	add := func(t meta.ResourceType, name string) {
		row := kmsg.NewListConfigResourcesResponseConfigResource()
		row.Type, row.Name = t, name
		answer.ConfigResources = append(answer.ConfigResources, row)
	}
	for _, t := range listed {
		if !slices.Contains(asked, t) {
			continue
		}
		switch t {
		case meta.ResourceTopic:
			for topic := range image.Topics() {
				add(t, topic.Name)
			}
		case meta.ResourceBroker, resourceLogger:
			for _, b := range image.Brokers() {
				if !b.Fenced {
					add(t, formatID(b.ID))
				}
			}
		default:
			for r := range image.Resources(t) {
				add(t, r.Name)
			}
		}
	}
}
