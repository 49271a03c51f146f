package records

import (
	"errors"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/broker/config"
	"github.com/mainstem/mainstem/broker/metrics"
	"github.com/mainstem/mainstem/protocol/batch"
)

// checkEnvelope checks what can be told without the partition: that there is one
// batch, that the request's version knows its codec, and who may write.
func (p *produce) checkEnvelope(r *row) *failure {
	if r.cut != nil {
		f := p.invalid(r.cut)
		r.found.Stats.InvalidMagic.Inc()
		return &f
	}
	h, err := batch.ParseHeader(r.batch)
	if err != nil {
		return &failure{err: kerr.InvalidRecord}
	}
	switch {
	case p.req.Version < 7 && h.Codec() == batch.Zstd:
		return &failure{err: kerr.UnsupportedCompressionType}
	case p.req.Acks < acksAll || p.req.Acks > acksLeader:
		return &failure{err: kerr.InvalidRequiredAcks}
	case r.found.Internal && (p.call.ClientID == nil || *p.call.ClientID != adminClient):
		return &failure{err: kerr.InvalidTopicException}
	}
	return nil
}

// validate checks a batch by its topic's rules and turns it into what is stored:
// the same bytes, except that the records may be compressed by the topic's codec,
// and that timestamps in the header may be the broker's. stamped is the
// LogAppendTime, or -1.
func (p *produce) validate(r *row) (b []byte, stamped int64, f *failure) {
	b, stamped = r.batch, -1
	c := r.found.Config()
	if len(b) > c.MaxMessageBytes {
		r.found.Stats.BytesRejected.Add(len(b))
		return nil, -1, &failure{err: kerr.MessageTooLarge}
	}
	now := time.Now().UnixMilli()
	sum, err := batch.Validate(b, checks(c, r, now))
	if err != nil {
		countInvalid(r.found.Stats, err)
		f := p.invalid(err)
		f.started = !errors.Is(err, batch.ErrCorrupt)
		return nil, -1, &f
	}
	if codec := targetCodec(c, sum.Codec()); codec != sum.Codec() || sum.Scattered {
		// Records whose offsets have gaps are numbered anew, or readers would be given
		// offsets that the batch does not have.
		b, err = batch.Recompression{Codec: codec, Level: level(c, codec), Limit: c.MaxMessageBytes}.Apply(b)
		switch {
		case errors.Is(err, batch.ErrTooLarge):
			r.found.Stats.BytesRejected.Add(len(r.batch))
			return nil, -1, &failure{err: kerr.MessageTooLarge}
		case err != nil:
			return nil, -1, &failure{err: err, started: true}
		}
		r.found.Stats.ProduceConversions.Inc()
	}
	if len(b) > c.SegmentBytes {
		return nil, -1, &failure{err: kerr.RecordListTooLarge}
	}
	switch {
	case c.LogAppendTime:
		stamped = now
		batch.SetTimestamps(b, now, true)
	case !sum.TimestampsExact():
		batch.SetTimestamps(b, sum.MaxTimestamp, false)
	}
	return b, stamped, nil
}

// checks are what the topic asks of a batch.
func checks(c *config.Topic, r *row, now int64) batch.Checks {
	k := batch.Checks{
		RequireKeys:     c.Compact,
		CheckTimestamps: !c.LogAppendTime,
		LogAppendTime:   c.LogAppendTime,
		Now:             now,
		BeforeMaxMs:     c.TimestampBeforeMaxMs,
		AfterMaxMs:      c.TimestampAfterMaxMs,
	}
	if c.Compact {
		// Only a missing key's message names the partition.
		k.Partition = r.found.Name + "-" + strconv.Itoa(int(r.index))
	}
	return k
}

// targetCodec is the codec by which a batch of the codec own is stored.
func targetCodec(c *config.Topic, own batch.Codec) batch.Codec {
	switch c.CompressionType {
	case "uncompressed":
		return batch.None
	case "gzip":
		return batch.Gzip
	case "snappy":
		return batch.Snappy
	case "lz4":
		return batch.LZ4
	case "zstd":
		return batch.Zstd
	}
	return own // producer
}

// level is the topic's compression level for the codec.
func level(c *config.Topic, codec batch.Codec) int {
	switch codec {
	case batch.Gzip:
		return c.GzipLevel
	case batch.LZ4:
		return c.Lz4Level
	case batch.Zstd:
		return c.ZstdLevel
	}
	return codec.DefaultLevel()
}

// invalid turns an error of package batch into what the client is told.
func (p *produce) invalid(err error) failure {
	var inv *batch.InvalidError
	if !errors.As(err, &inv) {
		return failure{err: err}
	}
	f := failure{records: inv.Records}
	if inv.Shown {
		f.message = inv.Message
	}
	switch {
	case errors.Is(err, batch.ErrUndelimited), errors.Is(err, batch.ErrCorrupt):
		f.err = kerr.CorruptMessage
	case errors.Is(err, batch.ErrInvalidTimestamp):
		f.err = kerr.InvalidTimestamp
	default:
		f.err = kerr.InvalidRecord
	}
	return f
}

// countInvalid counts a refused batch by its kind.
func countInvalid(s *metrics.Topic, err error) {
	var inv *batch.InvalidError
	switch {
	case errors.Is(err, batch.ErrCorrupt):
		s.InvalidCRC.Inc()
	case errors.As(err, &inv) && errors.Is(err, batch.ErrInvalidRecord) && len(inv.Records) > 0:
		s.NoKeyCompacted.Inc()
	default:
		s.InvalidRecords.Inc()
	}
}
