package records

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/broker/replica/replicatest"
	"github.com/mainstem/mainstem/controller/meta"
)

// reader is a client with a fetch session.
type reader struct {
	r       *rig
	version int16
	id      int32
	epoch   int32
	wait    int32
}

// open makes a session over partitions of one topic at offsets.
func (c *reader) open(topic string, offsets ...int64) *kmsg.FetchResponse {
	c.r.t.Helper()
	req := fetchRequest(c.version, c.r.Image.Topic(topic), offsets...)
	req.SessionEpoch = 0
	resp := c.r.fetch(req)
	c.id, c.epoch = resp.SessionID, 1
	return resp
}

// next makes the next request of the session; offsets are of the partitions moved.
func (c *reader) next(topic string, offsets map[int32]int64, forget ...int32) *kmsg.FetchRequest {
	c.r.t.Helper()
	t := c.r.Image.Topic(topic)
	if t == nil {
		t = &meta.Topic{Name: topic}
	}
	req := fetchRequest(c.version, t)
	req.SessionID, req.SessionEpoch, req.MaxWaitMillis = c.id, c.epoch, c.wait
	c.epoch++
	kt := kmsg.FetchRequestTopic{Topic: t.Name, TopicID: t.ID}
	for p, o := range offsets {
		rp := kmsg.NewFetchRequestTopicPartition()
		rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes = p, o, 1<<20
		kt.Partitions = append(kt.Partitions, rp)
	}
	if len(offsets) > 0 {
		req.Topics = append(req.Topics, kt)
	}
	if len(forget) > 0 {
		req.ForgottenTopics = append(req.ForgottenTopics, kmsg.FetchRequestForgottenTopic{Topic: t.Name, TopicID: t.ID, Partitions: forget})
	}
	return req
}

func (c *reader) fetch(topic string, offsets map[int32]int64, forget ...int32) *kmsg.FetchResponse {
	c.r.t.Helper()
	return c.r.fetch(c.next(topic, offsets, forget...))
}

// answered are the partitions in an answer, in its order.
func answered(resp *kmsg.FetchResponse) (out []int32) {
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			out = append(out, p.Partition)
		}
	}
	return out
}

// withRecords are the partitions of which the answer holds records.
func withRecords(resp *kmsg.FetchResponse) (out []int32) {
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if len(p.RecordBatches) > 0 {
				out = append(out, p.Partition)
			}
		}
	}
	return out
}

func TestSessionTellsOnlyWhatIsNew(t *testing.T) {
	r := newRig(t)
	r.Create(replicatest.Topic{Name: "a", Partitions: 5})
	for _, version := range []int16{7, 11, 12, 13, 18} {
		c := &reader{r: r, version: version}
		end := r.Partition("a", 2).HighWatermark()
		resp := c.open("a", 0, 0, end, 0, 0)
		require.Equal(t, []int32{0, 1, 2, 3, 4}, answered(resp), "the first answer names all")
		require.NotZero(t, c.id)

		require.Empty(t, answered(c.fetch("", nil)), version)
		r.fill("a", 2, 1, "v")
		require.Equal(t, []int32{2}, withRecords(c.fetch("", nil)))
		require.Equal(t, []int32{2}, withRecords(c.fetch("", nil)), "what is not consumed comes again")
		resp = c.fetch("a", map[int32]int64{2: end + 1})
		require.Empty(t, answered(resp))
		require.Equal(t, c.id, resp.SessionID)
	}
	n, parts := r.h.Sessions()
	require.Equal(t, 5, n)
	require.Equal(t, 25, parts)
}

func TestParkedSessionWakesForAnyOfItsPartitions(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.Create(replicatest.Topic{Name: "a", Partitions: 100})
		c := &reader{r: r, version: 18}
		c.open("a", make([]int64, 100)...)
		c.wait = 1000
		began := time.Now()
		require.Empty(t, answered(c.fetch("", nil)))
		require.Equal(t, time.Second, time.Since(began), "an incremental fetch waits as any other")

		p := r.park(t.Context(), c.next("", nil))
		elapse(300 * time.Millisecond)
		require.True(t, p.waits())
		r.fill("a", 57, 1, "v")
		require.Equal(t, []int32{57}, withRecords(<-p.done))
		require.Equal(t, 1300*time.Millisecond, time.Since(began))
	})
}

func TestQuietPartitionsOfASessionAreNotLookedAt(t *testing.T) {
	r := newRig(t)
	r.Create(replicatest.Topic{Name: "a", Partitions: 50})
	c := &reader{r: r, version: 18}
	c.open("a", make([]int64, 50)...)
	c.fetch("", nil)
	s := r.h.sessions.get(c.id)
	require.Zero(t, s.ready.n)
	r.fill("a", 9, 1, "v")
	s.takeMarks()
	require.Equal(t, 1, s.ready.n)
}

func TestServedPartitionsGoToTheEnd(t *testing.T) {
	r := newRig(t)
	r.Create(replicatest.Topic{Name: "a", Partitions: 3})
	for i := range int32(3) {
		r.fill("a", i, 4, "v")
	}
	c := &reader{r: r, version: 18}
	c.open("a", 0, 0, 0)
	var served []int32
	for range 6 {
		req := c.next("", nil)
		req.MaxBytes = 1
		got := withRecords(r.fetch(req))
		require.Len(t, got, 1)
		served = append(served, got...)
	}
	require.Equal(t, []int32{0, 1, 2, 0, 1, 2}, served)
}

func TestForgottenPartitionIsNotServed(t *testing.T) {
	r := newRig(t)
	r.Create(replicatest.Topic{Name: "a", Partitions: 2})
	c := &reader{r: r, version: 18}
	c.open("a", 0, 0)
	resp := c.fetch("a", nil, 0)
	require.Equal(t, c.id, resp.SessionID)
	r.fill("a", 0, 1, "v")
	r.fill("a", 1, 1, "v")
	require.Equal(t, []int32{1}, answered(c.fetch("", nil)))
	// Added again, it is new to the client.
	require.ElementsMatch(t, []int32{0, 1}, withRecords(c.fetch("a", map[int32]int64{0: 0})))
	resp = c.fetch("a", nil, 0, 1)
	require.Zero(t, resp.SessionID, "a session without partitions is over")
	n, _ := r.h.Sessions()
	require.Zero(t, n)
}

func TestErrorsAreToldAgainUntilTheyAreGone(t *testing.T) {
	r := newRig(t)
	r.Create(replicatest.Topic{Name: "a", Partitions: 2})
	c := &reader{r: r, version: 12}
	c.open("a", 0, 0)
	t12 := map[int32]int64{5: 0, 0: 3}
	for range 2 {
		resp := c.fetch("a", t12)
		codes := make(map[int32]int16)
		for _, p := range resp.Topics {
			for _, row := range p.Partitions {
				codes[row.Partition] = row.ErrorCode
			}
		}
		require.Equal(t, map[int32]int16{0: kerr.OffsetOutOfRange.Code, 5: kerr.UnknownTopicOrPartition.Code}, codes)
		t12 = nil
	}
	// The partition comes into being, and the offset is put right.
	r.Grow("a", 6)
	resp := c.fetch("a", map[int32]int64{0: 0})
	require.ElementsMatch(t, []int32{0, 5}, answered(resp), "what was an error before is told anew")
	require.Empty(t, answered(c.fetch("", nil)))
	r.fill("a", 5, 1, "v")
	require.Equal(t, []int32{5}, withRecords(c.fetch("", nil)))
}

func TestSessionFollowsATopicMadeAgain(t *testing.T) {
	r := newRig(t)
	r.Create(replicatest.Topic{Name: "a"})
	byName, byID := &reader{r: r, version: 12}, &reader{r: r, version: 18}
	byName.open("a", 0)
	byID.open("a", 0)
	r.Delete("a")
	require.EqualValues(t, 3, byName.fetch("", nil).Topics[0].Partitions[0].ErrorCode)
	require.Equal(t, kerr.UnknownTopicID.Code, byID.fetch("", nil).Topics[0].Partitions[0].ErrorCode)
	r.Create(replicatest.Topic{Name: "a"})
	r.fill("a", 0, 1, "v")
	require.Equal(t, []int32{0}, withRecords(byName.fetch("", nil)))
	require.Equal(t, kerr.UnknownTopicID.Code, byID.fetch("", nil).Topics[0].Partitions[0].ErrorCode, "the new topic is another one")
}

func TestMovedLogStartIsTold(t *testing.T) {
	r := newRig(t)
	r.Create(replicatest.Topic{Name: "a"})
	r.fill("a", 0, 5, "v")
	c := &reader{r: r, version: 18}
	c.open("a", 5)
	require.Empty(t, answered(c.fetch("", nil)))
	r.deleteRecords("a", 0, 3)
	resp := c.fetch("", nil)
	require.Equal(t, []int32{0}, answered(resp))
	require.EqualValues(t, 3, resp.Topics[0].Partitions[0].LogStartOffset)
	require.Empty(t, answered(c.fetch("", nil)))
}

func TestSessionErrorsAreThoseOfKIP227(t *testing.T) {
	r := newRig(t)
	r.Create(replicatest.Topic{Name: "a"})
	r.fill("a", 0, 1, "v")
	c := &reader{r: r, version: 18}
	c.open("a", 0)
	ask := func(version int16, id, epoch int32) *kmsg.FetchResponse {
		req := fetchRequest(version, r.Image.Topic("a"), 0)
		req.SessionID, req.SessionEpoch = id, epoch
		return r.fetch(req)
	}
	require.Equal(t, kerr.InvalidFetchSessionEpoch.Code, ask(18, c.id, 5).ErrorCode)
	require.Equal(t, kerr.FetchSessionIDNotFound.Code, ask(18, c.id+1, 1).ErrorCode)
	require.Equal(t, kerr.FetchSessionIDNotFound.Code, ask(18, 0, 3).ErrorCode)
	require.Equal(t, kerr.FetchSessionTopicIDError.Code, ask(12, c.id, 1).ErrorCode)
	require.Len(t, withRecords(ask(18, c.id, 1)), 1, "the session has survived all that")

	replaced := ask(18, c.id, 0)
	require.NotZero(t, replaced.SessionID)
	require.NotEqual(t, c.id, replaced.SessionID)
	require.Equal(t, kerr.FetchSessionIDNotFound.Code, ask(18, c.id, 2).ErrorCode)
	closed := ask(18, replaced.SessionID, -1)
	require.Zero(t, closed.SessionID)
	require.Len(t, withRecords(closed), 1)
	require.Equal(t, kerr.FetchSessionIDNotFound.Code, ask(18, replaced.SessionID, 1).ErrorCode)
	n, _ := r.h.Sessions()
	require.Zero(t, n)
}

func TestFullTableGoesOnWithoutSessions(t *testing.T) {
	r := newRig(t, "max.incremental.fetch.session.cache.slots=2")
	r.Create(replicatest.Topic{Name: "a"})
	r.fill("a", 0, 1, "v")
	for range 2 {
		c := &reader{r: r, version: 18}
		c.open("a", 0)
		require.NotZero(t, c.id)
	}
	c := &reader{r: r, version: 18}
	resp := c.open("a", 0)
	require.Zero(t, resp.SessionID)
	require.Zero(t, resp.ErrorCode)
	require.Len(t, withRecords(resp), 1)
}

func TestLaterRequestOfASessionEndsTheParkedOne(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.Create(replicatest.Topic{Name: "a"})
		c := &reader{r: r, version: 18}
		c.open("a", 0)
		c.wait = 60000
		first := r.park(t.Context(), c.next("", nil))
		require.True(t, first.waits())
		second := r.park(t.Context(), c.next("", nil))
		require.Equal(t, kerr.InvalidFetchSessionEpoch.Code, (<-first.done).ErrorCode)
		require.True(t, second.waits())
		r.fill("a", 0, 1, "v")
		require.Len(t, withRecords(<-second.done), 1)
	})
}

func TestEvictedSessionEndsItsParkedFetchInPeace(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.Create(replicatest.Topic{Name: "a"})
		c := &reader{r: r, version: 18}
		c.open("a", 0)
		s := r.h.sessions.get(c.id)
		c.wait = 1000
		p := r.park(t.Context(), c.next("", nil))
		require.True(t, p.waits())
		r.h.sessions.remove(c.id)
		require.Zero(t, (<-p.done).ErrorCode)
		for _, pt := range s.parts {
			require.False(t, pt.watch.Hung(), "nothing is left on the partitions")
		}
		require.Equal(t, kerr.FetchSessionIDNotFound.Code, c.fetch("", nil).ErrorCode)
	})
}

func TestDrainingServerAnswersParkedFetches(t *testing.T) {
	r := newRig(t)
	r.Create(replicatest.Topic{Name: "a"})
	c := r.dial()
	req := fetchRequest(18, r.Image.Topic("a"), 0)
	req.MaxWaitMillis = 600000
	c.send(req)
	require.Eventually(t, func() bool { _, n := r.h.Parked(); return n == 1 }, 30*time.Second, time.Millisecond)
	r.server.Drain()
	resp := c.receive(req).(*kmsg.FetchResponse)
	require.Empty(t, withRecords(resp))
	_, err := c.read()
	require.ErrorIs(t, err, errClosed)
}
