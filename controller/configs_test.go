package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/controller/meta"
)

// set is a change that sets one config.
func set(key, value string) func(map[string]string) (map[string]string, error) {
	return func(cur map[string]string) (map[string]string, error) {
		next := maps.Clone(cur)
		if next == nil {
			next = map[string]string{}
		}
		next[key] = value
		return next, nil
	}
}

func TestConfigsOfEveryResource(t *testing.T) {
	o := external(t)
	c := register(t, o)
	create(t, c, 1, "t")
	for _, r := range []meta.Resource{
		{Type: meta.ResourceTopic, Name: "t"},
		{Type: meta.ResourceBroker, Name: "1"},
		{Type: meta.ResourceBroker},
		{Type: meta.ResourceGroup, Name: "g/1 ü"},
		{Type: meta.ResourceClientMetrics, Name: "cm"},
	} {
		require.NoError(t, c.AlterConfigs(t.Context(), r, set("a", "1")))
		require.NoError(t, c.AlterConfigs(t.Context(), r, set("b", "")))
		require.Equal(t, map[string]string{"a": "1", "b": ""}, c.Image().Configs(r))
		other := open(t, o)
		require.Equal(t, map[string]string{"a": "1", "b": ""}, other.Image().Configs(r))
		if r.Type != meta.ResourceTopic {
			found := false
			for x := range c.Image().Resources(r.Type) {
				found = found || x == r
			}
			require.True(t, found)
		}
		empty := func(map[string]string) (map[string]string, error) { return nil, nil }
		require.NoError(t, c.AlterConfigs(t.Context(), r, empty))
		require.Empty(t, c.Image().Configs(r))
		require.NoError(t, c.AlterConfigs(t.Context(), r, empty))
	}
	require.ErrorIs(t, c.AlterConfigs(t.Context(), meta.Resource{Type: 8, Name: "1"}, set("a", "b")), kerr.InvalidRequest)
	require.ErrorIs(t, c.AlterConfigs(t.Context(), meta.Resource{Type: meta.ResourceTopic, Name: "no"}, set("a", "b")), kerr.UnknownTopicOrPartition)
}

func TestConcurrentConfigChangesAreAllKept(t *testing.T) {
	o := external(t)
	clients := []*Client{register(t, o), open(t, o)}
	r := meta.Resource{Type: meta.ResourceBroker}
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			if err := clients[i%2].AlterConfigs(context.Background(), r, set(fmt.Sprint(i), "x")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.NoError(t, clients[0].catchUp(t.Context()))
	require.Len(t, clients[0].Image().Configs(r), 30)
}

func TestErrorOfAConfigChangeIsReturnedAndNothingIsWritten(t *testing.T) {
	c := register(t, external(t))
	r := meta.Resource{Type: meta.ResourceBroker}
	require.NoError(t, c.AlterConfigs(t.Context(), r, set("a", "1")))
	before := c.Image().Revision()
	bad := errors.New("bad value")
	require.Equal(t, bad, c.AlterConfigs(t.Context(), r, func(map[string]string) (map[string]string, error) { return nil, bad }))
	require.ErrorIs(t, c.AlterConfigs(t.Context(), r, set("big", strings.Repeat("x", 2<<20))), kerr.InvalidConfig)
	require.NoError(t, c.AlterConfigs(t.Context(), r, set("a", "1")))
	require.Equal(t, before, c.Image().Revision())
	require.Equal(t, map[string]string{"a": "1"}, c.Image().Configs(r))
}

func TestConfigsOfADeletedTopicAreNotInherited(t *testing.T) {
	c := register(t, external(t))
	topic := create(t, c, 1, "t")[0]
	r := meta.Resource{Type: meta.ResourceTopic, Name: "t"}
	inside := func(cur map[string]string) (map[string]string, error) {
		if cur == nil { // The first call: the topic goes while its configs are being changed.
			if err := c.DeleteTopics(context.Background(), []meta.TopicID{topic.ID})[0]; err != nil {
				return nil, err
			}
		}
		return map[string]string{"a": "1"}, nil
	}
	require.ErrorIs(t, c.AlterConfigs(t.Context(), r, inside), kerr.UnknownTopicOrPartition)
	create(t, c, 1, "t")
	require.Nil(t, c.Image().Topic("t").Configs)
}
