package main

import (
	"context"
	"fmt"
	"time"
)

// start measures how soon an empty broker serves, and one that was stopped.
func (b *bench) start(_ context.Context) error {
	var first, again time.Duration
	for i := range b.starts {
		took, second, err := b.startOnce()
		if err != nil {
			return err
		}
		fmt.Printf("   %d: %v new, %v again\n", i+1, took.Round(time.Millisecond), second.Round(time.Millisecond))
		if i == 0 {
			first, again = took, second
		}
		first, again = min(first, took), min(again, second)
	}
	note := fmt.Sprintf("best of %d", b.starts)
	b.report.goal("start", "start to ready, new", first.Seconds(), 0.5, "s", note)
	b.report.goal("start", "start to ready, after a stop", again.Seconds(), 0.5, "s", note)
	return nil
}

func (b *bench) startOnce() (first, again time.Duration, err error) {
	dir, remove, err := b.data()
	if err != nil {
		return 0, 0, err
	}
	defer remove()
	n, err := newNode(dir)
	if err != nil {
		return 0, 0, err
	}
	defer n.Kill()
	if first, err = startTimed(n); err != nil {
		return 0, 0, err
	}
	if err = n.Stop(); err != nil {
		return 0, 0, err
	}
	again, err = startTimed(n)
	return first, again, err
}

// idle measures what a new broker needs that nobody uses.
func (b *bench) idle(ctx context.Context) error {
	dir, remove, err := b.data()
	if err != nil {
		return err
	}
	defer remove()
	n, err := newNode(dir)
	if err != nil {
		return err
	}
	defer n.Kill()
	if _, err := startTimed(n); err != nil {
		return err
	}
	if err := pause(ctx, b.idleWait); err != nil {
		return err
	}
	before, err := cpuTime(n.Pid())
	if err != nil {
		return err
	}
	if err := pause(ctx, b.idleTime); err != nil {
		return err
	}
	after, err := cpuTime(n.Pid())
	if err != nil {
		return err
	}
	now, peak, err := residentBytes(n.Pid())
	if err != nil {
		return err
	}
	u, err := diskUsage(dir)
	if err != nil {
		return err
	}
	over := fmt.Sprintf("%v after start, over %v", b.idleWait, b.idleTime)
	b.report.goal("idle", "CPU", 100*(after-before).Seconds()/b.idleTime.Seconds(), 1, "% of a core", over)
	b.report.goal("idle", "resident memory", float64(now)/1e6, 60, "MB", fmt.Sprintf("peak since start %.0f MB", float64(peak)/1e6))
	b.report.goal("idle", "disk", float64(u.disk)/1e6, 300, "MB", fmt.Sprintf("%d files", u.files))
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	fmt.Printf("   waiting for %v\n", d)
	return wait(ctx, d)
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
