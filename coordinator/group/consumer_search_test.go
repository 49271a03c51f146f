package group

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
)

func subscribed(group, member, expression string) *kmsg.ConsumerGroupHeartbeatRequest {
	req := join(group, member)
	req.SubscribedTopicNames, req.SubscribedTopicRegex = nil, &expression
	return req
}

func TestExpressionsThatAreTooComplexAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		defer s.Close()
		for _, expression := range []string{
			strings.Repeat("a{1000}", 50), strings.Repeat("(?:b?){900}", 100), strings.Repeat(`\pL`, 40),
			strings.Repeat(`(?:\w+\d*){1000}x`, 500),
		} {
			require.Equal(t, kerr.InvalidRegularExpression.Code, answered(t, s.beatAs(subscribed("g", "m", expression))).ErrorCode, expression[:20])
		}
		for _, expression := range []string{"a{1000}", `\pL+-\d{1,20}`, strings.Repeat("some-topic-name|", 2000)} {
			require.Zero(t, answered(t, s.beatAs(subscribed("g", "m"+expression[:3], expression))).ErrorCode, expression[:5])
		}
	})
}

// While a large expression goes through many names, the requests of other groups
// are served; what changes meanwhile is seen afterwards.
func TestLongSearchesLetOthersIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		defer s.Close()
		var wanted []string
		for i := range 2000 {
			name := fmt.Sprint("topic-", i)
			s.world.put(name, Topic{ID: idOf(name), Partitions: 1})
			if i%2 == 0 {
				wanted = append(wanted, name)
			}
		}
		wanted = append(wanted, "late")
		resp := answered(t, s.beatAs(subscribed("g", "m", strings.Join(wanted, "|"))))
		require.Zero(t, resp.ErrorCode)
		left := func() (n int) {
			return answered(t, coordinator.Ask(s.shard(), func(m *Machine, _ *coordinator.Turn, p *coordinator.Promise[int]) {
				for _, x := range m.groups["g"].(*Consumer).patterns {
					if x.search != nil {
						n = len(x.search.left)
					}
				}
				p.Keep(n)
			}))
		}
		before := left()
		require.Positive(t, before, "it is not done in one turn")
		s.world.put("late", Topic{ID: idOf("late"), Partitions: 1})
		time.Sleep(2 * searchRest)
		require.Less(t, left(), before)
		require.Positive(t, left(), "nor in two")
		time.Sleep(time.Second)
		require.Zero(t, left())

		beat := func() *kmsg.ConsumerGroupHeartbeatResponse {
			req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
			req.Group, req.MemberID, req.MemberEpoch = "g", "m", resp.MemberEpoch
			resp = answered(t, s.beatAs(req))
			require.Zero(t, resp.ErrorCode)
			time.Sleep(time.Second)
			return resp
		}
		beat()
		last := beat()
		for range 3 {
			if next := beat(); next.Assignment != nil {
				last = next
			}
		}
		require.NotNil(t, last.Assignment)
		require.Len(t, last.Assignment.Topics, len(wanted))
	})
}
