package admin

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/protocol"
)

// Kinds of endpoints that DescribeCluster may be asked for.
const (
	endpointBroker     = 1
	endpointController = 2
)

func (h *Handlers) describeCluster(c *protocol.Call, req *kmsg.DescribeClusterRequest, answer *kmsg.DescribeClusterResponse) {
	answer.EndpointType, answer.ControllerID, answer.ClusterAuthorizedOperations = endpointBroker, -1, notAsked
	if req.Version > 0 && req.EndpointType != endpointBroker {
		err := refuse(kerr.UnsupportedEndpointType, "endpoint type %d is unknown", req.EndpointType)
		if req.EndpointType == endpointController {
			err = refuse(kerr.MismatchedEndpointType, "this is a broker's endpoint, not a controller's")
		}
		answer.ErrorCode, answer.ErrorMessage = code(c, err)
		return
	}
	t := newTopology(h.opts.Controller.Image(), c.Conn.Listener)
	answer.ClusterID, answer.ControllerID = t.image.ClusterID(), t.controller()
	if req.IncludeClusterAuthorizedOperations {
		answer.ClusterAuthorizedOperations = clusterOperations
	}
	for _, b := range t.image.Brokers() {
		e, ok := t.endpoint(b)
		if !ok || b.Fenced && !req.IncludeFencedBrokers {
			continue
		}
		row := kmsg.NewDescribeClusterResponseBroker()
		row.NodeID, row.Host, row.Port, row.Rack, row.IsFenced = b.ID, e.Host, e.Port, rackOf(b), b.Fenced
		answer.Brokers = append(answer.Brokers, row)
	}
}
