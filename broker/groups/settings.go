package groups

import (
	"time"

	"go.uber.org/zap"

	"github.com/mainstem/mainstem/broker/config"
	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group"
)

// maxGroupBytes bounds what the members of a classic group say, and what their
// leader assigns: both are one record of the log together.
const maxGroupBytes = 8 << 20

// leastRebalanceDelay is how long a new group's first member waits for others also when group.initial.rebalance.delay.ms is 0. Kafka
// takes as long to write the group's first record: clients that begin together meet there in the first generation,
// which their tests count on.
const leastRebalanceDelay = 5 * time.Millisecond

// followSettings keeps what machines ask for at hand.
func (h *Handlers) followSettings() {
	h.readSettings(nil)
	h.live.OnChange(h.readSettings, "group.max.size", "group.consumer.assignment.interval.ms")
}

func (h *Handlers) readSettings(*config.Values) {
	l := h.live
	h.consumers.Store(readConsumerSettings(l))
	h.settings.Store(&group.Settings{
		InitialRebalanceDelay: max(leastRebalanceDelay, l.Millis("group.initial.rebalance.delay.ms")),
		MinSessionTimeout:     l.Millis("group.min.session.timeout.ms"),
		MaxSessionTimeout:     l.Millis("group.max.session.timeout.ms"),
		MaxSize:               l.Int("group.max.size"),
		MaxBytes:              min(maxGroupBytes, int(l.Int64("mainstem.commitlog.segment.bytes")/4)),
		OffsetMetadataMax:     l.Int("offset.metadata.max.bytes"),
		OffsetRetention:       time.Duration(l.Int64("offsets.retention.minutes")) * time.Minute,
		OffsetRetentionCheck:  l.Millis("offsets.retention.check.interval.ms"),
	})
}

// Events are lines about the shards of an internal topic.
func Events(topic string, l *zap.Logger) coordinator.Events {
	return coordinator.Events{
		Loaded: func(partition int32, records int, took time.Duration) {
			const long = time.Second
			if records > 0 {
				level := zap.DebugLevel
				if took >= long {
					level = zap.InfoLevel
				}
				l.Log(level, "coordinator loaded", zap.String("topic", topic), zap.Int32("partition", partition),
					zap.Int("records", records), zap.Duration("took", took))
			}
		},
		Unreadable: func(partition int32, err error) {
			l.Error("a record of an internal topic cannot be read and is left out", zap.String("topic", topic),
				zap.Int32("partition", partition), zap.Error(err))
		},
		Resigned: func(partition int32, err error) {
			l.Warn("coordinator could not write its state; it is loaded again", zap.String("topic", topic),
				zap.Int32("partition", partition), zap.Error(err))
		},
	}
}
