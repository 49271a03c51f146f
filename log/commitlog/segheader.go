package commitlog

import (
	"fmt"
	"hash/crc32"
)

// segmentHead is a segment's header as it is on disk.
type segmentHead struct {
	kind     uint8
	id       SegmentID
	salt     uint64
	base     LSN
	asOf     LSN
	capacity int64
}

// encode returns the first bytes of the file.
func (h *segmentHead) encode() []byte {
	b := make([]byte, segmentHeader)
	copy(b, segmentMagic)
	le.PutUint16(b[8:], segmentVersion)
	b[10] = h.kind
	le.PutUint64(b[16:], uint64(h.id))
	le.PutUint64(b[24:], h.salt)
	le.PutUint64(b[32:], uint64(h.base))
	le.PutUint64(b[40:], uint64(h.asOf))
	le.PutUint64(b[48:], uint64(h.capacity))
	le.PutUint32(b[12:], headerChecksum(b[:segmentHeader]))
	return b
}

// headerChecksum covers all of b but the four bytes at 12 that hold the checksum.
func headerChecksum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:12], castagnoli), castagnoli, b[16:])
}

// decodeSegmentHead reads the first bytes of a file.
func decodeSegmentHead(b []byte) (segmentHead, error) {
	var h segmentHead
	if len(b) < segmentHeader || string(b[:8]) != segmentMagic {
		return h, fmt.Errorf("read segment header: no magic: %w", ErrCorrupt)
	}
	b = b[:segmentHeader]
	if headerChecksum(b) != le.Uint32(b[12:]) {
		return h, fmt.Errorf("read segment header: wrong checksum: %w", ErrCorrupt)
	}
	h.kind = b[10]
	if v := le.Uint16(b[8:]); v != segmentVersion || h.kind != kindFrames && h.kind != kindClustered {
		return h, fmt.Errorf("read segment header: version %d, kind %d: %w", v, h.kind, ErrFormatTooNew)
	}
	h.id = SegmentID(le.Uint64(b[16:]))
	h.salt = le.Uint64(b[24:])
	h.base = LSN(le.Uint64(b[32:]))
	h.asOf = LSN(le.Uint64(b[40:]))
	h.capacity = int64(le.Uint64(b[48:]))
	if h.capacity < dataStart {
		return h, fmt.Errorf("read segment header: capacity %d: %w", h.capacity, ErrCorrupt)
	}
	return h, nil
}
