package admin

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/protocol"
)

// describeAcls tells tools that there is no access control yet; several of
// them look for exactly this code.
func (h *Handlers) describeAcls(c *protocol.Call, _ *kmsg.DescribeACLsRequest, answer *kmsg.DescribeACLsResponse) {
	answer.ErrorCode, answer.ErrorMessage = code(c, refuse(kerr.SecurityDisabled, "no authorizer is configured on the broker"))
}
