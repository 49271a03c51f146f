package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/mainstem/mainstem/controller/meta"
)

func TestEmbeddedEtcdThatIsFullOfHistoryHealsItself(t *testing.T) {
	t.Parallel()
	log, logs := logged()
	c := register(t, Options{Dir: t.TempDir(), NodeID: 1, Logger: log, quota: 16 << 20})
	r := meta.Resource{Type: meta.ResourceBroker}
	for i := 0; !hasLine(logs, "takes writes again"); i++ {
		require.Less(t, i, 1000, "the quota is not reached")
		require.NoError(t, c.AlterConfigs(t.Context(), r, set("big", strings.Repeat(fmt.Sprint(i%10), 500_000))))
	}
	create(t, c, 100, "after")
	_, lease := c.session.state()
	_, err := c.etcd.Revoke(t.Context(), lease)
	require.NoError(t, err)
	eventually(t, func() bool { b := c.Image().Broker(1); return !b.Fenced && !c.Fenced() }, "leases are granted again")
}

func TestEmbeddedEtcdThatIsFullOfMetadataSaysSo(t *testing.T) {
	t.Parallel()
	log, logs := logged()
	c := register(t, Options{Dir: t.TempDir(), NodeID: 1, Logger: log, quota: 8 << 20})
	var err error
	for i := 0; err == nil; i++ {
		require.Less(t, i, 1000, "the quota is not reached")
		r := meta.Resource{Type: meta.ResourceGroup, Name: fmt.Sprint(i)}
		err = c.AlterConfigs(t.Context(), r, set("big", strings.Repeat("x", 900_000)))
	}
	require.ErrorIs(t, err, ErrNoSpace)
	require.True(t, hasLine(logs, "could not be made smaller"))
	require.False(t, c.Fenced())
}

func TestExternalEtcdThatIsFullIsLeftToItsOperator(t *testing.T) {
	o := external(t)
	log, logs := logged()
	o.Logger = log
	c := open(t, o)
	err := c.commit(t.Context(), func(context.Context) error { return rpctypes.ErrNoSpace })
	require.ErrorIs(t, err, ErrNoSpace)
	require.True(t, hasLine(logs, "etcdctl compact, defrag, alarm disarm"))
}
