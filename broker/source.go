package broker

import (
	"github.com/mainstem/mainstem/broker/metrics"
)

// source tells the metrics what is, when somebody asks.
func (b *Broker) source() metrics.Source {
	return metrics.Source{
		State: func() metrics.State {
			return metrics.State{Ready: b.Ready(), Fenced: b.metadata.Fenced(), Phase: metrics.Phase(b.phase.Load())}
		},
		Cluster:       b.clusterFigures,
		Partitions:    b.partitionFigures,
		EachPartition: b.eachPartition,
		Log:           b.logFigures,
		Quotas:        b.quotaFigures,
		Sessions: func() metrics.Sessions {
			s, p := b.records.Sessions()
			return metrics.Sessions{Sessions: s, Partitions: p}
		},
		Parked: func() metrics.Parked {
			p, f := b.records.Parked()
			return metrics.Parked{Produces: p, Fetches: f}
		},
	}
}

func (b *Broker) clusterFigures() metrics.Cluster {
	img := b.metadata.Image()
	c := metrics.Cluster{Topics: img.TopicCount(), Partitions: img.PartitionCount()}
	for _, n := range img.Brokers() {
		c.Brokers++
		if n.Fenced {
			c.FencedBrokers++
		}
	}
	for t := range img.Topics() {
		for i := range t.Partitions {
			p := &t.Partitions[i]
			switch {
			case p.Leader < 0:
				c.OfflinePartitions++
			case len(p.Replicas) > 0 && p.Leader != p.Replicas[0]:
				c.PreferredLeaderImbalances++
			}
		}
	}
	// One broker is the controller of its cluster as long as it holds its lease.
	c.ActiveController = c.Brokers-c.FencedBrokers == 1 && !b.metadata.Fenced()
	return c
}

func (b *Broker) partitionFigures() metrics.Partitions {
	var f metrics.Partitions
	for p := range b.replicas.Partitions() {
		f.Replicas++
		if p.Leads() {
			f.Leaders++
		}
	}
	return f
}

func (b *Broker) eachPartition(yield func(metrics.PartitionLog) bool) {
	for p := range b.replicas.Partitions() {
		l := p.Log()
		if !yield(metrics.PartitionLog{
			Topic: p.Topic().Name, Partition: p.Index(), Bytes: l.Bytes(), Start: l.Start(), End: l.End(),
		}) {
			return
		}
	}
}

func (b *Broker) logFigures() metrics.Log {
	stats := b.store.Stats()
	free, total, _ := b.store.Space()
	var damaged int64
	for p := range b.replicas.Partitions() {
		for _, span := range p.Log().Damaged() {
			damaged += span[1] - span[0] + 1
		}
	}
	return metrics.Log{
		Bytes: stats.LogBytes, Segments: stats.Segments, FreeBytes: free, TotalBytes: total,
		Poisoned: stats.Poisoned, Full: stats.DiskFull, QuarantinedOffsets: damaged,
	}
}
