package config

// groupRows are the configs of a group.
var groupRows = []row{
	{"consumer.assignment.interval.ms", intT, "1000", clusterWide, atLeast(0), "Least time between two assignments."},
	{"consumer.heartbeat.interval.ms", intT, "5000", clusterWide, atLeast(1), "Time between heartbeats of a member."},
	{"consumer.session.timeout.ms", intT, "45000", clusterWide, atLeast(1), "Time without a heartbeat after which a member is out."},
	{"share.assignment.interval.ms", intT, "1000", clusterWide, atLeast(0), "Least time between two assignments."},
	{"share.auto.offset.reset", stringT, "latest", clusterWide, offsetReset, "Where a share group starts: latest, earliest, or by_duration:PERIOD."},
	{"share.delivery.count.limit", intT, "5", clusterWide, atLeast(2), "Times that a record is delivered."},
	{"share.heartbeat.interval.ms", intT, "5000", clusterWide, atLeast(1), "Time between heartbeats of a member."},
	{"share.isolation.level", stringT, "read_uncommitted", clusterWide, oneOf("read_committed", "read_uncommitted"), "Whether records of open transactions are delivered."},
	{"share.partition.max.record.locks", intT, "2000", clusterWide, atLeast(100), "Records of a partition that may be held at a time."},
	{"share.record.lock.duration.ms", intT, "30000", clusterWide, atLeast(1000), "Time that a member may hold a record."},
	{"share.renew.acknowledge.enable", boolT, "true", clusterWide, nil, "Allow members to hold a record for longer."},
	{"share.session.timeout.ms", intT, "45000", clusterWide, atLeast(1), "Time without a heartbeat after which a member is out."},
	{"streams.assignment.interval.ms", intT, "1000", clusterWide, atLeast(0), "Least time between two assignments."},
	{"streams.heartbeat.interval.ms", intT, "5000", clusterWide, atLeast(1), "Time between heartbeats of a member."},
	{"streams.initial.rebalance.delay.ms", intT, "3000", clusterWide, atLeast(0), "Wait for more members before the first assignment."},
	{"streams.num.standby.replicas", intT, "0", clusterWide, atLeast(0), "Standby copies of tasks."},
	{"streams.session.timeout.ms", intT, "45000", clusterWide, atLeast(1), "Time without a heartbeat after which a member is out."},
}
