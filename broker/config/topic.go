package config

// Durability says what an acknowledged record survives.
type Durability uint8

const (
	// Fsync acknowledges after the sync that covers the record: it survives power loss.
	Fsync Durability = iota
	// Async acknowledges once the kernel has the bytes: it survives a killed process.
	Async
)

// String returns the name that mainstem.durability takes.
func (d Durability) String() string {
	if d == Async {
		return "async"
	}
	return "fsync"
}

func durability(v value) Durability {
	if v.text == "async" {
		return Async
	}
	return Fsync
}

// Topic is the configuration of one topic, the broker's settings filled in
// where the topic has none. It is immutable and comparable.
type Topic struct {
	MaxMessageBytes int
	// RetentionMs and RetentionBytes are -1 for no limit.
	RetentionMs, RetentionBytes int64
	SegmentMs, SegmentJitterMs  int64
	SegmentBytes                int
	// Delete and Compact are cleanup.policy; both false keeps records for ever.
	Delete, Compact bool
	// CompressionType is producer, uncompressed, gzip, snappy, lz4 or zstd.
	CompressionType                string
	GzipLevel, Lz4Level, ZstdLevel int
	// LogAppendTime is message.timestamp.type.
	LogAppendTime bool
	// TimestampBeforeMaxMs and TimestampAfterMaxMs are math.MaxInt64 for no limit.
	TimestampBeforeMaxMs, TimestampAfterMaxMs int64
	MinInsyncReplicas                         int
	UncleanLeaderElection                     bool
	DeleteRetentionMs                         int64
	MinCompactionLagMs, MaxCompactionLagMs    int64
	MinCleanableDirtyRatio                    float64
	FlushMessages, FlushMs                    int64
	FileDeleteDelayMs                         int64
	IndexIntervalBytes, SegmentIndexBytes     int
	Preallocate                               bool
	// Durability of a topic of clients. Internal topics are always synced,
	// whatever stands here.
	Durability Durability
}

// Topic fills a topic's own settings up with the broker's. The caller caches
// it and asks again when the topic's settings or TopicGeneration changed.
// What does not pass the checks of this version is taken as not set.
func (l *Live) Topic(overrides map[string]string) *Topic {
	t := l.current.Load().topics
	for name, raw := range overrides {
		d := TopicDef(name)
		if d == nil {
			continue
		}
		if v, err := d.parse(raw); err == nil {
			t.set(name, v)
		}
	}
	return &t
}

// topicDefaults reads the topic settings off the broker's.
func topicDefaults(get func(string) value) Topic {
	var t Topic
	for _, d := range tables().topic.sorted {
		if len(d.Synonyms) == 0 {
			v, _ := d.convert(d.Default)
			t.set(d.Name, v)
			continue
		}
		t.set(d.Name, get(d.Synonyms[0]))
	}
	t.RetentionMs = retentionMs(get)
	t.SegmentMs = hoursOr(get, "log.roll.ms", "log.roll.hours")
	t.SegmentJitterMs = hoursOr(get, "log.roll.jitter.ms", "log.roll.jitter.hours")
	t.FlushMs = firstSet(get, "log.flush.interval.ms", "log.flush.scheduler.interval.ms")
	return t
}

// retentionMs is what log.retention.ms, .minutes and .hours come to; -1 has no limit.
func retentionMs(get func(string) value) int64 {
	ms := get("log.retention.ms")
	if ms.text == "" {
		if m := get("log.retention.minutes"); m.text != "" {
			ms.num = m.num * 60_000
		} else {
			ms.num = get("log.retention.hours").num * 3600_000
		}
	}
	if ms.num < 0 {
		return -1
	}
	return ms.num
}

func hoursOr(get func(string) value, ms, hours string) int64 {
	if v := get(ms); v.text != "" {
		return v.num
	}
	return get(hours).num * 3600_000
}

func firstSet(get func(string) value, names ...string) int64 {
	for _, n := range names {
		if v := get(n); v.text != "" {
			return v.num
		}
	}
	return 0
}

// set puts one understood value into its field.
func (t *Topic) set(name string, v value) {
	switch name {
	case "cleanup.policy":
		t.Delete, t.Compact = false, false
		for _, p := range v.list {
			t.Delete = t.Delete || p == "delete"
			t.Compact = t.Compact || p == "compact"
		}
	case "compression.type":
		t.CompressionType = v.text
	case "message.timestamp.type":
		t.LogAppendTime = v.text == "LogAppendTime"
	case "unclean.leader.election.enable":
		t.UncleanLeaderElection = v.num != 0
	case "preallocate":
		t.Preallocate = v.num != 0
	case "min.cleanable.dirty.ratio":
		t.MinCleanableDirtyRatio = v.real
	case DurabilityName:
		t.Durability = durability(v)
	default:
		if p := t.longField(name); p != nil {
			*p = v.num
		} else if p := t.intField(name); p != nil {
			*p = int(v.num)
		}
	}
}

func (t *Topic) longField(name string) *int64 {
	switch name {
	case "retention.ms":
		return &t.RetentionMs
	case "retention.bytes":
		return &t.RetentionBytes
	case "segment.ms":
		return &t.SegmentMs
	case "segment.jitter.ms":
		return &t.SegmentJitterMs
	case "message.timestamp.before.max.ms":
		return &t.TimestampBeforeMaxMs
	case "message.timestamp.after.max.ms":
		return &t.TimestampAfterMaxMs
	case "delete.retention.ms":
		return &t.DeleteRetentionMs
	case "min.compaction.lag.ms":
		return &t.MinCompactionLagMs
	case "max.compaction.lag.ms":
		return &t.MaxCompactionLagMs
	case "flush.messages":
		return &t.FlushMessages
	case "flush.ms":
		return &t.FlushMs
	case "file.delete.delay.ms":
		return &t.FileDeleteDelayMs
	}
	return nil
}

func (t *Topic) intField(name string) *int {
	switch name {
	case "max.message.bytes":
		return &t.MaxMessageBytes
	case "segment.bytes", "internal.segment.bytes":
		return &t.SegmentBytes
	case "compression.gzip.level":
		return &t.GzipLevel
	case "compression.lz4.level":
		return &t.Lz4Level
	case "compression.zstd.level":
		return &t.ZstdLevel
	case "min.insync.replicas":
		return &t.MinInsyncReplicas
	case "index.interval.bytes":
		return &t.IndexIntervalBytes
	case "segment.index.bytes":
		return &t.SegmentIndexBytes
	}
	return nil
}
