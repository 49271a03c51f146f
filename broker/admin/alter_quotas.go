package admin

import (
	"math"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/mainstem/mainstem/broker/quota"
	"github.com/mainstem/mainstem/controller"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/protocol"
)

// quotaPlan is the change of one entity on its way.
type quotaPlan struct {
	controller.QuotaChange
	asked []kmsg.AlterClientQuotasRequestEntryEntity
	err   error
}

// alterClientQuotas changes the quotas of each entity of a request, those that are
// right together; a wrong one does not affect the others.
func (h *Handlers) alterClientQuotas(c *protocol.Call, req *kmsg.AlterClientQuotasRequest, answer *kmsg.AlterClientQuotasResponse) {
	plans := planQuotas(req.Entries)
	if !req.ValidateOnly {
		h.commitQuotas(c, plans)
	}
	answer.Entries = []kmsg.AlterClientQuotasResponseEntry{}
	for i := range plans {
		row := kmsg.NewAlterClientQuotasResponseEntry()
		row.ErrorCode, row.ErrorMessage = code(c, plans[i].err)
		for _, part := range plans[i].asked {
			row.Entity = append(row.Entity, kmsg.AlterClientQuotasResponseEntryEntity{Type: part.Type, Name: part.Name})
		}
		answer.Entries = append(answer.Entries, row)
	}
}

// planQuotas judges the entries, one plan for each entity.
func planQuotas(entries []kmsg.AlterClientQuotasRequestEntry) []quotaPlan {
	var plans []quotaPlan
	at := map[meta.QuotaEntity]int{}
	for _, e := range entries {
		p := quotaPlan{asked: lastOfEachType(e.Entity)}
		if p.Entity, p.err = quotaEntity(p.asked); p.err != nil {
			plans = append(plans, p)
			continue
		}
		if i, twice := at[p.Entity]; twice {
			plans[i].err = refuse(kerr.InvalidRequest, "the entity is in the request more than once")
			continue
		}
		p.Set, p.Remove, p.err = quotaValues(p.Entity, e.Ops)
		at[p.Entity] = len(plans)
		plans = append(plans, p)
	}
	return plans
}

// lastOfEachType drops the parts of an entity that others of their type stand in
// for: the last one counts.
func lastOfEachType(parts []kmsg.AlterClientQuotasRequestEntryEntity) []kmsg.AlterClientQuotasRequestEntryEntity {
	var kept []kmsg.AlterClientQuotasRequestEntryEntity
	for _, part := range parts {
		i := slices.IndexFunc(kept, func(o kmsg.AlterClientQuotasRequestEntryEntity) bool { return o.Type == part.Type })
		if i < 0 {
			kept = append(kept, part)
		} else {
			kept[i] = part
		}
	}
	return kept
}

// quotaEntity judges whom a change is about.
func quotaEntity(parts []kmsg.AlterClientQuotasRequestEntryEntity) (e meta.QuotaEntity, err error) {
	if len(parts) == 0 {
		return e, refuse(kerr.InvalidRequest, "the entity is empty")
	}
	for _, part := range parts {
		name := meta.DefaultQuota()
		if part.Name != nil {
			name = meta.NamedQuota(*part.Name)
		}
		var known bool
		if e, known = e.With(part.Type, name); !known {
			return e, refuse(kerr.InvalidRequest, "the entity type %q is unknown; known are user, client-id and ip", clip(part.Type))
		}
		if part.Name != nil && *part.Name == "" {
			return e, refuse(kerr.InvalidRequest, "the name of the %s is empty; leave it out for the default", part.Type)
		}
	}
	if !e.IP.Given {
		return e, nil
	}
	if e.User.Given || e.ClientID.Given {
		return e, refuse(kerr.InvalidRequest, "Invalid quota entity combination: ip does not go together with user or client-id")
	}
	if _, err := quota.ParseAddress(e.IP.Name); err != nil && !e.IP.Default {
		return e, refuse(kerr.InvalidRequest, "%q is not a valid IP address", clip(e.IP.Name))
	}
	return e, nil
}

// quotaValues judges what an entity's quotas are to be. To remove what is not there,
// or is not known, is no error.
func quotaValues(e meta.QuotaEntity, ops []kmsg.AlterClientQuotasRequestEntryOp) (set map[string]float64, remove []string, err error) {
	set = map[string]float64{}
	seen := map[string]bool{}
	for _, op := range ops {
		if seen[op.Key] {
			return nil, nil, refuse(kerr.InvalidRequest, "the quota %q is in the request more than once", clip(op.Key))
		}
		seen[op.Key] = true
		if op.Remove {
			remove = append(remove, op.Key)
			continue
		}
		if err := checkQuota(e, op.Key, op.Value); err != nil {
			return nil, nil, err
		}
		set[op.Key] = op.Value
	}
	return set, remove, nil
}

// checkQuota judges one quota that is to be set.
func checkQuota(e meta.QuotaEntity, key string, value float64) error {
	most, whole := math.Inf(1), false
	switch {
	case e.IP.Given && key == quota.ConnectionCreationRate:
		most, whole = math.MaxInt32, true
	case !e.IP.Given && (key == quota.ProducerByteRate || key == quota.ConsumerByteRate):
		most, whole = math.MaxInt64, true
	case !e.IP.Given && (key == quota.RequestPercentage || key == quota.ControllerMutationRate):
	default:
		return refuse(kerr.InvalidRequest, "there is no quota %q of such an entity", clip(key))
	}
	const tolerance = 1e-6
	switch {
	case math.IsNaN(value) || value <= 0:
		return refuse(kerr.InvalidRequest, "the quota %s must be greater than 0", key)
	case value > most:
		return refuse(kerr.InvalidRequest, "the quota %s is too large: at most %.0f", key, most)
	case whole && math.Mod(value, 1) > tolerance:
		return refuse(kerr.InvalidRequest, "the quota %s must be a whole number", key)
	}
	return nil
}

// commitQuotas makes the changes that are right, and logs them.
func (h *Handlers) commitQuotas(c *protocol.Call, plans []quotaPlan) {
	ctx, cancel := deadline(c, defaultTimeoutMs)
	defer cancel()
	var changes []controller.QuotaChange
	for i := range plans {
		if plans[i].err == nil {
			changes = append(changes, plans[i].QuotaChange)
		}
	}
	if len(changes) == 0 {
		return
	}
	err := h.opts.Controller.AlterQuotas(ctx, changes)
	for i := range plans {
		p := &plans[i]
		if p.err != nil {
			continue
		}
		if p.err = err; err == nil {
			h.opts.Logger.Info("quotas changed", zap.String("of", entityText(p.Entity)), zap.Any("set", p.Set), zap.Strings("removed", p.Remove))
		}
	}
}

// entityText names an entity for the log.
func entityText(e meta.QuotaEntity) string {
	var parts []string
	for _, p := range e.Parts() {
		name := "default"
		if !p.Default {
			name = clip(p.Name)
		}
		parts = append(parts, p.Type+" "+name)
	}
	return strings.Join(parts, ", ")
}
