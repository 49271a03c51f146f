package config

import (
	"fmt"
	"strings"
)

// crossChecks finds settings that do not go together. get returns a broker
// config's value or default.
func crossChecks(get func(name string) value) []error {
	var errs []error
	wrong := func(name, reason string, args ...any) {
		errs = append(errs, &ValueError{Name: name, Value: get(name).text, Reason: fmt.Sprintf(reason, args...)})
	}
	if threads := get("log.cleaner.threads").num; get("log.cleaner.dedupe.buffer.size").num/threads <= 1<<20 {
		wrong("log.cleaner.dedupe.buffer.size", "must be more than 1048576 for each of log.cleaner.threads=%d", threads)
	}
	if get("replica.fetch.wait.max.ms").num > get("replica.socket.timeout.ms").num {
		wrong("replica.socket.timeout.ms", "must be at least replica.fetch.wait.max.ms")
	}
	if get("replica.fetch.wait.max.ms").num > get("replica.lag.time.max.ms").num {
		wrong("replica.fetch.wait.max.ms", "must be at most replica.lag.time.max.ms")
	}
	if q := get("queued.max.request.bytes").num; q > 0 && q < get("socket.request.max.bytes").num {
		wrong("queued.max.request.bytes", "must be at least socket.request.max.bytes, or below zero for no limit")
	}
	if get("max.connections.per.ip").num == 0 && get("max.connections.per.ip.overrides").text == "" {
		wrong("max.connections.per.ip", "may be 0 only if max.connections.per.ip.overrides is set")
	}
	if idle := get("connections.max.idle.ms").num; idle >= 0 && get("connection.failed.authentication.delay.ms").num >= idle {
		wrong("connection.failed.authentication.delay.ms", "must be less than connections.max.idle.ms")
	}
	errs = append(errs, localRetention(get)...)
	errs = append(errs, compactionLag(get, "log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms")...)
	errs = append(errs, groupLimits(get)...)
	return append(errs, etcdChecks(get)...)
}

// localRetention: what stays on local disk cannot be more than what stays.
func localRetention(get func(string) value) []error {
	var errs []error
	all := retentionMs(get)
	if local := get("log.local.retention.ms"); all != -1 && (local.num == -1 || local.num > all) {
		errs = append(errs, &ValueError{Name: "log.local.retention.ms", Value: local.text, Reason: fmt.Sprintf("must be at most log.retention.ms=%d", all)})
	}
	all = get("log.retention.bytes").num
	if local := get("log.local.retention.bytes"); all > -1 && (local.num == -1 || local.num > all) {
		errs = append(errs, &ValueError{Name: "log.local.retention.bytes", Value: local.text, Reason: fmt.Sprintf("must be at most log.retention.bytes=%d", all)})
	}
	return errs
}

func compactionLag(get func(string) value, least, most string) []error {
	if get(least).num <= get(most).num {
		return nil
	}
	return []error{&ValueError{Name: least, Value: get(least).text, Reason: "must be at most " + most + "=" + get(most).text}}
}

// limits are the bounds of a group config and its broker default.
type limits struct{ name, least, most string }

// groupRanges are named by the group config; the broker's default is the same
// with "group." before it.
var groupRanges = []limits{
	{"consumer.session.timeout.ms", "group.consumer.min.session.timeout.ms", "group.consumer.max.session.timeout.ms"},
	{"consumer.heartbeat.interval.ms", "group.consumer.min.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"},
	{"consumer.assignment.interval.ms", "group.consumer.min.assignment.interval.ms", "group.consumer.max.assignment.interval.ms"},
	{"share.session.timeout.ms", "group.share.min.session.timeout.ms", "group.share.max.session.timeout.ms"},
	{"share.heartbeat.interval.ms", "group.share.min.heartbeat.interval.ms", "group.share.max.heartbeat.interval.ms"},
	{"share.assignment.interval.ms", "group.share.min.assignment.interval.ms", "group.share.max.assignment.interval.ms"},
	{"share.record.lock.duration.ms", "group.share.min.record.lock.duration.ms", "group.share.max.record.lock.duration.ms"},
	{"share.delivery.count.limit", "group.share.min.delivery.count.limit", "group.share.max.delivery.count.limit"},
	{"share.partition.max.record.locks", "group.share.min.partition.max.record.locks", "group.share.max.partition.max.record.locks"},
	{"streams.session.timeout.ms", "group.streams.min.session.timeout.ms", "group.streams.max.session.timeout.ms"},
	{"streams.heartbeat.interval.ms", "group.streams.min.heartbeat.interval.ms", "group.streams.max.heartbeat.interval.ms"},
	{"streams.assignment.interval.ms", "group.streams.min.assignment.interval.ms", "group.streams.max.assignment.interval.ms"},
	{"streams.num.standby.replicas", "", "group.streams.max.standby.replicas"},
}

// sessions are the pairs of which the first must be longer.
var sessions = [][2]string{
	{"consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"},
	{"share.session.timeout.ms", "share.heartbeat.interval.ms"},
	{"streams.session.timeout.ms", "streams.heartbeat.interval.ms"},
}

func groupLimits(get func(string) value) []error {
	errs := ranges("group.", get, get)
	if get("group.min.session.timeout.ms").num > get("group.max.session.timeout.ms").num {
		errs = append(errs, &ValueError{Name: "group.min.session.timeout.ms", Value: get("group.min.session.timeout.ms").text, Reason: "must be at most group.max.session.timeout.ms"})
	}
	return errs
}

// ranges checks the configs named prefix + group config against the broker's bounds, in Kafka's words.
func ranges(prefix string, get, bound func(string) value) []error {
	var errs []error
	wrong := func(name, relation, other string, limit value) {
		errs = append(errs, &RelationError{Name: name, Value: get(name).text, Relation: relation, Other: other, Another: limit.text})
	}
	for _, r := range groupRanges {
		name := prefix + r.name
		if r.least != "" && get(name).num < bound(r.least).num {
			wrong(name, "greater than or equal to", r.least, bound(r.least))
		}
		if get(name).num > bound(r.most).num {
			wrong(name, "less than or equal to", r.most, bound(r.most))
		}
	}
	for _, s := range sessions {
		session, interval := prefix+s[0], prefix+s[1]
		if get(session).num <= get(interval).num {
			wrong(session, "greater than", interval, get(interval))
		}
	}
	return errs
}

func etcdChecks(get func(string) value) []error {
	var errs []error
	if (get("etcd.tls.cert").text == "") != (get("etcd.tls.key").text == "") {
		errs = append(errs, &ValueError{Name: "etcd.tls.cert", Value: get("etcd.tls.cert").text, Reason: "etcd.tls.cert and etcd.tls.key go together"})
	}
	if get("etcd.user").text == "" && get("etcd.password").text != "" {
		errs = append(errs, &ValueError{Name: "etcd.password", Value: "[hidden]", Reason: "etcd.user is missing"})
	}
	secure, plain := 0, 0
	for _, e := range get("etcd.endpoints").list {
		switch {
		case strings.HasPrefix(e, "https://"):
			secure++
		case strings.HasPrefix(e, "http://"):
			plain++
		}
	}
	if secure > 0 && plain > 0 {
		errs = append(errs, &ValueError{Name: "etcd.endpoints", Value: get("etcd.endpoints").text, Reason: "http and https are mixed"})
	}
	return errs
}
