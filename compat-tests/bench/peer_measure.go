package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// measured is what one measurement needed of the machine.
type measured struct {
	broker time.Duration // CPU time
	others float64       // cores that neither the brokers nor the load used
}

// cpuUse is the CPU time of the machine and of those whose time is known.
type cpuUse struct {
	at      time.Time
	machine time.Duration
	own     time.Duration         // of the load
	brokers map[int]time.Duration // by process
	kernel  map[int]time.Duration // by thread: what the brokers' writes make it do
}

// readCPU reads all counters. A process that has ended counts as not there.
func readCPU(pids ...int) cpuUse {
	u := cpuUse{at: time.Now(), machine: processCPU(), own: ownCPU(), brokers: make(map[int]time.Duration), kernel: kernelCPU()}
	for _, pid := range pids {
		if used, err := cpuTime(pid); err == nil {
			u.brokers[pid] = used
		}
	}
	return u
}

// since tells what happened between two readings.
func (u *cpuUse) since(before *cpuUse) (m measured) {
	known := u.own - before.own
	for pid, used := range u.brokers {
		m.broker += used - before.brokers[pid]
	}
	for id, used := range u.kernel {
		known += used - before.kernel[id]
	}
	others := (u.machine - before.machine) - known - m.broker
	m.others = max(0, others.Seconds()/u.at.Sub(before.at).Seconds())
	return m
}

// measure runs fn, again if other work disturbed it.
func (p *peerRun) measure(ctx context.Context, b broker, fn func() error) (m measured, err error) {
	for attempt := 1; ; attempt++ {
		if err := settleDown(ctx, b); err != nil {
			return m, err
		}
		before, began := readCPU(b.pid()), time.Now()
		if err := fn(); err != nil {
			return m, err
		}
		after, took := readCPU(b.pid()), time.Since(began)
		m = after.since(&before)
		if m.others <= quietBelow || attempt >= p.attempts {
			return m, nil
		}
		if p.limit > 0 && p.spare < took {
			fmt.Printf("   other work used %.1f cores; there is no time to repeat it\n", m.others)
			return m, nil
		}
		fmt.Printf("   other work used %.1f cores: again\n", m.others)
		if err := awaitQuiet(ctx, b.pid(), p.patience); err != nil {
			return m, err
		}
		p.spare -= time.Since(began)
	}
}

// settleDown waits, not for long, until what came before is at its end: pages are
// written, and the broker has removed what it removes.
func settleDown(ctx context.Context, b broker) error {
	const little, look, most = 25.0, 300 * time.Millisecond, 5 * time.Second
	syscall.Sync()
	for end := time.Now().Add(most); time.Now().Before(end); {
		before := readCPU(b.pid())
		if err := wait(ctx, look); err != nil {
			return err
		}
		if after := readCPU(b.pid()); share(&before, &after, b.pid()) < little {
			return nil
		}
	}
	return nil
}

// awaitQuiet waits, not for ever, until nothing else uses the machine.
func awaitQuiet(ctx context.Context, pid int, patience time.Duration) error {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		before := readCPU(pid)
		if err := wait(ctx, time.Second); err != nil {
			return err
		}
		if after := readCPU(pid); after.since(&before).others <= quietBelow {
			return nil
		}
	}
	return nil
}

// processCPU is the time that all cores spent for processes and kernel threads,
// and what other guests of the host took away. Interrupts are left out: the load's
// own packets make them.
func processCPU() time.Duration {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	var sum int64
	for i, field := range strings.Fields(line) {
		switch i {
		case 1, 2, 3, 8: // User, nice, system, stolen.
			n, _ := strconv.ParseInt(field, 10, 64) // The kernel writes numbers.
			sum += n
		}
	}
	return time.Duration(sum) * clockTick
}

// kernelCPU is the time of each kernel thread: those that write pages to the
// disk after a broker has left them to the kernel are no other work.
func kernelCPU() map[int]time.Duration {
	const parent = "2" // kthreadd
	all := make(map[int]time.Duration)
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // The pattern is right.
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue // It has ended.
		}
		_, rest, _ := strings.Cut(string(raw), ") ")
		if f := strings.Fields(rest); len(f) < 13 || f[1] != parent {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			continue
		}
		if used, err := cpuTime(pid); err == nil {
			all[pid] = used
		}
	}
	return all
}
