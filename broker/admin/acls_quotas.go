package admin

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/protocol"
)

// describeAcls tells tools that there is no access control yet; several of
// them look for exactly this code.
func (h *Handlers) describeAcls(c *protocol.Call, _ *kmsg.DescribeACLsRequest, answer *kmsg.DescribeACLsResponse) {
	answer.ErrorCode, answer.ErrorMessage = code(c, refuse(kerr.SecurityDisabled, "no authorizer is configured on the broker"))
}

// describeClientQuotas judges the filter; there are no quotas yet that could match.
func (h *Handlers) describeClientQuotas(c *protocol.Call, req *kmsg.DescribeClientQuotasRequest, answer *kmsg.DescribeClientQuotasResponse) {
	if err := checkQuotaFilter(req.Components); err != nil {
		answer.ErrorCode, answer.ErrorMessage = code(c, err)
		return
	}
	answer.ErrorMessage = new(string)
	answer.Entries = []kmsg.DescribeClientQuotasResponseEntry{}
}

func checkQuotaFilter(components []kmsg.DescribeClientQuotasRequestComponent) error {
	var seen []string
	for _, f := range components {
		switch {
		case f.EntityType == "":
			return refuse(kerr.InvalidRequest, "the entity type is empty")
		case slices.Contains(seen, f.EntityType):
			return refuse(kerr.InvalidRequest, "the entity type %q is in the filter more than once", clip(f.EntityType))
		case f.MatchType < kmsg.QuotasMatchTypeExact || f.MatchType > kmsg.QuotasMatchTypeAny:
			return refuse(kerr.InvalidRequest, "match type %d is unknown", int8(f.MatchType))
		case f.MatchType == kmsg.QuotasMatchTypeExact && f.Match == nil:
			return refuse(kerr.InvalidRequest, "an exact match of %q needs a name", clip(f.EntityType))
		case f.MatchType != kmsg.QuotasMatchTypeExact && f.Match != nil:
			return refuse(kerr.InvalidRequest, "a name is given for %q, but the match is not exact", clip(f.EntityType))
		case !slices.Contains([]string{"user", "client-id", "ip"}, f.EntityType):
			return refuse(kerr.UnsupportedVersion, "the entity type %q is unknown", clip(f.EntityType))
		}
		seen = append(seen, f.EntityType)
	}
	if slices.Contains(seen, "ip") && len(seen) > 1 {
		return refuse(kerr.InvalidRequest, "ip does not go together with user or client-id")
	}
	return nil
}
