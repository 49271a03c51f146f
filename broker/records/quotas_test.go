package records

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/broker/quota"
	"github.com/mainstem/mainstem/broker/replica/replicatest"
	"github.com/mainstem/mainstem/controller/meta"
)

// hold sets quotas of the default client id, and serves with them.
func (r *rig) hold(quotas map[string]float64) {
	r.t.Helper()
	w := quota.Window{Samples: 11, Length: time.Second}
	r.quotas = quota.New(quota.Options{Clients: w, Mutations: w})
	key := meta.Keys{}.Quotas(meta.QuotaEntity{ClientID: meta.DefaultQuota()})
	img, _, err := meta.Apply(meta.Empty(), 1, []meta.Change{{Key: key, Value: meta.EncodeQuotas(quotas), ModRevision: 1}})
	require.NoError(r.t, err)
	r.quotas.Apply(img)
	r.handle()
}

func TestProduceBeyondTheQuotaIsStoredAndThrottled(t *testing.T) {
	r := newRig(t)
	r.Create(replicatest.Topic{Name: "a"})
	r.hold(map[string]float64{quota.ProducerByteRate: 1000})
	c := r.dial()
	id := r.Image.Topic("a").ID
	for _, version := range []int16{3, 8, 9, 13} {
		req := produceRequest(id, "a", spec{value: strings.Repeat("x", 3000)}.build(t))
		req.Version = version
		resp := c.ask(req).(*kmsg.ProduceResponse)
		require.Zero(t, resp.Topics[0].Partitions[0].ErrorCode)
		if version < 13 {
			require.Zero(t, resp.ThrottleMillis, "10 s worth come at once")
			continue
		}
		require.InDelta(t, 2250, resp.ThrottleMillis, 500, "12 KB of 10 KB, at 1 KB/s")
	}
	require.EqualValues(t, 4, r.Partition("a", 0).HighWatermark(), "nothing is refused")
}

func TestTwoConnectionsOfAClientIDShareItsProduceQuota(t *testing.T) {
	r := newRig(t)
	r.Create(replicatest.Topic{Name: "a"})
	r.hold(map[string]float64{quota.ProducerByteRate: 1000})
	req := produceRequest(r.Image.Topic("a").ID, "a", spec{value: strings.Repeat("x", 9000)}.build(t))
	require.Zero(t, r.dial().ask(req).(*kmsg.ProduceResponse).ThrottleMillis)
	require.NotZero(t, r.dial().ask(req).(*kmsg.ProduceResponse).ThrottleMillis)
}

func TestFetchBeyondTheQuotaIsAnsweredEmptyAndGoesOnAfterThePause(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.Create(replicatest.Topic{Name: "a"})
		r.fill("a", 0, 8, strings.Repeat("x", 2000))
		r.hold(map[string]float64{quota.ConsumerByteRate: 1000})
		sent := 0
		for _, version := range []int16{4, 6, 7, 12, 13, 18} {
			req := fetchRequest(version, r.Image.Topic("a"), 0)
			resp := r.fetch(req)
			got := len(resp.Topics[0].Partitions[0].RecordBatches)
			require.NotZero(t, got)
			require.LessOrEqual(t, got, 10_000, "no more than a window's worth is read")
			require.Zero(t, resp.ThrottleMillis)
			began := time.Now()
			for n := 0; ; n++ {
				require.Less(t, n, 3)
				resp = r.fetch(req)
				if resp.ThrottleMillis == 0 {
					break
				}
				require.Empty(t, resp.Topics)
				require.Zero(t, resp.ErrorCode)
				elapse(time.Duration(resp.ThrottleMillis) * time.Millisecond)
			}
			require.Greater(t, time.Since(began), 5*time.Second)
			require.Len(t, resp.Topics[0].Partitions[0].RecordBatches, got)
			sent += 2 * got
			elapse(20 * time.Second)
		}
		require.Zero(t, r.h.memory.used.Load(), "memory of withheld records is given back")
		require.EqualValues(t, sent, r.Metrics.Topic("a").BytesOut.Value(), "what is withheld does not count as sent")
	})
}

func TestThrottledSessionTellsTheSameAfterThePause(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.Create(replicatest.Topic{Name: "a", Partitions: 3})
		r.hold(map[string]float64{quota.ConsumerByteRate: 1000})
		c := &reader{r: r, version: 18}
		c.open("a", 0, 0, 0)
		require.NotZero(t, c.id)
		r.fill("a", 1, 1, strings.Repeat("x", 9000))
		require.Equal(t, []int32{1}, withRecords(c.fetch("", nil)))
		r.fill("a", 2, 1, strings.Repeat("x", 9900))
		resp := c.fetch("a", map[int32]int64{1: 1})
		require.NotZero(t, resp.ThrottleMillis)
		require.Empty(t, resp.Topics)
		require.Equal(t, c.id, resp.SessionID, "the session goes on")
		for n := 0; resp.ThrottleMillis > 0; n++ {
			require.Less(t, n, 3)
			elapse(time.Duration(resp.ThrottleMillis) * time.Millisecond)
			resp = c.fetch("", nil)
		}
		require.Equal(t, []int32{2}, withRecords(resp))
	})
}

func TestThrottledFullFetchBeginsNoSession(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.Create(replicatest.Topic{Name: "a"})
		r.fill("a", 0, 1, strings.Repeat("x", 9000))
		r.hold(map[string]float64{quota.ConsumerByteRate: 1000})
		c := &reader{r: r, version: 18}
		c.open("a", 0)
		require.NotZero(t, c.id)
		resp := c.open("a", 0)
		require.NotZero(t, resp.ThrottleMillis)
		require.Zero(t, resp.SessionID)
		require.Zero(t, resp.ErrorCode)
		n, _ := r.h.Sessions()
		require.Equal(t, 1, n)
	})
}

func TestOtherClientsAreNotThrottled(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.Create(replicatest.Topic{Name: "a"})
		r.fill("a", 0, 5, strings.Repeat("x", 9000))
		r.hold(map[string]float64{quota.RequestPercentage: 1})
		resp := r.fetch(fetchRequest(18, r.Image.Topic("a"), 0))
		require.Greater(t, len(resp.Topics[0].Partitions[0].RecordBatches), 45_000, "a quota on time bounds no bytes")
	})
}
