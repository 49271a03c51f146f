package config

// topicsRows are the broker configs about topics in general.
var topicsRows = []row{
	{"auto.create.topics.enable", boolT, "true", static, nil, "Make a topic when a client asks for one that does not exist and allows it."},
	{"auto.leader.rebalance.enable", boolT, "true", static, nil, "Give leadership back to preferred replicas in the background."},
	{"background.threads", intT, "10", clusterWide, atLeast(1), "Threads for background work; kept for compatibility."},
	{"compression.gzip.level", intT, "-1", clusterWide, gzipLevel, "Level for batches that the broker compresses with gzip."},
	{"compression.lz4.level", intT, "9", clusterWide, between(1, 17), "Level for batches that the broker compresses with lz4."},
	{"compression.type", stringT, "producer", clusterWide, oneOf("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"), "Codec that batches are stored in; producer keeps what was sent."},
	{"compression.zstd.level", intT, "3", clusterWide, between(-131072, 22), "Level for batches that the broker compresses with zstd."},
	{"default.replication.factor", intT, "1", static, nil, "Replicas of a topic that is made without saying how many."},
	{"delete.topic.enable", boolT, "true", static, nil, "Allow topics to be deleted."},
	{"leader.imbalance.check.interval.seconds", longT, "300", static, atLeast(1), "Time between looks at the balance of leaderships."},
	{"max.request.partition.size.limit", intT, "2000", static, atLeast(1), "Most partitions in one answer to DescribeTopicPartitions."},
	{"message.max.bytes", intT, "1048588", clusterWide, atLeast(0), "Largest record batch that a topic accepts, after compression."},
	{"min.insync.replicas", intT, "1", clusterOnly, atLeast(1), "Replicas that must have a record before acks=all is answered. One value for the cluster."},
	{"num.partitions", intT, "1", static, atLeast(1), "Partitions of a topic that is made without saying how many."},
	{"unclean.leader.election.enable", boolT, "false", clusterWide, nil, "Let a replica that may lack records become leader when no other is left."},
	{"follower.fetch.last.tiered.offset.enable", boolT, "false", clusterWide, nil, "Let an empty follower start at the last tiered offset; kept for compatibility."},
}
