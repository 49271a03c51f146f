package admin

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// quotas are the methods about client quotas.
func quotas() map[string]func(r *rig) {
	return map[string]func(r *rig){
		"AlterClientQuotas":         alterClientQuotas,
		"ValidateAlterClientQuotas": validateClientQuotas,
		"DescribeClientQuotas":      describeClientQuotas,
	}
}

// quotaOf is an entity of types and names; without a name it is the default.
func quotaOf(typesAndNames ...string) kadm.ClientQuotaEntity {
	var e kadm.ClientQuotaEntity
	for i := 0; i < len(typesAndNames); i += 2 {
		c := kadm.ClientQuotaEntityComponent{Type: typesAndNames[i]}
		if name := typesAndNames[i+1]; name != "" {
			c.Name = &name
		}
		e = append(e, c)
	}
	return e
}

// shown are the quotas of entities that have a part of a type and name.
func (r *rig) shown(typ, name string) map[string]map[string]float64 {
	got, err := r.adm.DescribeClientQuotas(r.ctx, false, []kadm.DescribeClientQuotaComponent{
		{Type: typ, MatchName: &name, MatchType: kmsg.QuotasMatchTypeExact},
	})
	require.NoError(r, err)
	out := map[string]map[string]float64{}
	for _, q := range got {
		values := map[string]float64{}
		for _, v := range q.Values {
			values[v.Key] = v.Value
		}
		out[q.Entity.String()] = values
	}
	return out
}

func alterClientQuotas(r *rig) {
	change := func(entity kadm.ClientQuotaEntity, ops ...kadm.AlterClientQuotaOp) {
		got, err := r.adm.AlterClientQuotas(r.ctx, []kadm.AlterClientQuotaEntry{{Entity: entity, Ops: ops}})
		require.NoError(r, err)
		require.Len(r, got, 1)
		require.NoError(r, got[0].Err)
		require.Equal(r, entity, got[0].Entity)
	}
	both := quotaOf("user", "alter", "client-id", "")
	change(quotaOf("user", "alter"), kadm.AlterClientQuotaOp{Key: "producer_byte_rate", Value: 1e6}, kadm.AlterClientQuotaOp{Key: "request_percentage", Value: 12.5})
	change(both, kadm.AlterClientQuotaOp{Key: "controller_mutation_rate", Value: 3})
	require.Equal(r, map[string]map[string]float64{
		"{user=alter}":                      {"producer_byte_rate": 1e6, "request_percentage": 12.5},
		"{user=alter, client-id=<default>}": {"controller_mutation_rate": 3},
	}, r.shown("user", "alter"))
	change(both, kadm.AlterClientQuotaOp{Key: "controller_mutation_rate", Remove: true})
	change(quotaOf("user", "alter"), kadm.AlterClientQuotaOp{Key: "request_percentage", Remove: true}, kadm.AlterClientQuotaOp{Key: "producer_byte_rate", Value: 2e6})
	require.Equal(r, map[string]map[string]float64{"{user=alter}": {"producer_byte_rate": 2e6}}, r.shown("user", "alter"))
	got, err := r.adm.AlterClientQuotas(r.ctx, []kadm.AlterClientQuotaEntry{
		{Entity: quotaOf("user", "alter"), Ops: []kadm.AlterClientQuotaOp{{Key: "connection_creation_rate", Value: 1}}},
		{Entity: quotaOf("ip", "10.1.1.1"), Ops: []kadm.AlterClientQuotaOp{{Key: "connection_creation_rate", Value: 1}}},
	})
	require.NoError(r, err)
	assert.ErrorIs(r, got[0].Err, kerr.InvalidRequest)
	assert.NotEmpty(r, got[0].ErrMessage)
	assert.NoError(r, got[1].Err)
	assert.Len(r, r.shown("ip", "10.1.1.1"), 1)
}

func validateClientQuotas(r *rig) {
	got, err := r.adm.ValidateAlterClientQuotas(r.ctx, []kadm.AlterClientQuotaEntry{
		{Entity: quotaOf("user", "validate"), Ops: []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: 1}}},
		{Entity: quotaOf("user", "validate too"), Ops: []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: -1}}},
	})
	require.NoError(r, err)
	require.Len(r, got, 2)
	assert.NoError(r, got[0].Err)
	assert.ErrorIs(r, got[1].Err, kerr.InvalidRequest)
	assert.Empty(r, r.shown("user", "validate"))
}

func describeClientQuotas(r *rig) {
	_, err := r.adm.AlterClientQuotas(r.ctx, []kadm.AlterClientQuotaEntry{
		{Entity: quotaOf("client-id", ""), Ops: []kadm.AlterClientQuotaOp{{Key: "consumer_byte_rate", Value: 1e9}}},
		{Entity: quotaOf("client-id", "", "user", ""), Ops: []kadm.AlterClientQuotaOp{{Key: "consumer_byte_rate", Value: 2e9}}},
	})
	require.NoError(r, err)
	ask := func(strict bool, match kmsg.QuotasMatchType) kadm.DescribedClientQuotas {
		got, err := r.adm.DescribeClientQuotas(r.ctx, strict, []kadm.DescribeClientQuotaComponent{{Type: "client-id", MatchType: match}})
		require.NoError(r, err)
		return got
	}
	strict := ask(true, kmsg.QuotasMatchTypeDefault)
	require.Len(r, strict, 1)
	require.Equal(r, quotaOf("client-id", ""), strict[0].Entity)
	require.Equal(r, 1e9, strict[0].Values[0].Value)
	require.Len(r, ask(false, kmsg.QuotasMatchTypeDefault), 2)
	require.GreaterOrEqual(r, len(ask(false, kmsg.QuotasMatchTypeAny)), 2)
	_, err = r.adm.DescribeClientQuotas(r.ctx, false, []kadm.DescribeClientQuotaComponent{{Type: "colour", MatchType: kmsg.QuotasMatchTypeAny}})
	require.ErrorIs(r, err, kerr.UnsupportedVersion)
}
