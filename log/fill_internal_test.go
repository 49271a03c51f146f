package log

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log/commitlog"
	"github.com/mainstem/mainstem/log/vfs"
	"github.com/mainstem/mainstem/protocol/batch"
)

// fillPlan says with what a stopped broker's log is filled. The parts follow
// each other in this order; each may be zero.
type fillPlan struct {
	Dir       string `json:"dir"`        // of the log
	HoleBytes int64  `json:"hole_bytes"` // of batches with zeros as records, which take no disk space
	HoleBatch int    `json:"hole_batch"` // bytes of such a batch
	Rounds    int    `json:"rounds"`     // batches of an idempotent producer to each partition, each a segment from the last
	TailBatch int    `json:"tail_batch"` // bytes of the batches that fill the open segment
}

// fillReport is what the process prints before it kills itself.
type fillReport struct {
	Partitions   int   `json:"partitions"`
	Batches      int64 `json:"batches"`
	Bytes        int64 `json:"bytes"`
	Segments     int   `json:"segments"`
	OpenSegment  int64 `json:"open_segment_bytes"`
	EpochsMillis int64 `json:"epochs_ms"`
}

// TestFillForBench fills the log of a stopped broker, whose topics were made
// before, and ends by kill -9. compat-tests/bench gets its large logs by it.
func TestFillForBench(t *testing.T) {
	raw := os.Getenv("MAINSTEM_FILL")
	if raw == "" {
		t.Skip("run by compat-tests/bench")
	}
	var plan fillPlan
	require.NoError(t, json.Unmarshal([]byte(raw), &plan))
	s, err := Open(Options{FS: sparseFS{vfs.OS()}, Dir: plan.Dir})
	require.NoError(t, err)
	f := &filler{t: t, s: s, began: s.log.Next()}
	f.begin()
	f.holes(plan.HoleBytes, plan.HoleBatch)
	for range plan.Rounds {
		f.round()
	}
	f.tail(plan.TailBatch)
	f.commit()
	f.report.Bytes, f.report.Segments, f.report.OpenSegment = int64(s.log.Next()-f.began), s.Stats().Segments, f.used()
	out, err := json.Marshal(f.report)
	require.NoError(t, err)
	fmt.Printf("filled %s\n", out)
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
	select {}
}

const (
	fillSegment = 128 << 20
	fillCommit  = 8 << 20 // bytes between two commits
)

// filler appends to all partitions of a store in turn.
type filler struct {
	t         *testing.T
	s         *Store
	began     commitlog.LSN
	ps        []*Partition
	epochs    []int32
	sequences []int32
	turn      int
	ticket    Ticket
	pending   int
	report    fillReport
}

// begin begins an epoch of every partition.
func (f *filler) begin() {
	f.ps = slices.Collect(f.s.Partitions())
	require.NotEmpty(f.t, f.ps, "the broker's topics come first")
	sortedIDs(f.ps)
	f.sequences = make([]int32, len(f.ps))
	starts := make([]EpochStart, len(f.ps))
	for i, p := range f.ps {
		f.epochs = append(f.epochs, p.LatestEpoch()+1)
		starts[i] = EpochStart{ID: p.ID(), Epoch: f.epochs[i]}
	}
	at := time.Now()
	require.NoError(f.t, f.s.BeginEpochs(starts))
	f.report.Partitions, f.report.EpochsMillis = len(f.ps), time.Since(at).Milliseconds()
}

// append stores a batch in the next partition.
func (f *filler) append(records []byte) {
	i := f.turn % len(f.ps)
	a, err := f.ps[i].Append(Append{Records: records, LeaderEpoch: f.epochs[i]})
	require.NoError(f.t, err)
	f.turn++
	f.report.Batches++
	f.ticket = f.ticket.Max(a.Ticket)
	if f.pending += len(records); f.pending >= fillCommit {
		f.commit()
	}
}

func (f *filler) commit() {
	require.NoError(f.t, f.s.Commit(f.ticket))
	f.pending = 0
}

// holes appends batches whose records are zeros: to the log a batch with a
// right checksum, to the disk next to nothing.
func (f *filler) holes(size int64, each int) {
	if size == 0 {
		return
	}
	records := fillBatch(f.t, nil, each)
	clear(records[61:]) // The batch's header stays; of it, bytes 17 to 20 are the checksum over all that follows.
	binary.BigEndian.PutUint32(records[17:], crc32.Checksum(records[21:], crc32.MakeTable(crc32.Castagnoli)))
	for n := int64(0); n < size; n += int64(len(records)) {
		f.append(records)
	}
}

// round appends a batch of a producer of its own to each partition, over a
// little more than one segment.
func (f *filler) round() {
	for range f.ps {
		f.append(f.produced(max(fillSegment/len(f.ps)+1, 200)))
	}
}

// produced builds the next batch of the producer of the partition whose turn it is.
func (f *filler) produced(size int) []byte {
	i := f.turn % len(f.ps)
	p := &batch.Producer{ID: int64(1_000_000 + i), Sequence: f.sequences[i]}
	f.sequences[i]++
	return fillBatch(f.t, p, size)
}

// tail appends small batches until a segment that holds nothing else is open
// and nearly full.
func (f *filler) tail(each int) {
	if each == 0 {
		return
	}
	for begun := f.s.log.Next(); f.s.log.Next()-begun < fillSegment || f.used() < fillSegment*95/100; {
		for range 1000 {
			f.append(f.produced(each))
		}
	}
}

// used returns the bytes that the open segment holds.
func (f *filler) used() int64 {
	next := f.s.log.Next()
	var base commitlog.LSN
	for _, seg := range f.s.log.Manifest().Segments {
		if seg.Base <= next {
			base = max(base, seg.Base)
		}
	}
	return int64(next - base)
}

// fillBatch builds a batch of one record that takes about size bytes.
func fillBatch(t *testing.T, p *batch.Producer, size int) []byte {
	b := batch.NewBuilder(batch.Spec{Producer: p})
	b.Append(time.Now().UnixMilli(), nil, make([]byte, max(size-80, 1)))
	records, err := b.Batch()
	require.NoError(t, err)
	return records
}

// sparseFS leaves out what is zero: its files read the same and take less space.
type sparseFS struct{ vfs.FS }

func (s sparseFS) Create(name string) (vfs.File, error) { return sparse(s.FS.Create(name)) }
func (s sparseFS) OpenRW(name string) (vfs.File, error) { return sparse(s.FS.OpenRW(name)) }

func sparse(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &sparseFile{f}, nil
}

// sparseFile is written once and front to back, so what it leaves out is a hole.
type sparseFile struct{ vfs.File }

// Allocate makes a hole.
func (f *sparseFile) Allocate(off, n int64) error {
	size, err := f.Size()
	if err != nil || size >= off+n {
		return err
	}
	return f.Truncate(off + n)
}

// WriteAt leaves out whole pages of zeros within the file.
func (f *sparseFile) WriteAt(p []byte, off int64) (int, error) {
	size, err := f.Size()
	if err != nil {
		return 0, err
	}
	const page = 4096
	zeros := make([]byte, page)
	from := 0 // what is before is written
	for at := 0; at < len(p); {
		n := min(int(page-(off+int64(at))%page), len(p)-at)
		if n == page && off+int64(at+n) <= size && bytes.Equal(p[at:at+n], zeros) {
			if err := f.flush(p[from:at], off+int64(from)); err != nil {
				return from, err
			}
			from = at + n
		}
		at += n
	}
	if err := f.flush(p[from:], off+int64(from)); err != nil {
		return from, err
	}
	return len(p), nil
}

func (f *sparseFile) flush(p []byte, off int64) error {
	if len(p) == 0 {
		return nil
	}
	_, err := f.File.WriteAt(p, off)
	return err
}

// WritevAt writes the buffers as one.
func (f *sparseFile) WritevAt(bufs [][]byte, off int64) (int, error) {
	total := 0
	for _, b := range bufs {
		n, err := f.WriteAt(b, off+int64(total))
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}
