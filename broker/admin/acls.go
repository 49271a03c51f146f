package admin

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/protocol"
)

// There is no access control yet. As on a Kafka without an authorizer, whoever asks
// for it is told so by a code that several tools look for.

func noAuthorizer() error {
	return refuse(kerr.SecurityDisabled, "no authorizer is configured on the broker")
}

func (h *Handlers) describeAcls(c *protocol.Call, _ *kmsg.DescribeACLsRequest, answer *kmsg.DescribeACLsResponse) {
	answer.ErrorCode, answer.ErrorMessage = code(c, noAuthorizer())
}

func (h *Handlers) createAcls(c *protocol.Call, req *kmsg.CreateACLsRequest, answer *kmsg.CreateACLsResponse) {
	for range req.Creations {
		r := kmsg.NewCreateACLsResponseResult()
		r.ErrorCode, r.ErrorMessage = code(c, noAuthorizer())
		answer.Results = append(answer.Results, r)
	}
}

func (h *Handlers) deleteAcls(c *protocol.Call, req *kmsg.DeleteACLsRequest, answer *kmsg.DeleteACLsResponse) {
	for range req.Filters {
		r := kmsg.NewDeleteACLsResponseResult()
		r.ErrorCode, r.ErrorMessage = code(c, noAuthorizer())
		answer.Results = append(answer.Results, r)
	}
}
