package admin

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/protocol"
)

// describeClientQuotas shows the quotas of the entities that a filter matches.
func (h *Handlers) describeClientQuotas(c *protocol.Call, req *kmsg.DescribeClientQuotasRequest, answer *kmsg.DescribeClientQuotasResponse) {
	if err := checkQuotaFilter(req.Components); err != nil {
		answer.ErrorCode, answer.ErrorMessage = code(c, err)
		return
	}
	answer.ErrorMessage = new(string)
	answer.Entries = []kmsg.DescribeClientQuotasResponseEntry{}
	for entity, quotas := range h.opts.Controller.Image().EachQuota() {
		if matchesQuota(entity, req) {
			answer.Entries = append(answer.Entries, quotaEntry(entity, quotas))
		}
	}
}

// checkQuotaFilter judges a filter, one component after the other.
func checkQuotaFilter(components []kmsg.DescribeClientQuotasRequestComponent) error {
	var seen []string
	for _, f := range components {
		switch {
		case f.EntityType == "":
			return refuse(kerr.InvalidRequest, "the entity type is empty")
		case slices.Contains(seen, f.EntityType):
			return refuse(kerr.InvalidRequest, "the entity type %q is in the filter more than once", clip(f.EntityType))
		case !slices.Contains([]string{meta.QuotaUser, meta.QuotaClientID, meta.QuotaIP}, f.EntityType):
			return refuse(kerr.UnsupportedVersion, "the entity type %q is unknown", clip(f.EntityType))
		case f.MatchType < kmsg.QuotasMatchTypeExact || f.MatchType > kmsg.QuotasMatchTypeAny:
			return refuse(kerr.InvalidRequest, "match type %d is unknown", int8(f.MatchType))
		case f.MatchType == kmsg.QuotasMatchTypeExact && f.Match == nil:
			return refuse(kerr.InvalidRequest, "an exact match of %q needs a name", clip(f.EntityType))
		case f.MatchType != kmsg.QuotasMatchTypeExact && f.Match != nil:
			return refuse(kerr.InvalidRequest, "a name is given for %q, but the match is not exact", clip(f.EntityType))
		}
		seen = append(seen, f.EntityType)
	}
	if slices.Contains(seen, meta.QuotaIP) && len(seen) > 1 {
		return refuse(kerr.InvalidRequest, "Invalid entity filter component combination: ip does not go together with user or client-id")
	}
	return nil
}

// matchesQuota tells whether an entity has all parts that the filter asks for, and,
// if it is strict, no others.
func matchesQuota(e meta.QuotaEntity, req *kmsg.DescribeClientQuotasRequest) bool {
	parts := e.Parts()
	if req.Strict && len(parts) != len(req.Components) {
		return false
	}
	for _, f := range req.Components {
		i := slices.IndexFunc(parts, func(p meta.QuotaPart) bool { return p.Type == f.EntityType })
		if i < 0 {
			return false
		}
		switch p := parts[i]; {
		case f.MatchType == kmsg.QuotasMatchTypeDefault && !p.Default:
			return false
		case f.MatchType == kmsg.QuotasMatchTypeExact && (p.Default || p.Name != *f.Match):
			return false
		}
	}
	return true
}

func quotaEntry(e meta.QuotaEntity, quotas map[string]float64) kmsg.DescribeClientQuotasResponseEntry {
	row := kmsg.NewDescribeClientQuotasResponseEntry()
	for _, p := range e.Parts() {
		part := kmsg.DescribeClientQuotasResponseEntryEntity{Type: p.Type}
		if !p.Default {
			part.Name = &p.Name
		}
		row.Entity = append(row.Entity, part)
	}
	for _, key := range slices.Sorted(maps.Keys(quotas)) {
		row.Values = append(row.Values, kmsg.DescribeClientQuotasResponseEntryValue{Key: key, Value: quotas[key]})
	}
	return row
}
