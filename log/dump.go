package log

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/mainstem/mainstem/log/commitlog"
	"github.com/mainstem/mainstem/log/vfs"
	"github.com/mainstem/mainstem/protocol/batch"
)

// DumpOptions select what Dump prints besides the segments.
type DumpOptions struct {
	Partitions bool   // each partition's state
	Frames     bool   // every frame
	Batches    bool   // every batch header
	Records    bool   // every record
	Topic      string // only of this topic; "": all
	Partition  int32  // only of this partition; below 0: all
}

// Dump prints a stopped store's content as text, without changing it.
func Dump(fs vfs.FS, dir string, w io.Writer, o DumpOptions) error {
	out := bufio.NewWriter(w)
	s, err := openReadOnly(fs, dir, Events{Corrupt: func(c CorruptSpan) {
		_, _ = fmt.Fprintf(out, "damaged: %s at %d, %d bytes (%s): %q %v offsets %d to %d\n", c.File, c.Pos, c.Size, c.Reason, c.Topic, c.ID, c.First, c.Last)
	}})
	if err != nil {
		return err
	}
	d := dumper{s: s, out: out, o: o}
	err = d.all()
	return errors.Join(err, out.Flush(), s.closeReadOnly())
}

// dumper prints; out keeps the first error.
type dumper struct {
	s   *Store
	out *bufio.Writer
	o   DumpOptions
}

func (d *dumper) printf(format string, args ...any) { _, _ = fmt.Fprintf(d.out, format, args...) }

func (d *dumper) all() error {
	m := d.s.log.Manifest()
	stop := "unclean"
	if m.Clean {
		stop = "clean"
	}
	d.printf("cluster %s node %d, %s stop\n", m.ClusterID, m.NodeID, stop)
	if m.Checkpoint != "" {
		d.printf("checkpoint %s up to lsn %d\n", m.Checkpoint, m.CheckpointLSN)
	}
	for _, i := range m.Segments {
		state := "open"
		if i.Sealed {
			state = "sealed"
		}
		d.printf("segment %s %s lsn %d to %d, %d of %d bytes, index %q\n", i.File, state, i.Base, i.End, i.EndOffset, i.Capacity, i.Index)
	}
	if d.o.Partitions {
		for _, p := range sortedIDs(d.s.all()) {
			if d.wanted(p.topic, p.id) {
				d.partition(p)
			}
		}
	}
	if !d.o.Frames && !d.o.Batches && !d.o.Records {
		return nil
	}
	for _, i := range m.Segments {
		d.printf("frames of segment %s\n", i.File)
		if err := d.s.frames(i, d.frame); err != nil {
			return fmt.Errorf("dump segment %s: %w", i.File, err)
		}
	}
	return nil
}

// wanted reports whether the options ask for a partition.
func (d *dumper) wanted(topic string, id PartitionID) bool {
	if d.o.Topic == "" {
		return true
	}
	return topic == d.o.Topic && (d.o.Partition < 0 || id.Partition == d.o.Partition)
}

func (d *dumper) partition(p *Partition) {
	q := &p.q
	d.printf("partition %s-%d id %v: offsets %d to %d, high watermark %d, %d bytes, epoch %d, as of lsn %d\n", p.topic, p.id.Partition, p.id,
		q.Start(), q.End(), p.HighWatermark(), q.Bytes(), q.Epochs.Latest(), q.AsOf())
	for _, e := range q.Epochs.Starts() {
		d.printf("  epoch %d from %d\n", e.Epoch, e.Start)
	}
	for _, r := range p.Producers() {
		d.printf("  producer %d epoch %d sequence %d, open transaction from %d, last active %s\n", r.ProducerID, r.Epoch, r.LastSequence, r.CurrentTxnStart, stamp(r.LastActivityMilli))
	}
	for _, t := range q.Aborted(q.Start(), q.End()) {
		d.printf("  aborted transaction of %d, offsets %d to %d\n", t.ProducerID, t.First, t.Last)
	}
	for _, c := range q.Cuts() {
		d.printf("  truncated to %d at lsn %d\n", c.Offset, c.LSN)
	}
	for _, h := range q.Holes() {
		d.printf("  damaged offsets %d to %d\n", h.First, h.Last)
	}
}

func (d *dumper) frame(f commitlog.Frame) error {
	topic, one := "", f.ID != PartitionID{}
	if p := d.s.Partition(f.ID); p != nil {
		topic = p.topic
	}
	if one && !d.wanted(topic, f.ID) {
		return nil
	}
	d.printf("lsn %d %v", f.LSN, f.Kind)
	switch f.Kind {
	case commitlog.Data:
		d.printf(" %s-%d offset %d count %d epoch %d time %s, %d bytes at %d", topic, f.ID.Partition, f.BaseOffset, f.OffsetCount, f.LeaderEpoch, stamp(f.MaxTimestamp), f.Size, f.Offset)
	case commitlog.Epoch:
		d.printf(" %s-%d epoch %d from %d", topic, f.ID.Partition, f.LeaderEpoch, f.BaseOffset)
	case commitlog.Truncate:
		d.printf(" %s-%d to %d in epoch %d", topic, f.ID.Partition, f.BaseOffset, f.LeaderEpoch)
	}
	d.printf("\n")
	err := d.payload(&f)
	if err != nil {
		d.printf("  unreadable: %v\n", err)
	}
	return nil
}

func (d *dumper) payload(f *commitlog.Frame) error {
	switch f.Kind {
	case commitlog.Create:
		return readCreates(f.Payload, func(c CreateSpec) {
			d.printf("  %s-%d id %v durability %s epoch %d\n", c.Name, c.ID.Partition, c.ID, c.Durability, c.LeaderEpoch)
		})
	case commitlog.Delete:
		return readDeletes(f.Payload, func(id PartitionID) { d.printf("  %v\n", id) })
	case commitlog.LogStart:
		return readStarts(f.Payload, func(i startItem) { d.printf("  %v to %d, %d bytes\n", i.id, i.start, i.removed) })
	case commitlog.Data:
		return d.batch(f.Payload)
	}
	return nil
}

func (d *dumper) batch(b []byte) error {
	h, err := batch.ParseHeader(b)
	if err != nil {
		return err
	}
	if d.o.Batches || d.o.Records {
		d.printf("  batch offsets %d to %d, %d records, codec %d, attributes %#x, producer %d epoch %d sequence %d\n", h.BaseOffset, h.LastOffset(),
			h.NumRecords, h.Codec(), h.Attributes, h.ProducerID, h.ProducerEpoch, h.BaseSequence)
	}
	if !d.o.Records {
		return nil
	}
	for r, err := range batch.Records(b) {
		if err != nil {
			return err
		}
		d.printf("    %d %s key %q value %q\n", r.Offset, stamp(r.Timestamp), r.Key, r.Value)
		for _, header := range r.Headers {
			d.printf("      header %q %q\n", header.Key, header.Value)
		}
	}
	return nil
}

// stamp prints milliseconds since the epoch.
func stamp(ms int64) string {
	if ms < 0 {
		return "none"
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}

// String names the durability as the topic config does.
func (d Durability) String() string {
	if d == Async {
		return "async"
	}
	return "fsync"
}
