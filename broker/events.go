package broker

import (
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/mainstem/mainstem/broker/metrics"
	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/protocol"
)

// logEvents turns what the log reports into metrics and lines.
func (b *Broker) logEvents() log.Events {
	l := b.logger
	return log.Events{
		Advanced: replica.Advanced,
		SyncTook: b.metrics.Sync.Observe,
		Corrupt: func(c log.CorruptSpan) {
			b.metrics.Corrupt.Inc()
			if c.Topic == "" && c.First < 0 && c.ID == (log.PartitionID{}) {
				l.Error("damaged bytes of the log were set aside; whose records they were is told when they are read",
					zap.String("file", c.File), zap.Int64("position", c.Pos), zap.Int64("bytes", c.Size), zap.String("reason", c.Reason))
				return
			}
			l.Error("damaged records were set aside; these offsets answer KAFKA_STORAGE_ERROR, all others are served",
				zap.String("topic", c.Topic), zap.Int32("partition", c.ID.Partition), zap.Int64("first", c.First),
				zap.Int64("last", c.Last), zap.String("file", c.File), zap.Int64("position", c.Pos), zap.String("reason", c.Reason))
		},
		TornTail: func(file string, pos, bytes int64) {
			l.Info("an unfinished write at the end of the log was cut; nothing acknowledged was in it",
				zap.String("file", file), zap.Int64("position", pos), zap.Int64("bytes", bytes))
		},
		Sealed: func(segment string, partitions int, took time.Duration) {
			l.Debug("segment sealed", zap.String("segment", segment), zap.Int("partitions", partitions), zap.Duration("took", took))
		},
		Freed: func(segments []string) { l.Debug("segments freed", zap.Strings("segments", segments)) },
		Checkpoint: func(partitions int, bytes int64, took time.Duration) {
			l.Debug("checkpoint written", zap.Int("partitions", partitions), zap.Int64("bytes", bytes), zap.Duration("took", took))
		},
		StartsMoved: func(partitions int, bytes int64) {
			l.Info("retention deleted records", zap.Int("partitions", partitions), zap.Int64("bytes", bytes))
		},
		DiskFull: func(full bool, cause error) {
			if full {
				l.Error("disk is full: produce is refused, reads go on; make room and it heals by itself", zap.Error(cause))
				return
			}
			l.Info("there is room on the disk again: produce is accepted")
		},
		Poisoned: func(cause error) {
			l.Error("a write or sync of the log failed: nothing more is acknowledged, the broker stops", zap.Error(cause))
		},
		Background: func(what string, err error) {
			l.Warn("background work failed; it is tried again", zap.String("what", what), zap.Error(err))
		},
	}
}

// serverEvents turns what the listeners report into metrics and lines.
func (b *Broker) serverEvents() protocol.Events {
	l := b.logger
	return protocol.Events{
		Accepted: func(c *protocol.ConnInfo) {
			b.metrics.ConnectionOpened(c.Listener)
			b.clients.Opened(c)
		},
		Closed: func(c *protocol.ConnInfo, err error) {
			b.metrics.ConnectionClosed(c.Listener)
			b.clients.Closed(c)
			switch {
			case errors.Is(err, protocol.ErrUnread), errors.Is(err, protocol.ErrStalled):
				l.Warn("client cut off: others wait for the memory that it holds", zap.Stringer("peer", c.Remote),
					zap.String("listener", c.Listener), zap.Error(err))
			case err != nil:
				l.Debug("connection closed", zap.Stringer("peer", c.Remote), zap.Error(err))
			}
		},
		Refused: func(r protocol.Refusal) {
			b.metrics.ConnectionRefused("bad request")
			l.Warn("client refused: "+r.Cause, zap.Stringer("peer", r.Conn.Remote), zap.String("listener", r.Conn.Listener),
				zap.String("client", r.ClientID), zap.Int16("api", r.Key), zap.Int16("version", r.Version),
				zap.String("remedy", r.Remedy), zap.Error(r.Err))
		},
		Rejected: func(r protocol.Rejection) {
			b.metrics.ConnectionRefused(r.Limit)
			fields := []zap.Field{zap.String("listener", r.Listener), zap.String("limit", r.Limit)}
			if r.Remote != nil { // Else nobody is refused: who comes waits.
				fields = append(fields, zap.Stringer("peer", r.Remote))
			}
			l.Warn("connection limit reached", fields...)
		},
		Answered:  func(e protocol.Exchange) { b.metrics.Request(e.Key, e.Version, e.Took) },
		ErrorCode: func(key, _, code int16) { b.metrics.RequestError(key, code) },
		UnknownError: func(c *protocol.ConnInfo, key, version int16, err error) {
			l.Error("request failed for a reason that clients see as UNKNOWN_SERVER_ERROR", zap.Stringer("peer", c.Remote),
				zap.Int16("api", key), zap.Int16("version", version), zap.Error(err))
		},
		AcceptFailed: func(listener string, err error) {
			l.Error("connections cannot be accepted; it is tried again", zap.String("listener", listener), zap.Error(err))
		},
	}
}

// fenceChanged reports when the broker may and may not acknowledge.
func (b *Broker) fenceChanged(fenced bool) {
	if metrics.Phase(b.phase.Load()) == metrics.ShuttingDown {
		return
	}
	if fenced {
		b.logger.Warn("the lease in etcd has run out: nothing is acknowledged until it is renewed")
		return
	}
	b.logger.Info("the lease in etcd holds again")
}
