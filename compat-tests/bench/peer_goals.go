package main

// Figures that goals name.
const (
	firstAckMetric = "s to first ack"
	ownMetric      = "MB/s to its own at 100"
	idleMetric     = "% of a core idle, more than without any"
	creationMetric = "ms each to create and write to"
)

// goal is what Mainstem's figure shall be: its ratio to Kafka's that does not
// sync, or itself.
type goal struct {
	group, name, metric string // name "" is every row of the group
	bound               float64
	least, itself       bool
}

func (g *goal) String() string {
	text := "≤ " + number(g.bound)
	if g.least {
		text = "≥ " + number(g.bound)
	}
	if g.itself {
		return text + " itself"
	}
	return text + "x"
}

func goals() []goal {
	most := func(group, name, metric string, bound float64) goal {
		return goal{group: group, name: name, metric: metric, bound: bound}
	}
	least := func(group, name, metric string, bound float64) goal {
		return goal{group: group, name: name, metric: metric, bound: bound, least: true}
	}
	itself := func(g goal) goal { g.itself = true; return g }
	return []goal{
		least("throughput", "1 partition, none", "MB/s", 1.8), most("throughput", "1 partition, none", "CPU s/GiB", 0.45),
		least("throughput", "16 partitions, none", "MB/s", 1.5), most("throughput", "16 partitions, none", "CPU s/GiB", 0.5),
		least("throughput", "1 partition, lz4", "MB/s", 1.3), most("throughput", "1 partition, lz4", "CPU s/GiB", 0.7),
		least("throughput", "16 partitions, lz4", "MB/s", 1.3), most("throughput", "16 partitions, lz4", "CPU s/GiB", 0.7),
		least("client", "", "MB/s", 1.1), most("client", "", "CPU s/GiB", 0.5),
		least("small", "1 connection", "requests/s", 1), most("small", "1 connection", "p99.9 ms", 0.25),
		least("small", "1 connection, async", "requests/s", 2),
		least("small", "16 connections", "requests/s", 2), most("small", "16 connections", "CPU µs/request", 0.4),
		least("small", "64 connections", "requests/s", 2.5), most("small", "64 connections", "CPU µs/request", 0.35),
		least("small", "16 connections, 8 in flight", "requests/s", 4), most("small", "16 connections, 8 in flight", "CPU µs/request", 0.25),
		most("e2e", "", "p50 ms", 1), most("e2e", "", "p99 ms", 0.4), most("e2e", "", "p99.9 ms", 0.2),
		least("read", "", "MB/s", 1), most("read", "", "CPU s/GiB", 1),
		least("partitions", "100", "MB/s", 2.5), most("partitions", "100", "CPU s/GiB", 0.4), most("partitions", "100", "MB resident", 0.2),
		least("partitions", "1000", "MB/s", 2.5), most("partitions", "1000", "CPU s/GiB", 0.4), most("partitions", "1000", "MB resident", 0.2),
		itself(most("partitions", "", creationMetric, 0.5)),
		itself(least("partitions", "", ownMetric, 0.9)),
		itself(most("partitions", "", idleMetric, 0.2)),
		itself(most("start", "empty", firstAckMetric, 0.3)), itself(most("start", "after kill -9", firstAckMetric, 1)),
		itself(most("idle", "", "% of a core", 1)), itself(most("idle", "", "MB resident", 60)),
		most("catchup", "producer, while old records are read from the disk", "p99 ms", 0.5),
	}
}

func goalOf(row *peerRow) *goal {
	for _, g := range goals() {
		if g.group == row.Group && g.metric == row.Metric && (g.name == "" || g.name == row.Name) {
			return &g
		}
	}
	return nil
}

// verdict says whether a goal is reached; "" if there is none.
type verdict string

const (
	goalMet     verdict = "met"
	goalMissed  verdict = "MISSED"
	goalUnknown verdict = "not measurable: other work"
)

// judge returns the ratio of a broker's figure to the first one's, the goal, and
// whether it is reached. Goals are Mainstem's, and to Kafka as it comes.
func (r *peerReport) judge(row *peerRow, broker string) (ratio, wanted string, v verdict) {
	got, have := r.ratio(row, broker)
	if have {
		ratio = number(got) + "x"
	}
	g := goalOf(row)
	if g == nil || broker != "mainstem" {
		return ratio, "", ""
	}
	if g.itself {
		got, have = row.value(broker)
	} else if r.Brokers[0] != "kafka" {
		return ratio, "", ""
	}
	switch {
	case !have:
		return ratio, "", ""
	case row.latency() && (row.disturbed(broker) || row.disturbed(r.Brokers[0])):
		v = goalUnknown
	case g.least && got >= g.bound || !g.least && got <= g.bound:
		v = goalMet
	default:
		v = goalMissed
	}
	return ratio, g.String(), v
}
