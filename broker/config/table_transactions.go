package config

// transactionsRows are the broker configs of the transaction coordinator.
var transactionsRows = []row{
	{"add.partitions.to.txn.retry.backoff.max.ms", intT, "100", static, atLeast(0), "Longest time that adding partitions waits for the end of the transaction before; a produce waits for its own timeout."},
	{"add.partitions.to.txn.retry.backoff.ms", intT, "20", static, atLeast(1), "Rest between such retries."},
	{"transaction.abort.timed.out.transaction.cleanup.interval.ms", intT, "10000", static, atLeast(1), "Time between looks for transactions that took too long."},
	{"transaction.max.timeout.ms", intT, "900000", static, atLeast(1), "Longest timeout that a transaction may ask for."},
	{"transaction.partition.verification.enable", boolT, "true", clusterWide, nil, "Ask the coordinator whether a partition is in its transaction before the first write."},
	{"transaction.remove.expired.transaction.cleanup.interval.ms", intT, "3600000", static, atLeast(1), "Time between looks for transactional ids to forget."},
	{"transaction.state.log.load.buffer.size", intT, "5242880", static, atLeast(1), "Bytes read at a time when transaction state is loaded."},
	{"transaction.state.log.min.isr", intT, "2", static, atLeast(1), "min.insync.replicas of __transaction_state."},
	{"transaction.state.log.num.partitions", intT, "50", static, atLeast(1), "Partitions of __transaction_state."},
	{"transaction.state.log.replication.factor", shortT, "3", static, atLeast(1), "Replicas of __transaction_state."},
	{"transaction.state.log.segment.bytes", intT, "104857600", static, atLeast(1), "Segment size of __transaction_state."},
	{"transaction.two.phase.commit.enable", boolT, "false", static, mustBeFalse, "Allow transactions that an outside coordinator ends; not supported."},
	{"transactional.id.expiration.ms", intT, "604800000", static, atLeast(1), "Time after which an unused transactional id is forgotten."},
}
