package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// gaugeDescs are built once; the names are grouped by who answers for them.
type gaugeDescs struct {
	brokerState, ready, fenced *prometheus.Desc

	activeController, activeBrokers, fencedBrokers, topics, partitions,
	offline, imbalances *prometheus.Desc

	replicas, leaders, offlineReplicas, underReplicated, underMinISR, atMinISR,
	reassigning, producerIDs, isrShrinks, isrExpands *prometheus.Desc

	partitionSize, partitionStart, partitionEnd *prometheus.Desc

	offlineDirs, logBytes, segments, free, total, poisoned, full, quarantined,
	corrupt, syncSeconds, flushMillis, flushCount *prometheus.Desc

	sessions, sessionPartitions, sessionEvictions, parked *prometheus.Desc
}

func newGaugeDescs() gaugeDescs {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	var g gaugeDescs
	g.brokerState = desc("kafka_server_kafkaserver_brokerstate", "1 starting, 2 recovering, 3 running, 7 shutting down.")
	g.ready = desc("mainstem_ready", "1 while requests are served.")
	g.fenced = desc("mainstem_fenced", "1 while the lease may have run out and nothing is acknowledged.")

	g.activeController = desc("kafka_controller_kafkacontroller_activecontrollercount", "1 on the broker that reacts to changes of the cluster.")
	g.activeBrokers = desc("kafka_controller_kafkacontroller_activebrokercount", "Brokers that are alive.")
	g.fencedBrokers = desc("kafka_controller_kafkacontroller_fencedbrokercount", "Brokers that are registered but not alive.")
	g.topics = desc("kafka_controller_kafkacontroller_globaltopiccount", "Topics of the cluster.")
	g.partitions = desc("kafka_controller_kafkacontroller_globalpartitioncount", "Partitions of the cluster.")
	g.offline = desc("kafka_controller_kafkacontroller_offlinepartitionscount", "Partitions without a leader.")
	g.imbalances = desc("kafka_controller_kafkacontroller_preferredreplicaimbalancecount", "Partitions that are not led by their preferred replica.")

	g.replicas = desc("kafka_server_replicamanager_partitioncount", "Replicas on this broker.")
	g.leaders = desc("kafka_server_replicamanager_leadercount", "Partitions that this broker leads.")
	g.offlineReplicas = desc("kafka_server_replicamanager_offlinereplicacount", "Replicas on this broker that are not served.")
	g.underReplicated = desc("kafka_server_replicamanager_underreplicatedpartitions", "Led partitions with a replica out of sync.")
	g.underMinISR = desc("kafka_server_replicamanager_underminisrpartitioncount", "Led partitions with fewer replicas in sync than min.insync.replicas.")
	g.atMinISR = desc("kafka_server_replicamanager_atminisrpartitioncount", "Led partitions with just min.insync.replicas in sync.")
	g.reassigning = desc("kafka_server_replicamanager_reassigningpartitions", "Led partitions that are being moved.")
	g.producerIDs = desc("kafka_server_replicamanager_produceridcount", "Idempotent producers that are remembered, counted once a partition.")
	g.isrShrinks = desc("kafka_server_replicamanager_isrshrinks_total", "Replicas taken out of sync.")
	g.isrExpands = desc("kafka_server_replicamanager_isrexpands_total", "Replicas back in sync.")

	g.partitionSize = desc("kafka_log_log_size", "Bytes of a partition.", "topic", "partition")
	g.partitionStart = desc("kafka_log_log_logstartoffset", "First offset of a partition.", "topic", "partition")
	g.partitionEnd = desc("kafka_log_log_logendoffset", "Next offset of a partition.", "topic", "partition")

	g.offlineDirs = desc("kafka_log_logmanager_offlinelogdirectorycount", "1 when the log is poisoned.")
	g.logBytes = desc("mainstem_log_bytes", "Bytes of all files of the log.")
	g.segments = desc("mainstem_log_segments", "Segments of the log.")
	g.free = desc("mainstem_disk_free_bytes", "Bytes free on the filesystem of the log.")
	g.total = desc("mainstem_disk_total_bytes", "Size of the filesystem of the log.")
	g.poisoned = desc("mainstem_log_poisoned", "1 after a failed write or sync of the log: the broker exits.")
	g.full = desc("mainstem_log_full", "1 while produce is refused for want of disk space.")
	g.quarantined = desc("mainstem_log_quarantined_offsets", "Offsets that cannot be read because their bytes are damaged.")
	g.corrupt = desc("mainstem_log_corrupt_frames_total", "Damaged records found in the log.")
	g.syncSeconds = desc("mainstem_log_sync_duration_seconds", "Time that a sync of the log took.")
	g.flushMillis = desc("kafka_log_logflushstats_logflushrateandtimems", "Milliseconds that a sync of the log took, over the last one to two minutes.", "quantile")
	g.flushCount = desc("kafka_log_logflushstats_logflushrateandtimems_count", "Syncs of the log.")

	g.sessions = desc("kafka_server_fetchsessioncache_numincrementalfetchsessions", "Incremental fetch sessions.")
	g.sessionPartitions = desc("kafka_server_fetchsessioncache_numincrementalfetchpartitionscached", "Partitions in fetch sessions.")
	g.sessionEvictions = desc("kafka_server_fetchsessioncache_incrementalfetchsessionevictions_total", "Fetch sessions evicted for a new one.")
	g.parked = desc("kafka_server_delayedoperationpurgatory_purgatorysize", "Requests that wait for data or acks.", "delayedOperation")
	return g
}

func (m *Metrics) collectGauges(ch chan<- prometheus.Metric, now time.Time) {
	m.mu.Lock()
	s := m.source
	m.mu.Unlock()
	g := &m.gauges
	if s.State != nil {
		v := s.State()
		ch <- gauge(g.brokerState, float64(v.Phase))
		ch <- gauge(g.ready, flag(v.Ready))
		ch <- gauge(g.fenced, flag(v.Fenced))
	}
	if s.Cluster != nil {
		g.sendCluster(ch, s.Cluster())
	}
	if s.Partitions != nil {
		g.sendPartitions(ch, s.Partitions())
	}
	if s.EachPartition != nil {
		m.sendPartitionLogs(ch, s.EachPartition)
	}
	if s.Log != nil {
		g.sendLog(ch, s.Log())
	}
	if s.Sessions != nil {
		v := s.Sessions()
		ch <- gauge(g.sessions, float64(v.Sessions))
		ch <- gauge(g.sessionPartitions, float64(v.Partitions))
	}
	if s.Parked != nil {
		v := s.Parked()
		ch <- gauge(g.parked, float64(v.Produces), "Produce")
		ch <- gauge(g.parked, float64(v.Fetches), "Fetch")
	}
	if s.Quotas != nil {
		collectQuotas(ch, s.Quotas(maxQuotas))
	}
	ch <- counter(g.sessionEvictions, float64(m.SessionEvictions.Value()))
	ch <- counter(g.isrShrinks, float64(m.ISRShrinks.Value()))
	ch <- counter(g.isrExpands, float64(m.ISRExpands.Value()))
	ch <- counter(g.corrupt, float64(m.Corrupt.Value()))

	syncs := m.Sync.read()
	ch <- histogram(g.syncSeconds, syncs, 1)
	ch <- counter(g.flushCount, float64(syncs.total))
	m.quantiles(ch, g.flushMillis, syncs, now)
}

func (g *gaugeDescs) sendCluster(ch chan<- prometheus.Metric, v Cluster) {
	ch <- gauge(g.activeController, flag(v.ActiveController))
	ch <- gauge(g.activeBrokers, float64(v.Brokers))
	ch <- gauge(g.fencedBrokers, float64(v.FencedBrokers))
	ch <- gauge(g.topics, float64(v.Topics))
	ch <- gauge(g.partitions, float64(v.Partitions))
	ch <- gauge(g.offline, float64(v.OfflinePartitions))
	ch <- gauge(g.imbalances, float64(v.PreferredLeaderImbalances))
}

func (g *gaugeDescs) sendPartitions(ch chan<- prometheus.Metric, v Partitions) {
	ch <- gauge(g.replicas, float64(v.Replicas))
	ch <- gauge(g.leaders, float64(v.Leaders))
	ch <- gauge(g.offlineReplicas, float64(v.Offline))
	ch <- gauge(g.underReplicated, float64(v.UnderReplicated))
	ch <- gauge(g.underMinISR, float64(v.UnderMinISR))
	ch <- gauge(g.atMinISR, float64(v.AtMinISR))
	ch <- gauge(g.reassigning, float64(v.Reassigning))
	ch <- gauge(g.producerIDs, float64(v.ProducerIDs))
}

func (g *gaugeDescs) sendLog(ch chan<- prometheus.Metric, v Log) {
	ch <- gauge(g.offlineDirs, flag(v.Poisoned))
	ch <- gauge(g.poisoned, flag(v.Poisoned))
	ch <- gauge(g.full, flag(v.Full))
	ch <- gauge(g.logBytes, float64(v.Bytes))
	ch <- gauge(g.segments, float64(v.Segments))
	ch <- gauge(g.free, float64(v.FreeBytes))
	ch <- gauge(g.total, float64(v.TotalBytes))
	ch <- gauge(g.quarantined, float64(v.QuarantinedOffsets))
}

// sendPartitionLogs shows at most as many partitions as topics may have series,
// so that one topic of very many partitions does not flood a scrape either.
func (m *Metrics) sendPartitionLogs(ch chan<- prometheus.Metric, each func(func(PartitionLog) bool)) {
	m.mu.Lock()
	shown := make(map[string]bool, len(m.topics))
	for name := range m.topics {
		shown[name] = true
	}
	left := m.maxTopics
	m.mu.Unlock()
	each(func(p PartitionLog) bool {
		if !shown[p.Topic] {
			return true
		}
		if left <= 0 {
			return false
		}
		left--
		n := strconv.Itoa(int(p.Partition))
		ch <- gauge(m.gauges.partitionSize, float64(p.Bytes), p.Topic, n)
		ch <- gauge(m.gauges.partitionStart, float64(p.Start), p.Topic, n)
		ch <- gauge(m.gauges.partitionEnd, float64(p.End), p.Topic, n)
		return true
	})
}
