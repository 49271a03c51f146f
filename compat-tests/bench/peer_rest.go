package main

import (
	"context"
	"fmt"
	"os"
)

// scenarioStart measures how long a process takes to its first acknowledged
// record, several times: on nothing, and on what a kill -9 has left.
func scenarioStart(ctx context.Context, p *peerRun, name string) error {
	for range p.report.Starts {
		b, dir, err := p.fresh(name)
		if err == nil {
			err = p.timeStart(ctx, b, "empty")
			b.kill()
		}
		_ = os.RemoveAll(dir)
		if err != nil {
			return err
		}
	}
	b, dir, err := p.fresh(name)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if _, err := b.start(ctx); err != nil {
		return err
	}
	defer b.kill()
	if _, err := backlog(ctx, b, "backlog", 16, 2*p.report.Fill); err != nil {
		return err
	}
	for range p.report.Starts {
		b.kill()
		if err := p.timeStart(ctx, b, "after kill -9"); err != nil {
			return err
		}
	}
	return nil
}

func (p *peerRun) timeStart(ctx context.Context, b broker, row string) error {
	if err := b.prepare(ctx); err != nil {
		return err
	}
	before := readCPU()
	took, err := b.start(ctx)
	if err != nil {
		return err
	}
	after := readCPU(b.pid())
	p.add("start", row, firstAckMetric, took.Seconds(), after.since(&before))
	return nil
}

// scenarioIdle watches new brokers at rest, all at once: they do not disturb each
// other.
func scenarioIdle(ctx context.Context, p *peerRun) error {
	brokers := make(map[string]broker)
	var pids []int
	for _, name := range p.report.Brokers {
		b, dir, err := p.fresh(name)
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if _, err := b.start(ctx); err != nil {
			return err
		}
		defer b.kill()
		brokers[name], pids = b, append(pids, b.pid())
	}
	if err := pause(ctx, p.report.Rest); err != nil {
		return err
	}
	before := readCPU(pids...)
	if err := pause(ctx, p.report.Rest); err != nil {
		return err
	}
	after := readCPU(pids...)
	m := after.since(&before)
	row := fmt.Sprintf("%.0f s after start, over %.0f s", p.report.Rest.Seconds(), p.report.Rest.Seconds())
	for _, name := range p.report.Brokers {
		b := brokers[name]
		p.now = name
		p.add("idle", row, "% of a core", share(&before, &after, b.pid()), m)
		if err := p.addResident("idle", row, b, m); err != nil {
			return err
		}
		threads, err := threadsOf(b.pid())
		if err != nil {
			return err
		}
		p.add("idle", row, "threads", float64(threads), m)
	}
	return nil
}

// share is how much of a core a process used between two readings, in percent.
func share(before, after *cpuUse, pid int) float64 {
	used := after.brokers[pid] - before.brokers[pid]
	return 100 * used.Seconds() / after.at.Sub(before.at).Seconds()
}

// wide measures a broker with very many partitions beside its own figures with
// a hundred, full rate and at rest, each in a process of its own.
func wide(n int) func(context.Context, *peerRun, string) error {
	return func(ctx context.Context, p *peerRun, name string) error {
		const few, samples = 100, 3
		b, dir, err := p.fresh(name)
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if _, err := b.start(ctx); err != nil {
			return err
		}
		defer b.kill()
		if isKafka(name) { // It has no goal to meet here, and takes long enough.
			return p.widen(ctx, b, n, 1)
		}
		alone, err := p.resting(ctx, b)
		if err != nil {
			return err
		}
		if err := p.widen(ctx, b, few, samples); err != nil {
			return err
		}
		own := medianOf(p.pending, "partitions", fmt.Sprint(few), "MB/s")
		p.rename("partitions", fmt.Sprint(few), fmt.Sprintf("100, before %d", n))
		if err := p.widen(ctx, b, n, samples); err != nil {
			return err
		}
		row := fmt.Sprint(n)
		p.add("partitions", row, ownMetric, medianOf(p.pending, "partitions", row, "MB/s")/own, measured{})
		crowded, err := p.resting(ctx, b)
		if err != nil {
			return err
		}
		p.add("partitions", row, "% of a core idle, without any", alone, measured{})
		p.add("partitions", row, "% of a core idle", crowded, measured{})
		p.add("partitions", row, idleMetric, max(0, crowded-alone), measured{})
		return nil
	}
}

// widen makes partitions and measures full rate over them.
func (p *peerRun) widen(ctx context.Context, b broker, n, samples int) error {
	topics, each, err := p.broaden(ctx, b, n)
	if err != nil {
		return err
	}
	p.add("partitions", fmt.Sprint(n), creationMetric, each, measured{})
	for range samples {
		if err := p.broad(ctx, b, n, topics); err != nil {
			return err
		}
	}
	return p.addResident("partitions", fmt.Sprint(n), b, measured{})
}

// resting is the share of a core that an unused broker takes, in percent.
func (p *peerRun) resting(ctx context.Context, b broker) (float64, error) {
	if err := pause(ctx, p.report.Rest/6); err != nil {
		return 0, err
	}
	before := readCPU(b.pid())
	if err := pause(ctx, p.report.Rest/3); err != nil {
		return 0, err
	}
	after := readCPU(b.pid())
	return share(&before, &after, b.pid()), nil
}
