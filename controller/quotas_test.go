package controller

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/controller/meta"
)

func TestQuotasAreVisibleAtOnceAndStay(t *testing.T) {
	o := external(t)
	c := register(t, o)
	told := 0
	c.Subscribe(func(_ *meta.Image, d meta.Delta) { told += len(d.QuotasChanged) })
	alice := meta.QuotaEntity{User: meta.NamedQuota("alice"), ClientID: meta.NamedQuota("a/b")}
	ips := meta.QuotaEntity{IP: meta.DefaultQuota()}
	require.NoError(t, c.AlterQuotas(t.Context(), []QuotaChange{
		{Entity: alice, Set: map[string]float64{"producer_byte_rate": 1000, "request_percentage": 12.5}},
		{Entity: ips, Set: map[string]float64{"connection_creation_rate": 5}},
	}))
	require.Equal(t, 2, told)
	require.NoError(t, c.AlterQuotas(t.Context(), []QuotaChange{
		{Entity: alice, Set: map[string]float64{"producer_byte_rate": 2000}, Remove: []string{"request_percentage", "none"}},
	}))
	require.Equal(t, map[string]float64{"producer_byte_rate": 2000}, c.Image().Quotas(alice))
	other := open(t, o)
	require.Equal(t, map[string]float64{"producer_byte_rate": 2000}, other.Image().Quotas(alice))
	require.Equal(t, map[string]float64{"connection_creation_rate": 5}, other.Image().Quotas(ips))
	before := c.Image().Revision()
	same := []QuotaChange{{Entity: alice, Set: map[string]float64{"producer_byte_rate": 2000}, Remove: []string{"gone"}}}
	require.NoError(t, c.AlterQuotas(t.Context(), same))
	require.Equal(t, before, c.Image().Revision(), "nothing is written")
	require.NoError(t, c.AlterQuotas(t.Context(), []QuotaChange{{Entity: alice, Remove: []string{"producer_byte_rate"}}}))
	require.Nil(t, c.Image().Quotas(alice))
}

func TestConcurrentQuotaChangesAreAllKept(t *testing.T) {
	o := external(t)
	clients := []*Client{register(t, o), open(t, o)}
	e := meta.QuotaEntity{User: meta.DefaultQuota()}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			change := []QuotaChange{{Entity: e, Set: map[string]float64{fmt.Sprint(i): float64(i)}}}
			if err := clients[i%2].AlterQuotas(context.Background(), change); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.NoError(t, clients[0].catchUp(t.Context()))
	require.Len(t, clients[0].Image().Quotas(e), 20)
}

func TestMoreQuotasThanOneTransactionHolds(t *testing.T) {
	c := register(t, external(t))
	var changes []QuotaChange
	for i := range 300 {
		name := fmt.Sprint(i) + strings.Repeat("/", 2000) // Three times as long in its key.
		changes = append(changes, QuotaChange{Entity: meta.QuotaEntity{ClientID: meta.NamedQuota(name)}, Set: map[string]float64{"consumer_byte_rate": 1}})
	}
	require.NoError(t, c.AlterQuotas(t.Context(), changes))
	n := 0
	for range c.Image().EachQuota() {
		n++
	}
	require.Equal(t, 300, n)
}
