package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mainstem/mainstem/controller/meta"
)

// follower keeps what it is told by deltas.
type follower struct {
	mu      sync.Mutex
	topics  map[string]int
	last    int64
	missing []string
	deleted []string
	bad     string
}

func (f *follower) take(image *meta.Image, d meta.Delta) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if image.Revision() <= f.last && f.last != 0 {
		f.bad = fmt.Sprintf("revision %d after %d", image.Revision(), f.last)
	}
	f.last = image.Revision()
	for _, t := range slices.Concat(d.TopicsMissing, d.TopicsDeleted) {
		delete(f.topics, t.Name)
	}
	for _, t := range d.TopicsMissing {
		f.missing = append(f.missing, t.Name)
	}
	for _, t := range d.TopicsDeleted {
		f.deleted = append(f.deleted, t.Name)
	}
	for _, t := range slices.Concat(d.TopicsCreated, d.TopicsChanged) {
		f.topics[t.Name] = len(t.Partitions)
	}
	if len(f.topics) != image.TopicCount() {
		f.bad = fmt.Sprintf("%d topics by deltas, %d in the image", len(f.topics), image.TopicCount())
	}
}

func follow(c *Client) *follower {
	f := &follower{topics: map[string]int{}}
	c.Subscribe(f.take)
	return f
}

func (f *follower) check(t *testing.T, want map[string]int) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Empty(t, f.bad)
	require.Equal(t, want, f.topics)
}

func TestSubscribersSeeEverythingInOrder(t *testing.T) {
	o := external(t)
	c := register(t, o)
	create(t, c, 3, "old")
	early := follow(c)
	early.check(t, map[string]int{"old": 3})
	writer := open(t, o)
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			for i := range 20 {
				topics := []NewTopic{{Name: fmt.Sprintf("t-%d-%d", n, i), Assignments: onNode1(i + 1)}}
				if err := writer.CreateTopics(context.Background(), topics)[0]; err != nil {
					t.Error(err)
				}
				if i%2 == 0 {
					if err := writer.DeleteTopics(context.Background(), []meta.TopicID{topics[0].ID})[0]; err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, c.catchUp(t.Context()))
	late := follow(c)
	want := map[string]int{"old": 3}
	for n := range 4 {
		for i := 1; i < 20; i += 2 {
			want[fmt.Sprintf("t-%d-%d", n, i)] = i + 1
		}
	}
	early.check(t, want)
	late.check(t, want)
}

func TestAnswerIsAlreadyTakenInBySubscribers(t *testing.T) {
	c := register(t, external(t))
	f := follow(c)
	for i := range 20 {
		topic := create(t, c, 1, "t")[0]
		f.check(t, map[string]int{"t": 1})
		require.NoError(t, c.CreatePartitions(t.Context(), topic.ID, 1, onNode1(i+1)))
		f.check(t, map[string]int{"t": i + 2})
		require.NoError(t, c.DeleteTopics(t.Context(), []meta.TopicID{topic.ID})[0])
		f.check(t, map[string]int{})
	}
}

func TestChangesThatWereCompactedAwayAreFoundByListing(t *testing.T) {
	o := external(t)
	writer := register(t, o)
	create(t, writer, 1, "kept", "gone", "wiped")
	p := startProxy(t, o.Endpoints[0])
	o.Endpoints, o.NodeID, o.listLimit = []string{p.endpoint}, 2, 3
	c := open(t, o)
	f := follow(c)
	f.check(t, map[string]int{"kept": 1, "gone": 1, "wiped": 1})

	p.stall()
	require.NoError(t, writer.DeleteTopics(t.Context(), []meta.TopicID{writer.Image().Topic("gone").ID})[0])
	_, err := raw(t).Delete(t.Context(), writer.keys.Topic("wiped"))
	require.NoError(t, err)
	require.NoError(t, writer.CreatePartitions(t.Context(), writer.Image().Topic("kept").ID, 1, onNode1(200)))
	create(t, writer, 5, "new")
	_, err = raw(t).Compact(t.Context(), writer.Image().Revision())
	require.NoError(t, err)
	p.cut()
	p.resume()

	require.NoError(t, c.catchUp(t.Context()))
	f.check(t, map[string]int{"kept": 201, "new": 5})
	require.Equal(t, []string{"gone"}, f.deleted)
	require.Equal(t, []string{"wiped"}, f.missing)
}

func TestTopicTakenAwayByHandIsMissing(t *testing.T) {
	c := register(t, external(t))
	create(t, c, 1, "t")
	f := follow(c)
	_, err := raw(t).Delete(t.Context(), c.opts.Prefix+"1/topics/", clientv3.WithPrefix())
	require.NoError(t, err)
	require.NoError(t, c.catchUp(t.Context()))
	require.Equal(t, []string{"t"}, f.missing)
	require.Empty(t, f.deleted)
	require.NoError(t, c.Err())
}

func TestWipedEtcdEndsTheClientAndKeepsTheImage(t *testing.T) {
	c := register(t, external(t))
	create(t, c, 1, "t")
	f := follow(c)
	_, err := raw(t).Delete(t.Context(), c.opts.Prefix, clientv3.WithPrefix())
	require.NoError(t, err)
	<-c.Done()
	var identity *IdentityError
	require.ErrorAs(t, c.Err(), &identity)
	require.ErrorContains(t, c.Err(), "was wiped or replaced")
	require.True(t, c.Fenced())
	require.NotNil(t, c.Image().Topic("t"))
	require.Empty(t, f.missing)
	require.Empty(t, f.deleted)
	require.ErrorAs(t, c.CreateTopics(t.Context(), []NewTopic{{Name: "x", Assignments: onNode1(1)}})[0], &identity)
}

func TestNothingIsWrittenIntoAnEtcdOfAnotherCluster(t *testing.T) {
	c := register(t, external(t))
	_, err := raw(t).Put(t.Context(), c.keys.Cluster(), string(meta.EncodeCluster("another")))
	require.NoError(t, err)
	_, err = c.txn(t.Context(), nil, []clientv3.Op{clientv3.OpPut(c.opts.Prefix+"x", "y")})
	var identity *IdentityError
	require.ErrorAs(t, err, &identity)
	require.Equal(t, "another", identity.Found)
	resp, err := raw(t).Get(t.Context(), c.opts.Prefix+"x")
	require.NoError(t, err)
	require.Empty(t, resp.Kvs)
	<-c.Done()
	require.ErrorContains(t, c.Err(), "by cluster another")
}

func TestNewerValueEndsTheClientWithAClearLine(t *testing.T) {
	o := external(t)
	c := register(t, o)
	_, err := raw(t).Put(t.Context(), c.keys.Broker(3), "\x02whatever")
	require.NoError(t, err)
	<-c.Done()
	require.ErrorContains(t, c.Err(), "upgrade this one first")
	_, err = Open(t.Context(), o)
	var tooNew *meta.TooNewError
	require.ErrorAs(t, err, &tooNew)
	require.ErrorContains(t, err, c.keys.Broker(3)[len(o.Prefix):])
}

func TestKeysOfLaterVersionsAreIgnored(t *testing.T) {
	o := external(t)
	c := register(t, o)
	_, err := raw(t).Put(t.Context(), o.Prefix+"1/acls/x", "\x09")
	require.NoError(t, err)
	require.NoError(t, c.catchUp(t.Context()))
	open(t, o)
}

func TestWaitRevisionSeesRevisionsOfOthersAndEnds(t *testing.T) {
	c := open(t, external(t))
	resp, err := raw(t).Put(t.Context(), "/elsewhere", "x")
	require.NoError(t, err)
	require.NoError(t, c.WaitRevision(t.Context(), resp.Header.Revision))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, c.WaitRevision(ctx, resp.Header.Revision+1_000_000), context.DeadlineExceeded)
}

func TestEtcdThatWentBackIsReadAnew(t *testing.T) {
	c := register(t, external(t))
	create(t, c, 1, "kept", "young")
	_, err := raw(t).Delete(t.Context(), c.keys.Topic("young")) // As a restored backup would show it.
	require.NoError(t, err)
	require.NoError(t, c.catchUp(t.Context()))
	f := follow(c)
	future, _, err := meta.Apply(c.Image(), c.Image().Revision()+1000, nil)
	require.NoError(t, err)
	c.image.Store(future)
	c.session.hurry()
	eventually(t, func() bool { return c.Image().Revision() < future.Revision() }, "read anew")
	create(t, c, 1, "new")
	f.check(t, map[string]int{"kept": 1, "new": 1})
}
