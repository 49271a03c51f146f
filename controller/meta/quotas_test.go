package meta

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// quotaEntities are entities of every shape, with names that could be taken for something else.
func quotaEntities() []QuotaEntity {
	return []QuotaEntity{
		{User: NamedQuota("alice")},
		{User: NamedQuota("default")},
		{User: NamedQuota("a/b=c %2F+ü\x00")},
		{User: DefaultQuota()},
		{ClientID: NamedQuota("c")},
		{ClientID: NamedQuota("c/user")},
		{ClientID: DefaultQuota()},
		{User: NamedQuota("alice"), ClientID: NamedQuota("c")},
		{User: DefaultQuota(), ClientID: NamedQuota("user")},
		{User: DefaultQuota(), ClientID: DefaultQuota()},
		{IP: NamedQuota("::1")},
		{IP: DefaultQuota()},
	}
}

func TestEveryQuotaEntityHasAKeyOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range quotaEntities() {
		key := Keys{}.Quotas(e)
		require.False(t, seen[key], key)
		seen[key] = true
		require.Equal(t, parsedKey{kind: kindQuotas, entity: e}, parseKey(key), key)
	}
}

func TestKeysThatAreNoQuotaEntityAreLeftToLaterVersions(t *testing.T) {
	for _, key := range []string{"", "user=%zz", "colour=red", "client-id=c/user=u", "user=a/user=b", "user=a/", "user=a b"} {
		require.Equal(t, kindUnknown, parseKey(dirQuotas+key).kind, key)
	}
}

func TestQuotasAreShownAndWhatChangedIsTold(t *testing.T) {
	var k Keys
	e := QuotaEntity{User: NamedQuota("alice"), ClientID: DefaultQuota()}
	o := QuotaEntity{IP: DefaultQuota()}
	first, d := step(t, Empty(),
		Change{Key: k.Quotas(e), Value: EncodeQuotas(map[string]float64{"producer_byte_rate": 1})},
		Change{Key: k.Quotas(o), Value: EncodeQuotas(map[string]float64{"connection_creation_rate": 5})})
	require.ElementsMatch(t, []QuotaEntity{e, o}, d.QuotasChanged)
	require.False(t, d.IsEmpty())
	second, d := step(t, first,
		Change{Key: k.Quotas(e), Value: EncodeQuotas(map[string]float64{"producer_byte_rate": 1})},
		Change{Key: k.Quotas(o), Deleted: true})
	require.Equal(t, []QuotaEntity{o}, d.QuotasChanged)
	require.Nil(t, second.Quotas(o))
	require.Equal(t, map[string]float64{"connection_creation_rate": 5}, first.Quotas(o))
	require.Equal(t, map[string]float64{"producer_byte_rate": 1}, second.Quotas(e))
	back := Diff(second, first)
	require.Equal(t, []QuotaEntity{o}, back.QuotasChanged)
}

func TestPartsOfAQuotaEntityComeInOrder(t *testing.T) {
	var types []string
	for _, p := range (QuotaEntity{ClientID: NamedQuota("c"), User: DefaultQuota(), IP: NamedQuota("i")}).Parts() {
		types = append(types, p.Type)
	}
	require.Equal(t, "user client-id ip", strings.Join(types, " "))
	_, ok := QuotaEntity{}.With("colour", DefaultQuota())
	require.False(t, ok)
}

func TestQuotaEntitiesAreOrdered(t *testing.T) {
	all := quotaEntities()
	for i, a := range all {
		for j, b := range all {
			require.Equal(t, i == j, !a.less(b) && !b.less(a), "%v %v", a, b)
		}
	}
	slices.SortFunc(all, func(a, b QuotaEntity) int {
		if a.less(b) {
			return -1
		}
		return 1
	})
	require.Equal(t, QuotaEntity{User: DefaultQuota(), ClientID: DefaultQuota()}, all[0])
	require.Equal(t, QuotaEntity{IP: NamedQuota("::1")}, all[len(all)-1])
}
