package commitlog

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log/vfs"
	"github.com/mainstem/mainstem/log/vfs/errorfs"
)

// seeds returns how many random histories to run: the number in MAINSTEM_SEEDS or the test's own.
func seeds(t testing.TB, own int) int {
	t.Helper()
	if testing.Short() {
		own = max(own/10, 1)
	}
	if s := os.Getenv("MAINSTEM_SEEDS"); s != "" {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		return n
	}
	return own
}

// history is what a test knows of a log over many openings.
type history struct {
	rng *rand.Rand

	mu      sync.Mutex
	placed  map[LSN]found
	acked   map[LSN]bool // must be there for ever.
	written map[LSN]bool // must be there unless the power was lost.
	dropped map[SegmentID]bool
	top     LSN // end of the highest frame.
	corrupt []*CorruptError
	events  []error // what the background reported.
	offset  int64

	powerLost bool // since the last opening that was checked.
}

func newHistory(seed uint64) *history {
	return &history{
		rng:    rand.New(rand.NewPCG(seed, 1)),
		placed: map[LSN]found{}, acked: map[LSN]bool{}, written: map[LSN]bool{}, dropped: map[SegmentID]bool{},
	}
}

// vary changes what a log is configured with, within what a history allows to differ from opening to opening.
func (h *history) vary(o Options) Options {
	pick := func(n ...int) int { return n[h.rng.IntN(len(n))] }
	o.SegmentBytes = int64(pick(16<<10, 20<<10, 32<<10, 64<<10))
	o.BlockBytes = pick(1<<10, 1<<10+8, 4<<10)
	o.RingBytes = o.BlockBytes * pick(8, 9, 32)
	o.SegmentEntries = pick(5, 20, 0)
	o.AsyncBytes = pick(1, 5<<10, 0)
	return o
}

// options returns options of the history's own: sizes vary from seed to seed, not from opening to opening.
func (h *history) options(fs vfs.FS) Options {
	o := smallOptions(fs)
	o.Events.Corrupt = func(e *CorruptError) {
		h.mu.Lock()
		h.corrupt = append(h.corrupt, e)
		h.mu.Unlock()
	}
	event := func(err error) {
		if err != nil {
			h.mu.Lock()
			h.events = append(h.events, err)
			h.mu.Unlock()
		}
	}
	o.Events.DiskFull, o.Events.Poisoned = event, event
	o.Events.Failed = func(_ string, err error) { event(err) }
	return o
}

// append places a frame of random size and durability and commits it, or has it written in the background.
func (h *history) append(l *Log, rng *rand.Rand) error {
	h.mu.Lock()
	h.offset++
	offset := h.offset
	h.mu.Unlock()
	size := 1 + rng.IntN(1500)
	if rng.IntN(20) == 0 {
		size = 1 + rng.IntN(l.MaxPayload()-batchHead)
	}
	hd := Header{Kind: Data, ID: PartitionID{Partition: int32(offset % 5)}, LeaderEpoch: 1, BaseOffset: offset, OffsetCount: 1}
	payload := testBatch(offset, 1, 1, size, rng.Uint64())
	if rng.IntN(5) == 0 {
		hd.Kind = LogStart
		payload = payload[:rng.IntN(len(payload))]
	}
	need := Durability(rng.IntN(2))
	r, err := l.Reserve(Budget{Bytes: len(payload), Durability: need})
	if err != nil {
		return err
	}
	defer r.Release()
	h.mu.Lock()
	p, err := r.Place(hd, nil, payload)
	if err == nil {
		if _, again := h.placed[p.LSN]; again || p.LSN < h.top {
			err = fmt.Errorf("LSN %d was given before", p.LSN)
		}
		h.placed[p.LSN], h.top = found{hd, p, string(payload)}, p.End()
	}
	h.mu.Unlock()
	if err != nil {
		return err
	}
	if rng.IntN(4) == 0 {
		l.Kick()
		return nil
	}
	if err := l.Commit(p.End(), need); err != nil {
		return err
	}
	h.ack(p.End(), need)
	return nil
}

// ack notes that everything below is safe.
func (h *history) ack(upto LSN, need Durability) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for lsn := range h.placed {
		if lsn < upto && need == Synced {
			h.acked[lsn] = true
		}
		if lsn < upto {
			h.written[lsn] = true
		}
	}
}

// tend does what the owner of a log does beside appending.
func (h *history) tend(l *Log, rng *rand.Rand) error {
	m := l.Manifest()
	var sealed []SegmentInfo
	for _, s := range m.Segments {
		if s.Sealed {
			sealed = append(sealed, s)
		}
	}
	if len(sealed) == 0 {
		return nil
	}
	s := sealed[rng.IntN(len(sealed))]
	switch {
	case len(sealed) > 3:
		h.mu.Lock()
		h.dropped[s.ID] = true
		h.mu.Unlock()
		return l.Drop([]SegmentID{s.ID})
	case s.Index == "" && rng.IntN(2) == 0:
		name := IndexName(s.ID)
		err := l.WithReserve(func() error { return vfs.WriteAtomic(l.fs, l.path(name), []byte("index")) })
		if err != nil {
			return err
		}
		if err := l.AttachIndex(s.ID, name); !errors.Is(err, ErrSegmentGone) {
			return err
		}
		return nil
	case rng.IntN(10) == 0:
		return l.Seal()
	}
	return nil
}

// run works on a log with some goroutines until one fails or all are done.
func (h *history) run(l *Log, workers, steps int) error {
	var wg sync.WaitGroup
	errs := make([]error, workers)
	for w := range workers {
		rng := rand.New(rand.NewPCG(h.rng.Uint64(), 2))
		wg.Go(func() {
			for range steps {
				if errs[w] = h.append(l, rng); errs[w] == nil && w == 0 && rng.IntN(4) == 0 {
					errs[w] = h.tend(l, rng)
				}
				if errs[w] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// check compares what an opening found with what was placed: nothing that was acknowledged is missing, nothing else came to be, and
// what is missing was at the end of an opening's stream. What is found now must be there for ever.
func (h *history) check(frames []found) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.corrupt) > 0 {
		return fmt.Errorf("corruption reported: %w", h.corrupt[0])
	}
	have := map[LSN]bool{}
	var last LSN
	for _, f := range frames {
		want, ok := h.placed[f.LSN]
		switch {
		case !ok:
			return fmt.Errorf("frame at %d was never placed, or cut before", f.LSN)
		case want != f:
			return fmt.Errorf("frame at %d differs", f.LSN)
		case f.LSN <= last:
			return fmt.Errorf("frame at %d is out of order", f.LSN)
		}
		last = f.LSN
		have[f.LSN] = true
	}
	safe := h.acked
	if !h.powerLost {
		safe = maps.Clone(h.acked)
		maps.Copy(safe, h.written)
	}
	clear(h.written)
	for _, lsn := range slices.Sorted(maps.Keys(safe)) {
		if !have[lsn] && !h.dropped[h.placed[lsn].Segment] {
			return fmt.Errorf("acknowledged frame at %d is missing, of %d frames", lsn, len(h.placed))
		}
	}
	for lsn, f := range h.placed {
		if !have[lsn] && !h.dropped[f.Segment] {
			if lsn < last && h.acked[lsn] {
				return fmt.Errorf("frame at %d is missing before one at %d", lsn, last)
			}
			delete(h.placed, lsn) // Cut: it must not come back.
		}
		if have[lsn] {
			h.acked[lsn] = true
		}
	}
	return nil
}

// powerLoss runs a history of openings that end with a loss of power, some of them in recovery.
func powerLoss(seed uint64, prepare func(*errorfs.FS)) (err error) {
	h := newHistory(seed)
	mem := vfs.NewMem(seed)
	if h.rng.IntN(2) == 0 {
		mem.TearSectors()
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("seed %d: %w", seed, err)
		}
	}()
	for range 3 {
		for crashes := h.rng.IntN(3); ; crashes-- { // Losses of power while it opens.
			fs := errorfs.New(mem)
			prepare(fs)
			if crashes > 0 {
				fs.CutPower(h.rng.IntN(20))
			}
			l, frames, err := tryReopen(h.vary(h.options(fs)))
			if err != nil && !errors.Is(err, vfs.ErrCrashed) {
				return err
			}
			if err == nil {
				if err := h.check(frames); err != nil {
					return errors.Join(err, l.Close())
				}
				if h.rng.IntN(5) == 0 { // The disk fails a sync.
					fs.Fail(errorfs.Rule{Kinds: errorfs.SyncData, After: h.rng.IntN(20)})
				} else {
					fs.CutPower(h.rng.IntN(150))
				}
				err := h.run(l, 1+h.rng.IntN(3), 40)
				if err != nil && !errors.Is(err, vfs.ErrCrashed) && !errors.Is(err, errorfs.ErrInjected) {
					return errors.Join(err, l.Close())
				}
				_ = l.Close()                                     // May be the moment of the loss.
				if h.powerLost = h.rng.IntN(3) > 0; h.powerLost { // Else only the process died.
					mem = mem.Crash(h.rng)
				}
				break
			}
			h.powerLost = true
			mem = mem.Crash(h.rng)
		}
	}
	l, frames, err := tryReopen(h.options(mem))
	if err != nil {
		return err
	}
	return errors.Join(h.check(frames), l.Close())
}

func TestPowerLossKeepsWhatWasAcknowledged(t *testing.T) {
	for seed := range seeds(t, 500) {
		require.NoError(t, powerLoss(uint64(seed), func(*errorfs.FS) {}))
	}
}

// TestPowerLossIsNoticedWithoutSyncs shows that the test above can fail.
func TestPowerLossIsNoticedWithoutSyncs(t *testing.T) {
	for _, kinds := range []errorfs.Kind{errorfs.SyncData, errorfs.Sync, errorfs.SyncDir} {
		var err error
		for seed := uint64(0); seed < 2000 && err == nil; seed++ {
			err = powerLoss(seed, func(fs *errorfs.FS) { fs.StubSyncs(kinds) })
		}
		require.Error(t, err, "%v", kinds)
		t.Logf("without %v: %v", kinds, err)
	}
}
