package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/mainstem/mainstem/compat-tests/frames"
)

// scenario is something that is measured of brokers, in one of three ways.
type scenario struct {
	name, about string
	// warm measures a process that is warm, in each round anew.
	warm func(context.Context, *peerRun, broker) error
	// alone starts its own processes, once; of restricts it to some brokers.
	alone func(ctx context.Context, p *peerRun, broker string) error
	of    string // what a broker's name begins with
	// together measures all brokers at once, once.
	together func(context.Context, *peerRun) error

	rare    bool          // only when named
	fixed   time.Duration // what it takes, besides so many lengths of a measurement
	lengths float64
	kafka   time.Duration // what Kafka takes more
}

func peerScenarios() []scenario {
	return []scenario{
		{name: "partitions_16", about: "batches of 4 KiB over 16 partitions, 16 in a request, at full rate", warm: breadth(16), fixed: 2 * time.Second, lengths: 1.2},
		{name: "partitions_100", about: "the same over 100", warm: breadth(100), fixed: 2 * time.Second, lengths: 1.2, kafka: 2 * time.Second},
		{name: "partitions_1000", about: "the same over 1,000", warm: breadth(1000), fixed: 3 * time.Second, lengths: 1.2, kafka: 12 * time.Second},
		{name: "throughput", about: "full rate without and with lz4: batches of 256 KiB to 1 partition, 8 of 64 KiB a request to 16", warm: scenarioThroughput, fixed: 6 * time.Second, lengths: 4.8},
		{name: "client", about: "full rate of an idempotent client, batches of 1 MB, 1 and 16 partitions", warm: scenarioClient, fixed: 3 * time.Second, lengths: 2},
		{name: "small", about: "one record of 100 bytes a request: 1 connection, also with durability async, 16, 64, and 16 with 8 in flight", warm: scenarioSmall, fixed: 6 * time.Second, lengths: 6},
		{name: "e2e", about: "time from producer to consumer at 1,000 and 10,000 records a second", warm: scenarioEndToEnd, fixed: 8 * time.Second, lengths: 4},
		{name: "read", about: "what lies in memory: 1 and 16 partitions, and 100 whose batches lie between each other", warm: scenarioRead, fixed: 12 * time.Second, lengths: 1.5},
		{name: "catchup", about: "a producer's latency alone, and while old records are read from the disk", warm: scenarioCatchup, fixed: 10 * time.Second, lengths: 2, kafka: 3 * time.Second},
		{name: "start", about: "start to first acknowledged record: empty, and after kill -9 with 2 GiB", alone: scenarioStart, fixed: 12 * time.Second, kafka: 100 * time.Second},
		{name: "idle", about: "CPU, memory and threads of new brokers that nobody uses", together: scenarioIdle, fixed: 125 * time.Second},
		{name: "partitions_10000", about: "Mainstem with 10,000 partitions beside its own figures with 100", alone: wide(10_000), of: "mainstem", fixed: 70 * time.Second, lengths: 7.2},
		{name: "partitions_100000", about: "the same with 100,000", alone: wide(100_000), of: "mainstem", fixed: 130 * time.Second, lengths: 7.2},
		{name: "kafka_10000", about: "Apache Kafka with 10,000 partitions", alone: wide(10_000), of: "kafka", rare: true, fixed: 300 * time.Second, lengths: 1},
	}
}

func scenarioNamed(name string) *scenario {
	for _, s := range peerScenarios() {
		if s.name == name {
			return &s
		}
	}
	return nil
}

func usualScenarios() (names []string) {
	for _, s := range peerScenarios() {
		if !s.rare {
			names = append(names, s.name)
		}
	}
	return names
}

func scenarioThroughput(ctx context.Context, p *peerRun, b broker) error {
	for _, codec := range []int{0, 3} {
		name := frames.Codecs[codec]
		one := rawLoad{Connections: 1, InFlight: 5, Partitions: 1, PerRequest: 1, Records: 256, Size: 1024, Codec: codec}
		if err := p.raw(ctx, b, "throughput", "1 partition, "+name, one); err != nil {
			return err
		}
		many := rawLoad{Connections: 2, InFlight: 5, Partitions: 16, PerRequest: 8, Records: 64, Size: 1024, Codec: codec}
		if err := p.raw(ctx, b, "throughput", "16 partitions, "+name, many); err != nil {
			return err
		}
	}
	return nil
}

func scenarioSmall(ctx context.Context, p *peerRun, b broker) error {
	for _, c := range []struct {
		row                   string
		connections, inFlight int
	}{
		{"1 connection", 1, 1},
		{"1 connection, async", 1, 1},
		{"16 connections", 16, 1},
		{"64 connections", 64, 1},
		{"16 connections, 8 in flight", 16, 8},
	} {
		var settings []string
		if c.row == "1 connection, async" && p.now == "mainstem" { // Kafka is so by default.
			settings = []string{"mainstem.durability", "async"}
		}
		l := rawLoad{Connections: c.connections, InFlight: c.inFlight, Partitions: 16, PerRequest: 1, Records: 1, Size: 100}
		if err := p.raw(ctx, b, "small", c.row, l, settings...); err != nil {
			return err
		}
	}
	return nil
}

// raw measures one raw load on a topic of its own.
func (p *peerRun) raw(ctx context.Context, b broker, group, row string, l rawLoad, settings ...string) error {
	topic := fmt.Sprintf("raw-%x", rand.Uint32())
	if err := makeTopic(ctx, b.address(), topic, l.Partitions, settings...); err != nil {
		return err
	}
	r, m, err := p.produce(ctx, b, topic, l)
	if err != nil {
		return err
	}
	if l.Records > 1 {
		if err := p.addRate(group, row, r.bytes, r.took, m); err != nil {
			return err
		}
	} else {
		p.add(group, row, "requests/s", float64(r.requests)/r.took.Seconds(), m)
		p.add(group, row, "CPU µs/request", float64(m.broker.Microseconds())/float64(r.requests), m)
		p.add(group, row, "p50 ms", r.quantile(0.5), m)
		p.add(group, row, "p99 ms", r.quantile(0.99), m)
		p.add(group, row, "p99.9 ms", r.quantile(0.999), m)
	}
	return dropTopic(ctx, b.address(), topic)
}

// produce measures a raw load at full rate, once the topic is used to it.
func (p *peerRun) produce(ctx context.Context, b broker, topic string, l rawLoad) (r rawResult, m measured, err error) {
	if _, err := produceRaw(ctx, b.address(), topic, l, p.seconds()/5); err != nil {
		return r, m, err
	}
	m, err = p.measure(ctx, b, func() (err error) {
		r, err = produceRaw(ctx, b.address(), topic, l, p.seconds())
		return err
	})
	return r, m, err
}

// addRate adds how fast bytes went through, and what a GiB cost the broker.
func (p *peerRun) addRate(group, row string, bytes int64, took time.Duration, m measured) error {
	if bytes <= 0 || took <= 0 {
		return fmt.Errorf("%s, %s: nothing went through in %v", group, row, took)
	}
	p.add(group, row, "MB/s", float64(bytes)/1e6/took.Seconds(), m)
	p.add(group, row, "CPU s/GiB", m.broker.Seconds()/(float64(bytes)/(1<<30)), m)
	return nil
}

func (r *rawResult) quantile(q float64) float64 {
	if len(r.latencies) == 0 {
		return 0
	}
	return float64(r.latencies[int(q*float64(len(r.latencies)-1))].Microseconds()) / 1000
}

// breadth measures throughput over so many partitions.
func breadth(n int) func(context.Context, *peerRun, broker) error {
	return func(ctx context.Context, p *peerRun, b broker) error {
		topics, each, err := p.broaden(ctx, b, n)
		if err != nil {
			return err
		}
		if err := p.broad(ctx, b, n, topics); err != nil {
			return err
		}
		for i := range topics {
			if err := dropTopic(ctx, b.address(), rawTopic(wideName(n), i)); err != nil {
				return err
			}
		}
		p.add("partitions", fmt.Sprint(n), creationMetric, each, measured{})
		return p.addResident("partitions", fmt.Sprint(n), b, measured{})
	}
}

func wideName(n int) string { return fmt.Sprintf("wide-%d", n) }

// broaden makes partitions, and tells in how many topics and how long each took
// until it had a record.
func (p *peerRun) broaden(ctx context.Context, b broker, n int) (topics int, millis float64, err error) {
	const most = 2000 // partitions of a topic: brokers refuse to make 10,000 at once
	topics = (n + most - 1) / most
	began := time.Now()
	for i := range topics {
		if err := makeTopic(ctx, b.address(), rawTopic(wideName(n), i), n/topics); err != nil {
			return 0, 0, err
		}
	}
	took := time.Since(began)
	return topics, took.Seconds() * 1000 / float64(n), touch(ctx, b, n, topics)
}

func broadLoad(n, topics int) rawLoad {
	return rawLoad{Connections: 2, InFlight: 5, Partitions: n, Topics: topics, PerRequest: 16, Records: 4, Size: 1024}
}

// touch writes to all partitions twice more: what a broker does once for each,
// such as to begin its indexes, is no part of its full rate.
func touch(ctx context.Context, b broker, n, topics int) error {
	l := broadLoad(n, topics)
	f := newRawFrames(wideName(n), &l, 0, rawBatch(&l))
	l.Bytes = 2 * int64(f.groups) * int64(len(f.frame))
	_, err := produceRaw(ctx, b.address(), wideName(n), l, 2*time.Minute)
	return err
}

// broad measures full rate over partitions that are there.
func (p *peerRun) broad(ctx context.Context, b broker, n, topics int) error {
	r, m, err := p.produce(ctx, b, wideName(n), broadLoad(n, topics))
	if err != nil {
		return err
	}
	return p.addRate("partitions", fmt.Sprint(n), r.bytes, r.took, m)
}

func (p *peerRun) addResident(group, row string, b broker, m measured) error {
	resident, _, err := residentBytes(b.pid())
	if err == nil {
		p.add(group, row, "MB resident", float64(resident)/1e6, m)
	}
	return err
}
