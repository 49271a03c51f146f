package commitlog

import (
	"fmt"
	"math"
)

// manifest is what is live. A value that was published is never changed: edits work on a clone.
type manifest struct {
	clean         bool
	freed         bool // segments were dropped: the checkpoint alone has what their frames said.
	nodeID        int32
	clusterID     string
	nextID        SegmentID
	nextBase      LSN
	durable       LSN
	checkpointLSN LSN
	checkpoint    string
	rows          []segmentRow // by id.
	quarantined   []Span       // by segment and position; they do not touch each other.
}

// segmentRow is a segment in the manifest.
type segmentRow struct {
	segmentHead
	sealed bool
	end    int64
	frames int
	index  string
}

// Sizes of what repeats in a manifest, names not counted: a count is believed only if so many bytes are there.
const (
	rowBytes  = 8 + 1 + 1 + 8 + 8 + 8 + 8 + 8 + 4 + 2
	spanBytes = 24
)

// encode returns the file's content.
func (m *manifest) encode() []byte {
	b := make([]byte, manifestHeader, manifestHeader+128+len(m.rows)*(rowBytes+24)+len(m.quarantined)*spanBytes)
	copy(b, manifestMagic)
	le.PutUint16(b[8:], manifestVersion)
	b = append(b, boolByte(m.clean)|boolByte(m.freed)<<1)
	b = le.AppendUint32(b, uint32(m.nodeID))
	b = appendString(b, m.clusterID)
	b = le.AppendUint64(b, uint64(m.nextID))
	b = le.AppendUint64(b, uint64(m.nextBase))
	b = le.AppendUint64(b, uint64(m.durable))
	b = le.AppendUint64(b, uint64(m.checkpointLSN))
	b = appendString(b, m.checkpoint)
	b = le.AppendUint32(b, uint32(len(m.rows)))
	for i := range m.rows {
		r := &m.rows[i]
		b = le.AppendUint64(b, uint64(r.id))
		b = append(b, r.kind, boolByte(r.sealed))
		b = le.AppendUint64(b, r.salt)
		b = le.AppendUint64(b, uint64(r.base))
		b = le.AppendUint64(b, uint64(r.asOf))
		b = le.AppendUint64(b, uint64(r.capacity))
		b = le.AppendUint64(b, uint64(r.end))
		b = le.AppendUint32(b, uint32(r.frames))
		b = appendString(b, r.index)
	}
	b = le.AppendUint32(b, uint32(len(m.quarantined)))
	for _, s := range m.quarantined {
		b = le.AppendUint64(b, uint64(s.Segment))
		b = le.AppendUint64(b, uint64(s.From))
		b = le.AppendUint64(b, uint64(s.To))
	}
	le.PutUint32(b[16:], uint32(len(b)-manifestHeader))
	le.PutUint32(b[12:], headerChecksum(b))
	return b
}

func boolByte(set bool) byte {
	if set {
		return 1
	}
	return 0
}

func appendString(b []byte, s string) []byte {
	return append(le.AppendUint16(b, uint16(len(s))), s...)
}

// decodeManifest reads the file's content.
func decodeManifest(b []byte) (*manifest, error) {
	if len(b) < manifestHeader || string(b[:8]) != manifestMagic {
		return nil, fmt.Errorf("read manifest: no magic: %w", ErrCorrupt)
	}
	if headerChecksum(b) != le.Uint32(b[12:]) {
		return nil, fmt.Errorf("read manifest: wrong checksum: %w", ErrCorrupt)
	}
	if v := le.Uint16(b[8:]); v != manifestVersion {
		return nil, fmt.Errorf("read manifest: version %d, this program reads %d: %w", v, manifestVersion, ErrFormatTooNew)
	}
	if int64(le.Uint32(b[16:])) != int64(len(b)-manifestHeader) {
		return nil, fmt.Errorf("read manifest: wrong length: %w", ErrCorrupt)
	}
	d := decoder{b: b[manifestHeader:]}
	flags := d.uint8()
	m := &manifest{
		clean:         flags&1 != 0,
		freed:         flags&2 != 0,
		nodeID:        int32(d.uint32()),
		clusterID:     d.string(),
		nextID:        SegmentID(d.uint64()),
		nextBase:      LSN(d.uint64()),
		durable:       LSN(d.uint64()),
		checkpointLSN: LSN(d.uint64()),
		checkpoint:    d.string(),
	}
	m.rows = make([]segmentRow, d.count(rowBytes))
	for i := range m.rows {
		d.row(&m.rows[i])
	}
	m.quarantined = make([]Span, d.count(spanBytes))
	for i := range m.quarantined {
		m.quarantined[i] = Span{Segment: SegmentID(d.uint64()), From: d.position(), To: d.position()}
	}
	if d.bad || len(d.b) != 0 {
		return nil, fmt.Errorf("read manifest: wrong content: %w", ErrCorrupt)
	}
	return m, m.check()
}

// check finds what a right checksum cannot have let through unless the writer was wrong.
func (m *manifest) check() error {
	for i, r := range m.rows {
		switch {
		case r.kind != kindFrames && r.kind != kindClustered:
			return fmt.Errorf("read manifest: segment %v of kind %d: %w", r.id, r.kind, ErrFormatTooNew)
		case i > 0 && r.id <= m.rows[i-1].id, r.id >= m.nextID,
			r.capacity < dataStart, r.end < dataStart, r.end > r.capacity,
			uint64(r.base) > math.MaxInt64-uint64(r.capacity):
			return fmt.Errorf("read manifest: segment %v: wrong order or size: %w", r.id, ErrCorrupt)
		}
	}
	return nil
}

// decoder reads numbers off a slice; what is missing makes it bad and reads as zero.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) take(n int) []byte {
	if n > len(d.b) {
		d.bad, d.b = true, nil
		return nil
	}
	out := d.b[:n]
	d.b = d.b[n:]
	return out
}

func (d *decoder) uint8() uint8 {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) uint16() uint16 {
	if b := d.take(2); b != nil {
		return le.Uint16(b)
	}
	return 0
}

func (d *decoder) uint32() uint32 {
	if b := d.take(4); b != nil {
		return le.Uint32(b)
	}
	return 0
}

func (d *decoder) uint64() uint64 {
	if b := d.take(8); b != nil {
		return le.Uint64(b)
	}
	return 0
}

// position reads a place in a file.
func (d *decoder) position() int64 {
	n := d.uint64()
	if n > math.MaxInt64 {
		d.bad = true
		return 0
	}
	return int64(n)
}

func (d *decoder) string() string { return string(d.take(int(d.uint16()))) }

// count reads how many items of at least size bytes follow.
func (d *decoder) count(size int) int {
	n := int64(d.uint32())
	if n*int64(size) > int64(len(d.b)) {
		d.bad, d.b = true, nil
		return 0
	}
	return int(n)
}

func (d *decoder) row(r *segmentRow) {
	r.id = SegmentID(d.uint64())
	r.kind = d.uint8()
	r.sealed = d.uint8()&1 != 0
	r.salt = d.uint64()
	r.base = LSN(d.uint64())
	r.asOf = LSN(d.uint64())
	r.capacity = d.position()
	r.end = d.position()
	r.frames = int(int32(d.uint32()))
	r.index = d.string()
}
