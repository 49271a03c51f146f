package config

// ownRows are the broker configs that Kafka does not have.
var ownRows = []row{
	{DurabilityName, stringT, "fsync", clusterWide, oneOf("fsync", "async"), "What an acknowledged record survives: fsync a power loss, async a killed process only."},
	{"mainstem.commitlog.segment.bytes", longT, "134217728", static, between(1<<20, 1<<30), "Size of a segment file of the shared commitlog."},
	{"mainstem.http.listener", stringT, "127.0.0.1:9644", static, hostPort, "Address for health, readiness and metrics; empty turns it off."},
	{"mainstem.metrics.topic.limit", intT, "1000", clusterWide, atLeast(0), "Topics that have metrics of their own; the rest are added up."},
	{"etcd.endpoints", listT, "", static, endpoints, "Addresses of an etcd cluster; empty runs one inside the broker."},
	{"etcd.prefix", stringT, "/mainstem", static, keyPrefix, "Start of all keys in etcd; one for each Mainstem cluster."},
	{"etcd.user", stringT, null, static, nil, "User name for etcd."},
	{"etcd.password", passwordT, null, static, nil, "Password for etcd."},
	{"etcd.tls.ca", stringT, null, static, nil, "File with the certificates that etcd's is checked against."},
	{"etcd.tls.cert", stringT, null, static, nil, "File with the broker's certificate towards etcd."},
	{"etcd.tls.key", stringT, null, static, nil, "File with the key of that certificate."},
	{"etcd.tls.server.name", stringT, null, static, nil, "Name to expect in etcd's certificate, if not the address."},
}

// UnstableFeatures is the config that adds levels of features that Kafka counts as unstable. A cluster made with it begins with them.
const UnstableFeatures = "unstable.feature.versions.enable"

// hiddenRows are honoured or known, and never listed, as in Kafka.
var hiddenRows = []row{
	{"log.initial.task.delay.ms", longT, "30000", static, atLeast(0), "Wait before the first look for records to delete."},
	{"producer.id.expiration.check.interval.ms", intT, "600000", static, atLeast(1), "Time between looks for producers to forget."},
	{"unstable.api.versions.enable", boolT, "false", static, nil, "Serves versions of APIs that Kafka counts as unstable: InitProducerId 6."},
	{UnstableFeatures, boolT, "false", static, nil, "Supports levels of features that Kafka counts as unstable: metadata.version 31, with which a new cluster begins."},
	{"super.users", stringT, null, static, nil, "Users who may do everything; without an authorizer everybody may."},
	{"allow.everyone.if.no.acl.found", stringT, null, static, nil, "Belongs to an authorizer."},
	{"leader.replication.throttled.rate", longT, "9223372036854775807", clusterWide, atLeast(0), "Bytes a second for throttled leaders."},
	{"follower.replication.throttled.rate", longT, "9223372036854775807", clusterWide, atLeast(0), "Bytes a second for throttled followers."},
	{"replica.alter.log.dirs.io.max.bytes.per.second", longT, "9223372036854775807", clusterWide, atLeast(0), "Bytes a second for moves between directories."},
}

// ownTopicRows are the topic configs that Kafka does not have.
var ownTopicRows = []row{
	{DurabilityName, stringT, "fsync", clusterWide, oneOf("fsync", "async"), "What an acknowledged record survives: fsync a power loss, async a killed process only."},
}

// hiddenTopicRows are accepted for a topic and listed where it sets them only, as in Kafka.
var hiddenTopicRows = []row{
	{"internal.segment.bytes", intT, null, clusterWide, atLeast(14), "segment.bytes without its lower bound, for tests."},
}

// clientMetricsRows are the configs of a client metrics subscription.
var clientMetricsRows = []row{
	{"interval.ms", intT, "300000", clusterWide, between(100, 3600000), "Time between a client's pushes of metrics."},
	{"match", listT, "", clusterWide, matchPatterns, "Which clients are meant, as key=pattern pairs."},
	{"metrics", listT, "", clusterWide, noEmptyElement, "Prefixes of the metrics to push; * means all."},
}

// DurabilityName is the name of the durability setting, of brokers and topics.
const DurabilityName = "mainstem.durability"
