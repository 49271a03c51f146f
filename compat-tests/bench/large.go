package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/mainstem/mainstem/compat-tests/harness"
)

// fill says with what the log of a stopped broker is filled; it is read by the
// test TestFillForBench of the module above, which writes through its own log.
type fill struct {
	Dir       string `json:"dir"`
	HoleBytes int64  `json:"hole_bytes"` // batches whose records are holes in the files
	HoleBatch int    `json:"hole_batch"`
	Rounds    int    `json:"rounds"` // batches of an idempotent producer to each partition, a segment apart
	TailBatch int    `json:"tail_batch"`
}

// filled is what it reports.
type filled struct {
	Partitions  int   `json:"partitions"`
	Batches     int64 `json:"batches"`
	Bytes       int64 `json:"bytes"`
	Segments    int   `json:"segments"`
	OpenSegment int64 `json:"open_segment_bytes"`
}

// open measures how soon a broker serves after kill -9 with a large log.
func (b *bench) open(ctx context.Context) error {
	n, remove, err := b.filledNode(ctx, "open", b.spread, 100, fill{HoleBytes: int64(b.gigabytes) * 1e9, HoleBatch: 256 << 10, TailBatch: 1024})
	if err != nil {
		return err
	}
	defer remove()
	took, err := b.openCold(n, "open")
	if err != nil {
		return err
	}
	defer n.Kill()
	b.report.goal("open", "start to ready after kill -9", took.Seconds(), 2, "s", "nothing of it in the system's cache")
	return nil
}

// many measures a broker with very many partitions.
func (b *bench) many(ctx context.Context) error {
	const segments = 11
	empty, err := b.emptyHeap(ctx)
	if err != nil {
		return err
	}
	n, remove, err := b.filledNode(ctx, "partitions", b.partitions, 1000, fill{Rounds: segments, TailBatch: 1024})
	if err != nil {
		return err
	}
	defer remove()
	took, err := b.openCold(n, "partitions")
	if err != nil {
		return err
	}
	defer n.Kill()
	b.report.add("partitions", "start to ready after kill -9", took.Seconds(), "s", "nothing of it in the system's cache")
	heap, err := liveHeap(ctx, n)
	if err != nil {
		return err
	}
	resident, peak, err := residentBytes(n.Pid())
	if err != nil {
		return err
	}
	u, err := diskUsage(n.Dir)
	if err != nil {
		return err
	}
	count := float64(b.partitions)
	b.report.goal("partitions", "heap a partition", (heap-empty)/count, 10_000, "B", fmt.Sprintf("%.0f MB in all, after a collection", heap/1e6))
	b.report.goal("partitions", "index a partition", float64(u.indexes)/count, 10_000, "B", fmt.Sprintf("on disk, for batches in %d segments", segments))
	b.report.add("partitions", "resident memory", float64(resident)/1e6, "MB", fmt.Sprintf("peak %.0f MB", float64(peak)/1e6))
	if err := n.Stop(); err != nil {
		return err
	}
	if took, err = startTimed(n); err != nil {
		return err
	}
	b.report.add("partitions", "start to ready after a stop", took.Seconds(), "s", "")
	return nil
}

// emptyHeap is what a broker without partitions has in use.
func (b *bench) emptyHeap(ctx context.Context) (float64, error) {
	dir, remove, err := b.data()
	if err != nil {
		return 0, err
	}
	defer remove()
	n, err := newNode(dir)
	if err != nil {
		return 0, err
	}
	defer n.Kill()
	if _, err := startTimed(n); err != nil {
		return 0, err
	}
	fmt.Println("   waiting for a collection of a broker without partitions")
	return liveHeap(ctx, n)
}

// filledNode returns a broker with topics and a filled log, killed.
func (b *bench) filledNode(ctx context.Context, part string, total, each int, f fill) (n *harness.Node, remove func(), err error) {
	dir, remove, err := b.data()
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			remove()
		}
	}()
	if n, err = newNode(dir); err != nil {
		return nil, nil, err
	}
	if _, err = startTimed(n); err != nil {
		return nil, nil, err
	}
	took, err := createTopics(ctx, n, total, each)
	if err == nil {
		err = n.Stop()
	}
	if err != nil {
		n.Kill()
		return nil, nil, err
	}
	b.report.add(part, "creation", took.Seconds()*1000/float64(total), "ms a partition", fmt.Sprintf("%d partitions in topics of %d", total, each))
	f.Dir = filepath.Join(dir, "commitlog")
	fmt.Println("   filling the log")
	began := time.Now()
	have, err := b.fill(ctx, f)
	if err != nil {
		return nil, nil, err
	}
	u, err := diskUsage(dir)
	if err != nil {
		return nil, nil, err
	}
	fmt.Printf("   filled in %v\n", time.Since(began).Round(time.Second))
	b.report.add(part, "log", float64(have.Bytes)/1e9, "GB", fmt.Sprintf("%d batches over %d partitions in %d segments, %.1f GB of disk, %.0f MB in the open one",
		have.Batches, have.Partitions, have.Segments, float64(u.disk)/1e9, float64(have.OpenSegment)/1e6))
	return n, remove, nil
}

// fill runs the test that fills a log; it ends by killing itself.
func (b *bench) fill(ctx context.Context, f fill) (have filled, err error) {
	binary := filepath.Join(b.work, "log.test")
	build := exec.CommandContext(ctx, "../../.ci/go", "-C", "../..", "test", "-c", "-o", binary, "./log")
	if out, err := build.CombinedOutput(); err != nil {
		return have, fmt.Errorf("build the log's tests: %w\n%s", err, out)
	}
	plan, err := json.Marshal(f)
	if err != nil {
		return have, err
	}
	cmd := exec.CommandContext(ctx, binary, "-test.run", "^TestFillForBench$", "-test.timeout", "30m")
	cmd.Env = append(os.Environ(), "MAINSTEM_FILL="+string(plan))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		return have, fmt.Errorf("fill the log: %w\n%s", err, out)
	}
	_, line, found := bytes.Cut(out, []byte("filled "))
	if !found {
		return have, fmt.Errorf("the log was not filled:\n%s", out)
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	return have, json.Unmarshal(line, &have)
}

// openCold starts a killed broker whose files the system has forgotten.
func (b *bench) openCold(n *harness.Node, part string) (time.Duration, error) {
	if err := dropCache(n.Dir); err != nil {
		return 0, err
	}
	took, err := startTimed(n)
	if err != nil {
		return 0, err
	}
	read, err := readBytes(n.Pid())
	if err != nil {
		n.Kill()
		return 0, err
	}
	b.report.add(part, "read from the disk to open", float64(read)/1e6, "MB", "")
	for _, line := range n.Lines("log opened") {
		fmt.Println("   " + line)
	}
	return took, nil
}
