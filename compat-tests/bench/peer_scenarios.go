package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/mainstem/mainstem/compat-tests/frames"
	"github.com/mainstem/mainstem/compat-tests/harness"
)

// scenario is what is measured of a broker that runs.
type scenario struct {
	name string
	run  func(context.Context, *peerRun, broker) error
}

func peerScenarios() []scenario {
	return []scenario{
		{"start", scenarioStart},
		{"throughput", scenarioThroughput},
		{"client", scenarioClient},
		{"small", scenarioSmall},
		{"latency", scenarioLatency},
		{"read", scenarioRead},
		{"partitions", scenarioPartitions},
	}
}

// scenarioStart looks at the fresh broker at rest; the start itself was timed
// before.
func scenarioStart(ctx context.Context, p *peerRun, b broker) error {
	if err := pause(ctx, 10*time.Second); err != nil {
		return err
	}
	const during = 10 * time.Second
	m, err := p.measure(ctx, b, func() error { return pause(ctx, during) })
	if err != nil {
		return err
	}
	p.report.add(p.now, "idle", "after start", "% of a core", sample{100 * m.broker.Seconds() / during.Seconds(), m.others})
	resident, _, err := residentBytes(b.pid())
	p.report.add(p.now, "idle", "after start", "MB resident", sample{float64(resident) / 1e6, m.others})
	return err
}

func scenarioThroughput(ctx context.Context, p *peerRun, b broker) error {
	if err := warm(ctx, b); err != nil {
		return err
	}
	for _, codec := range []int{0, 3} {
		name := frames.Codecs[codec]
		one := rawLoad{Connections: 1, InFlight: 5, Partitions: 1, PerRequest: 1, Records: 256, Size: 1024, Codec: codec}
		if err := p.raw(ctx, b, "throughput", "1 partition "+name, one); err != nil {
			return err
		}
		many := rawLoad{Connections: 2, InFlight: 5, Partitions: 16, PerRequest: 8, Records: 64, Size: 1024, Codec: codec}
		if err := p.raw(ctx, b, "throughput", "16 partitions "+name, many); err != nil {
			return err
		}
	}
	return nil
}

func scenarioSmall(ctx context.Context, p *peerRun, b broker) error {
	if err := warm(ctx, b); err != nil {
		return err
	}
	for _, c := range []struct{ connections, inFlight int }{{1, 1}, {16, 1}, {64, 1}, {16, 8}} {
		row := fmt.Sprintf("%d connections", c.connections)
		if c.connections == 1 {
			row = "1 connection"
		}
		if c.inFlight > 1 {
			row += fmt.Sprintf(", %d in flight", c.inFlight)
		}
		l := rawLoad{Connections: c.connections, InFlight: c.inFlight, Partitions: 16, PerRequest: 1, Records: 1, Size: 100}
		if err := p.raw(ctx, b, "small", row, l); err != nil {
			return err
		}
	}
	return nil
}

// raw measures one raw load.
func (p *peerRun) raw(ctx context.Context, b broker, group, row string, l rawLoad) error {
	topic := fmt.Sprintf("raw-%x", rand.Uint32())
	if err := makeTopic(ctx, b.address(), topic, l.Partitions); err != nil {
		return err
	}
	var r rawResult
	m, err := p.measure(ctx, b, func() (err error) {
		r, err = produceRaw(ctx, b.address(), topic, l, p.seconds)
		return err
	})
	if err != nil {
		return err
	}
	add := func(metric string, v float64) { p.report.add(p.now, group, row, metric, sample{v, m.others}) }
	if l.Records > 1 {
		add("MB/s", float64(r.bytes)/1e6/r.took.Seconds())
		add("CPU s/GiB", m.broker.Seconds()/(float64(r.bytes)/(1<<30)))
	} else {
		add("requests/s", float64(r.requests)/r.took.Seconds())
		add("CPU µs/request", float64(m.broker.Microseconds())/float64(r.requests))
		add("p50 ms", r.quantile(0.5))
		add("p99 ms", r.quantile(0.99))
		add("p99.9 ms", r.quantile(0.999))
	}
	return dropTopic(ctx, b.address(), topic)
}

func (r *rawResult) quantile(q float64) float64 {
	if len(r.latencies) == 0 {
		return 0
	}
	return float64(r.latencies[int(q*float64(len(r.latencies)-1))].Microseconds()) / 1000
}

// loaded is what is used of the output of `mainstem bench`.
type loaded struct {
	PerSecond float64           `json:"records_per_second"`
	Megabytes float64           `json:"megabytes_per_second"`
	Bytes     float64           `json:"bytes"`
	Errors    int64             `json:"errors"`
	EndToEnd  *loadedPercentile `json:"end_to_end_ms"`
}

type loadedPercentile struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99_9"`
}

// client measures with `mainstem bench`, an ordinary client.
func (p *peerRun) client(ctx context.Context, b broker, args ...string) (l loaded, m measured, err error) {
	bin, err := harness.Binary()
	if err != nil {
		return l, m, err
	}
	args = append([]string{"bench"}, append(args, "--bootstrap", b.address(), "--json", "--quiet")...)
	m, err = p.measure(ctx, b, func() error {
		cmd := exec.CommandContext(ctx, bin, args...)
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("%v: %w", args, err)
		}
		l = loaded{}
		return json.Unmarshal(out, &l)
	})
	if err == nil && l.Errors > 0 {
		err = fmt.Errorf("%v: %d records failed", args, l.Errors)
	}
	return l, m, err
}

func scenarioClient(ctx context.Context, p *peerRun, b broker) error {
	for _, partitions := range []int{1, 16} {
		l, m, err := p.client(ctx, b, "produce", "--partitions", strconv.Itoa(partitions), "--batch", "1000000", "--warmup", "1s", "--duration", p.seconds.String())
		if err != nil {
			return err
		}
		row := fmt.Sprintf("%d partitions", partitions)
		p.report.add(p.now, "client", row, "MB/s", sample{l.Megabytes, m.others})
		// The broker's CPU time covers the warm-up, whose bytes are not told: they are taken to come at the same rate.
		written := l.Megabytes * 1e6 * (p.seconds + time.Second).Seconds()
		p.report.add(p.now, "client", row, "CPU s/GiB", sample{m.broker.Seconds() / (written / (1 << 30)), m.others})
	}
	return nil
}

func scenarioLatency(ctx context.Context, p *peerRun, b broker) error {
	for _, rate := range []int{1000, 10000} {
		l, m, err := p.client(ctx, b, "latency", "--rate", strconv.Itoa(rate), "--partitions", "4", "--duration", (2 * p.seconds).String())
		if err != nil {
			return err
		}
		if l.EndToEnd == nil {
			return fmt.Errorf("nothing was read at %d records a second", rate)
		}
		row := fmt.Sprintf("%d records/s", rate)
		for i, v := range []float64{l.EndToEnd.P50, l.EndToEnd.P90, l.EndToEnd.P99, l.EndToEnd.P999} {
			p.report.add(p.now, "latency", row, percentiles()[i], sample{v, m.others})
		}
	}
	return nil
}

// scenarioRead reads what was just written, from memory: in few partitions, and
// in a hundred whose batches lie between each other.
func scenarioRead(ctx context.Context, p *peerRun, b broker) error {
	for _, partitions := range []int{16, 100} {
		topic := fmt.Sprintf("read-%d", partitions)
		if err := makeTopic(ctx, b.address(), topic, partitions); err != nil {
			return err
		}
		l := rawLoad{Connections: 2, InFlight: 4, Partitions: partitions, PerRequest: 4, Records: 64, Size: 1024}
		if _, err := produceRaw(ctx, b.address(), topic, l, p.seconds); err != nil {
			return err
		}
		ends, err := topicEnds(ctx, b.address(), topic)
		if err != nil {
			return err
		}
		var r rawResult
		m, err := p.measure(ctx, b, func() (err error) {
			r, err = fetchRaw(ctx, b.address(), topic, ends, 2)
			return err
		})
		if err != nil {
			return err
		}
		row := fmt.Sprintf("%d partitions", partitions)
		p.report.add(p.now, "read", row, "MB/s", sample{float64(r.bytes) / 1e6 / r.took.Seconds(), m.others})
		p.report.add(p.now, "read", row, "CPU s/GiB", sample{m.broker.Seconds() / (float64(r.bytes) / (1 << 30)), m.others})
		if err := dropTopic(ctx, b.address(), topic); err != nil {
			return err
		}
	}
	return nil
}

func scenarioPartitions(ctx context.Context, p *peerRun, b broker) error {
	for _, n := range p.counts {
		topic := fmt.Sprintf("wide-%d", n)
		began := time.Now()
		if err := makeTopic(ctx, b.address(), topic, n); err != nil { // With a record in each.
			return err
		}
		row := strconv.Itoa(n)
		p.report.add(p.now, "partitions", row, "ms each to create and use", sample{Value: time.Since(began).Seconds() * 1000 / float64(n)})
		l := rawLoad{Connections: 2, InFlight: 5, Partitions: n, PerRequest: min(16, n), Records: 4, Size: 1024}
		var r rawResult
		m, err := p.measure(ctx, b, func() (err error) {
			r, err = produceRaw(ctx, b.address(), topic, l, p.seconds)
			return err
		})
		if err != nil {
			return err
		}
		p.report.add(p.now, "partitions", row, "MB/s", sample{float64(r.bytes) / 1e6 / r.took.Seconds(), m.others})
		p.report.add(p.now, "partitions", row, "CPU s/GiB", sample{m.broker.Seconds() / (float64(r.bytes) / (1 << 30)), m.others})
		resident, _, err := residentBytes(b.pid())
		if err != nil {
			return err
		}
		p.report.add(p.now, "partitions", row, "MB resident", sample{float64(resident) / 1e6, m.others})
		if err := dropTopic(ctx, b.address(), topic); err != nil {
			return err
		}
	}
	return nil
}

// admin runs fn with an admin client.
func admin(address string, fn func(*kadm.Client) error) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.RetryTimeout(2*time.Minute), kgo.RequestTimeoutOverhead(3*time.Minute))
	if err != nil {
		return err
	}
	defer client.Close()
	a := kadm.NewClient(client)
	a.SetTimeoutMillis(180_000)
	return fn(a)
}

// makeTopic makes a topic and returns when all of its partitions have a leader.
func makeTopic(ctx context.Context, address, topic string, partitions int) error {
	return admin(address, func(a *kadm.Client) error {
		if _, err := a.CreateTopic(ctx, int32(partitions), 1, nil, topic); err != nil {
			return fmt.Errorf("create topic %s: %w", topic, err)
		}
		for {
			topics, err := a.ListTopics(ctx, topic)
			if err != nil {
				return err
			}
			led := 0
			for _, p := range topics[topic].Partitions {
				if p.Err == nil && p.Leader >= 0 {
					led++
				}
			}
			if led == partitions {
				return settle(ctx, address, topic, partitions)
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
}

func dropTopic(ctx context.Context, address, topic string) error {
	return admin(address, func(a *kadm.Client) error {
		_, err := a.DeleteTopic(ctx, topic)
		return err
	})
}

func topicEnds(ctx context.Context, address, topic string) (ends []int64, err error) {
	err = admin(address, func(a *kadm.Client) error {
		listed, err := a.ListEndOffsets(ctx, topic)
		if err != nil {
			return err
		}
		ends = make([]int64, len(listed[topic]))
		for p, e := range listed[topic] {
			if e.Err != nil {
				return e.Err
			}
			ends[p] = e.Offset
		}
		return nil
	})
	return ends, err
}

// halfRandom returns bytes of which about half can be compressed.
func halfRandom(n int, seed uint64) []byte {
	words, fresh := rand.New(rand.NewPCG(7, 7)), rand.New(rand.NewPCG(seed, 1))
	var dictionary [32]uint64
	for i := range dictionary {
		dictionary[i] = words.Uint64()
	}
	out := make([]byte, 0, n+32)
	for len(out) < n {
		repeat, at := fresh.IntN(2) == 0, fresh.IntN(len(dictionary)-4)
		for k := range 4 {
			v := fresh.Uint64()
			if repeat {
				v = dictionary[at+k]
			}
			for shift := 0; shift < 64; shift += 8 {
				out = append(out, byte(v>>shift))
			}
		}
	}
	return out[:n]
}
