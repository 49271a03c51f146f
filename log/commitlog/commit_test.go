package commitlog

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log/vfs"
	"github.com/mainstem/mainstem/log/vfs/errorfs"
)

// commits records what OnCommit reports.
type commits struct {
	mu      sync.Mutex
	written LSN
	synced  LSN
	ends    map[string]map[bool]int64 // by tag, then synced.
	calls   int
	err     error
}

func (c *commits) on(m Commit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	last := &c.written
	if m.Synced {
		last = &c.synced
	}
	if m.Upto <= *last {
		c.err = fmt.Errorf("report of %d after %d", m.Upto, *last)
	}
	*last = m.Upto
	seen := map[*Tag]bool{}
	for _, t := range m.Touched {
		if seen[t.Tag] && !m.Synced {
			c.err = fmt.Errorf("tag twice in one report")
		}
		seen[t.Tag] = true
		name := t.Tag.Owner.(string)
		if c.ends[name] == nil {
			c.ends[name] = map[bool]int64{}
		}
		c.ends[name][m.Synced] = t.EndOffset
	}
}

// TestCommitsOfManyAreReportedInOrderAndReleasedAfterTheReport runs many producers of both durabilities against small segments.
func TestCommitsOfManyAreReportedInOrderAndReleasedAfterTheReport(t *testing.T) {
	c := &commits{ends: map[string]map[bool]int64{}}
	o := smallOptions(vfs.NewMem(1))
	o.OnCommit = c.on
	o.AsyncDelay = time.Millisecond
	l, _ := reopen(t, o)
	var wg sync.WaitGroup
	const producers, each = 16, 150
	tags := make([]*Tag, producers)
	var places [producers][each]Place
	for i := range producers {
		tags[i] = &Tag{Owner: fmt.Sprint(i)}
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 0))
			need := Durability(i % 2)
			for n := range int64(each) {
				b := testBatch(n, 1, 1, 61+rng.IntN(2000), uint64(i))
				p, err := place(l, Header{Kind: Data, ID: PartitionID{Partition: int32(i)}, BaseOffset: n, OffsetCount: 1}, need, tags[i], b)
				if err == nil {
					places[i][n] = p
					err = l.Commit(p.End(), need)
				}
				if err != nil {
					t.Error(err)
					return
				}
				c.mu.Lock()
				got := c.ends[tags[i].Owner.(string)]
				end := max(got[false], got[true])
				c.mu.Unlock()
				if end < n+1 {
					t.Errorf("released at %d, reported %d", n+1, end)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, l.Commit(l.Next(), Synced))
	require.NoError(t, c.err)
	require.Equal(t, l.Next(), c.synced)
	require.Equal(t, l.Next(), l.Durable())
	for i := range producers {
		require.Equal(t, int64(each), c.ends[fmt.Sprint(i)][true])
	}
	stats := l.Stats()
	require.Equal(t, uint64(producers*each), stats.FramesPlaced)
	require.Less(t, stats.Syncs, uint64(producers*each), "groups share syncs")
	for i := range producers {
		for n := range each {
			got, err := read(l, places[i][n])
			require.NoError(t, err)
			require.Len(t, got, int(places[i][n].Size))
		}
	}
	require.NoError(t, l.Close())
}

// TestEveryCommitFollowsASyncThatBeganAfterItsWrite watches the order of operations: a commit returns after a sync that began after the
// write of its bytes.
func TestEveryCommitFollowsASyncThatBeganAfterItsWrite(t *testing.T) {
	fs := errorfs.New(vfs.NewMem(1))
	var writes, syncs atomic.Int64 // Numbers of the last write, and of the last write before the last sync began.
	fs.Watch(func(op errorfs.Op) {
		switch {
		case op.Path != "data/"+segmentName(1): // The keeper prepares the next one meanwhile.
		case op.Kind == errorfs.Write:
			writes.Store(op.Off + op.Len)
		case op.Kind == errorfs.SyncData:
			syncs.Store(writes.Load())
		}
	})
	o := smallOptions(fs)
	o.SegmentBytes = 1 << 20
	l, _ := reopen(t, o)
	for i := range int64(100) {
		p, err := appendBatch(l, PartitionID{}, i, 500)
		require.NoError(t, err)
		require.GreaterOrEqual(t, syncs.Load(), p.Offset+int64(p.Size))
	}
	require.NoError(t, l.Close())
}

func TestALoneCallerNeedsOneWriteAndOneSync(t *testing.T) {
	fs := errorfs.New(vfs.NewMem(1))
	o := smallOptions(fs)
	o.SegmentBytes = 1 << 20
	l, _ := reopen(t, o)
	_, err := appendBatch(l, PartitionID{}, 0, 500)
	require.NoError(t, err)
	writes, syncs := 0, 0
	fs.Watch(func(op errorfs.Op) {
		if op.Path == "data/"+segmentName(1) && op.Kind == errorfs.Write {
			writes++
			require.Zero(t, (op.Off+op.Len)%pageSize, "ends on a page")
		}
		if op.Kind == errorfs.SyncData {
			syncs++
		}
	})
	for i := range int64(10) {
		_, err := appendBatch(l, PartitionID{}, i, 500)
		require.NoError(t, err)
	}
	fs.Watch(nil)
	require.Equal(t, 10, writes)
	require.Equal(t, 10, syncs)
	require.NoError(t, l.Close())
}

func TestWrittenBytesAreSyncedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := errorfs.New(vfs.NewMem(1))
		c := &commits{ends: map[string]map[bool]int64{}}
		o := smallOptions(fs)
		o.OnCommit = c.on
		o.AsyncBytes = 8 << 10
		l, _ := reopen(t, o)
		tag := &Tag{Owner: "p"}
		put := func(n int64) {
			p, err := place(l, Header{Kind: Data, BaseOffset: n, OffsetCount: 1}, Written, tag, testBatch(n, 1, 1, 1000, 0))
			require.NoError(t, err)
			require.NoError(t, l.Commit(p.End(), Written))
			require.GreaterOrEqual(t, l.Written(), p.End())
		}
		put(0)
		require.Zero(t, fs.Count(errorfs.SyncData))
		require.Less(t, l.Durable(), l.Written())
		time.Sleep(o.AsyncDelay + 499*time.Millisecond)
		require.Zero(t, fs.Count(errorfs.SyncData))
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, 1, fs.Count(errorfs.SyncData), "after the delay")
		require.Equal(t, l.Written(), l.Durable())
		require.Equal(t, map[bool]int64{false: 1, true: 1}, c.ends["p"])
		for n := range int64(10) {
			put(n + 1)
		}
		require.Equal(t, 2, fs.Count(errorfs.SyncData), "too many bytes")
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, 3, fs.Count(errorfs.SyncData))
		require.Equal(t, l.Next(), l.Durable())
		time.Sleep(time.Minute)
		require.Equal(t, 3, fs.Count(errorfs.SyncData), "an idle log does nothing")
		require.NoError(t, c.err)
		require.NoError(t, l.Close())
	})
}

func TestKickWritesWhatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := reopen(t, smallOptions(vfs.NewMem(1)))
		for n := range int64(100) {
			_, err := place(l, Header{Kind: Data, BaseOffset: n, OffsetCount: 1}, Synced, nil, testBatch(n, 1, 1, 1000, 0))
			require.NoError(t, err)
			l.Kick()
		}
		synctest.Wait()
		require.Equal(t, l.Next(), l.Durable())
		require.NoError(t, l.Close())
	})
}

func TestAppendsThatNobodyKicksStillMakeRoomForOthers(t *testing.T) {
	l, _ := reopen(t, smallOptions(vfs.NewMem(1)))
	for n := range int64(500) {
		_, err := place(l, Header{Kind: Data, BaseOffset: n, OffsetCount: 1}, Synced, nil, testBatch(n, 1, 1, 1000, 0))
		require.NoError(t, err)
	}
	require.NoError(t, l.Close())
}

func TestAppendsWaitAtTheRollForIndexesThatAreOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := smallOptions(vfs.NewMem(1))
		seals := make(chan SegmentInfo, 10)
		o.OnSeal = func(s SegmentInfo) { seals <- s }
		o.MaxUnindexed = 2
		l, _ := reopen(t, o)
		done := make(chan error, 1)
		go func() {
			for n := range int64(200) {
				if _, err := appendBatch(l, PartitionID{}, n, 1000); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		rolls := 0
		for {
			synctest.Wait()
			select {
			case err := <-done:
				require.NoError(t, err)
				require.Greater(t, rolls, 3)
				require.NoError(t, l.Close())
				return
			default:
			}
			require.Len(t, seals, 2, "waits")
			s := <-seals
			require.True(t, s.Sealed)
			require.Equal(t, s.End, s.Base+LSN(s.EndOffset))
			require.NoError(t, vfs.WriteAtomic(o.FS, "data/"+IndexName(s.ID), nil))
			require.NoError(t, l.AttachIndex(s.ID, IndexName(s.ID)))
			rolls++
		}
	})
}

func TestReservationsThatCannotBeHonouredAreRefused(t *testing.T) {
	l, _ := reopen(t, smallOptions(vfs.NewMem(1)))
	_, err := l.Reserve(Budget{Bytes: l.MaxPayload() + 1})
	require.ErrorIs(t, err, ErrTooLarge)
	r, err := l.Reserve(Budget{Bytes: l.MaxPayload()})
	require.NoError(t, err)
	_, err = r.Place(Header{Kind: Create}, nil, make([]byte, l.MaxPayload()+100))
	require.ErrorIs(t, err, ErrUsage)
	_, err = r.Place(Header{Kind: Data}, nil, make([]byte, batchHead-1))
	require.ErrorIs(t, err, ErrUsage)
	_, err = r.Place(Header{Kind: Refill}, nil, nil)
	require.ErrorIs(t, err, ErrUsage)
	p, err := r.Place(Header{Kind: Create}, nil, make([]byte, l.MaxPayload()))
	require.NoError(t, err)
	_, err = r.Place(Header{Kind: Create}, nil, nil)
	require.ErrorIs(t, err, ErrUsage)
	r.Release()
	require.ErrorIs(t, l.Commit(p.End()+1, Synced), ErrUsage)
	require.NoError(t, l.Close())
	_, err = l.Reserve(Budget{Bytes: 1})
	require.ErrorIs(t, err, ErrClosed)
}

func TestOneReservationPlacesSeveralFrames(t *testing.T) {
	l, _ := reopen(t, smallOptions(vfs.NewMem(1)))
	r, err := l.Reserve(Budget{Bytes: 30, Frames: 3})
	require.NoError(t, err)
	var last Place
	for range 3 {
		last, err = r.Place(Header{Kind: Truncate}, nil, []byte("12345"), nil, []byte("67890"))
		require.NoError(t, err)
	}
	require.NoError(t, l.Commit(last.End(), Synced))
	got, err := read(l, last)
	require.NoError(t, err)
	require.Equal(t, "1234567890", got)
	require.NoError(t, l.Close())
}

// TestWhileOneSyncRunsTheNextGroupFills holds syncs back and counts what each covers.
func TestWhileOneSyncRunsTheNextGroupFills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := errorfs.New(vfs.NewMem(1))
		o := smallOptions(fs)
		o.SegmentBytes = 1 << 20
		l, _ := reopen(t, o)
		synctest.Wait()
		_, err := appendBatch(l, PartitionID{}, 0, 100)
		require.NoError(t, err)
		synctest.Wait() // The next segment is ready.
		gate := make(chan struct{})
		writes, syncs := 0, 0
		fs.Watch(func(op errorfs.Op) {
			switch op.Kind {
			case errorfs.Write:
				writes++
			case errorfs.SyncData:
				syncs++
				<-gate
			}
		})
		released := make(chan int, 20)
		for i := range 10 {
			go func() {
				_, err := appendBatch(l, PartitionID{}, int64(i+1), 100)
				if err != nil {
					t.Error(err)
				}
				released <- i
			}()
			synctest.Wait()
		}
		require.Equal(t, 1, syncs, "the first caller syncs for itself")
		require.Equal(t, 1, writes)
		require.Empty(t, released)
		gate <- struct{}{}
		synctest.Wait()
		require.Len(t, released, 1)
		require.Equal(t, 0, <-released)
		require.Equal(t, 2, syncs, "one of the others syncs for all nine")
		require.Equal(t, 2, writes)
		gate <- struct{}{}
		synctest.Wait()
		require.Len(t, released, 9)
		require.Equal(t, 2, syncs)
		fs.Watch(nil)
		require.NoError(t, l.Close())
	})
}

// TestTheNextSyncBeginsAfterAShortReportAndDuringALongOne has somebody wait for the role while the first sync runs.
func TestTheNextSyncBeginsAfterAShortReportAndDuringALongOne(t *testing.T) {
	for _, partitions := range []int{1, longReport + 1} {
		t.Run(fmt.Sprint(partitions), func(t *testing.T) {
			fs := errorfs.New(vfs.NewMem(1))
			o := smallOptions(fs)
			o.SegmentBytes, o.RingBytes = 1<<20, 1<<20
			began := make(chan struct{})
			reported := false
			o.OnCommit = func(Commit) {
				switch {
				case reported:
				case partitions > longReport:
					<-began
				default:
					for range 1000 {
						runtime.Gosched()
					}
					select {
					case <-began:
						t.Error("the next sync has begun before the report")
					default:
					}
				}
				reported = true
			}
			l, _ := reopen(t, o)
			var second sync.WaitGroup
			syncs := 0
			fs.Watch(func(op errorfs.Op) {
				if op.Kind != errorfs.SyncData {
					return
				}
				if syncs++; syncs == 2 {
					close(began)
					return
				}
				second.Go(func() {
					if _, err := appendBatch(l, PartitionID{Partition: -1}, 0, 100); err != nil {
						t.Error(err)
					}
				})
				for waiting := 0; waiting == 0; runtime.Gosched() {
					l.mu.Lock()
					waiting = len(l.waiters)
					l.mu.Unlock()
				}
			})
			for i := range partitions {
				h := Header{Kind: Data, ID: PartitionID{Partition: int32(i)}, OffsetCount: 1}
				_, err := place(l, h, Synced, &Tag{Owner: "p"}, testBatch(0, 1, 1, 100, 0))
				require.NoError(t, err)
			}
			require.NoError(t, l.Commit(l.Next(), Synced))
			second.Wait()
			fs.Watch(nil)
			require.True(t, reported)
			require.Equal(t, 2, syncs)
			require.NoError(t, l.Close())
		})
	}
}
