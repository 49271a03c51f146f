package commitlog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// frameHead is a frame's header as it is on disk.
type frameHead struct {
	Header
	lsn        LSN
	durable    LSN
	length     int // of the payload.
	payloadCRC uint32
}

// size returns the bytes that the frame takes.
func (h *frameHead) size() int64 { return int64(frameSize(h.length)) }

// encode writes the header into b[:frameHeader]. The checksum is completed with the first bytes of a batch, if the payload is one.
func (h *frameHead) encode(b []byte, seed uint32, payload [][]byte) {
	b = b[:frameHeader]
	le.PutUint32(b[0:], frameMagic)
	b[4], b[5], b[6], b[7] = frameVersion, byte(h.Kind), 0, 0
	le.PutUint32(b[8:], uint32(h.length))
	le.PutUint32(b[12:], h.payloadCRC)
	le.PutUint64(b[16:], uint64(h.lsn))
	le.PutUint64(b[24:], uint64(h.durable))
	copy(b[32:48], h.ID.Topic[:])
	le.PutUint32(b[48:], uint32(h.ID.Partition))
	le.PutUint32(b[52:], uint32(h.LeaderEpoch))
	le.PutUint64(b[56:], uint64(h.BaseOffset))
	le.PutUint64(b[64:], uint64(h.MaxTimestamp))
	le.PutUint32(b[72:], uint32(h.OffsetCount))
	crc := crc32.Update(seed, castagnoli, b[:76])
	if h.Kind == Data {
		for left, i := batchOutside, 0; left > 0 && i < len(payload); i++ {
			part := payload[i][:min(left, len(payload[i]))]
			crc = crc32.Update(crc, castagnoli, part)
			left -= len(part)
		}
	}
	le.PutUint32(b[76:], crc)
}

// verdict is what a look at the bytes of a frame finds.
type verdict uint8

const (
	frameGood       verdict = iota
	frameBad                // no frame of this segment begins here.
	frameBadPayload         // the header is right, the payload is not.
	frameNewer              // a frame of a newer version.
)

// decodeFrameHead reads the header of the frame that should begin at an LSN. b holds it and, where the segment goes on that far, the
// first bytes of the payload. room is how many bytes of the segment there are from its first byte on.
func decodeFrameHead(b []byte, seed uint32, lsn LSN, room int64) (frameHead, verdict) {
	var h frameHead
	if len(b) < frameHeader || le.Uint32(b) != frameMagic {
		return h, frameBad
	}
	h.Kind = Kind(b[5])
	h.length = int(le.Uint32(b[8:]))
	h.lsn = LSN(le.Uint64(b[16:]))
	if h.lsn != lsn || int64(h.length) > room-frameHeader {
		return h, frameBad
	}
	crc := crc32.Update(seed, castagnoli, b[:76])
	if h.Kind == Data {
		if h.length < batchHead || len(b) < frameHeader+batchOutside {
			return h, frameBad
		}
		crc = crc32.Update(crc, castagnoli, b[frameHeader:frameHeader+batchOutside])
	}
	if crc != le.Uint32(b[76:]) {
		return h, frameBad
	}
	if b[4] != frameVersion || !h.Kind.known() {
		return h, frameNewer
	}
	h.payloadCRC = le.Uint32(b[12:])
	h.durable = LSN(le.Uint64(b[24:]))
	copy(h.ID.Topic[:], b[32:48])
	h.ID.Partition = int32(le.Uint32(b[48:]))
	h.LeaderEpoch = int32(le.Uint32(b[52:]))
	h.BaseOffset = int64(le.Uint64(b[56:]))
	h.MaxTimestamp = int64(le.Uint64(b[64:]))
	h.OffsetCount = int32(le.Uint32(b[72:]))
	return h, frameGood
}

// payloadOK checks a payload against the batch's checksum or the frame's.
func (h *frameHead) payloadOK(payload []byte) bool {
	if len(payload) != h.length {
		return false
	}
	if h.Kind != Data {
		return crc32.Checksum(payload, castagnoli) == h.payloadCRC
	}
	return batchOK(payload)
}

// batchOK checks a record batch against its own checksum and length.
func batchOK(b []byte) bool {
	return len(b) >= batchHead && b[16] == batchMagic &&
		int64(binary.BigEndian.Uint32(b[8:]))+batchPrefix == int64(len(b)) &&
		crc32.Checksum(b[batchOutside:], castagnoli) == binary.BigEndian.Uint32(b[batchCRC:])
}

// newerFrame is the error for a frame that this version cannot read.
func newerFrame(file string, pos int64, b []byte) error {
	return fmt.Errorf("read frame at %d of %s: version %d, %s: %w", pos, file, b[4], Kind(b[5]), ErrFormatTooNew)
}

// payloadChecksum returns the checksum of a payload in pieces.
func payloadChecksum(payload [][]byte) uint32 {
	var crc uint32
	for _, p := range payload {
		crc = crc32.Update(crc, castagnoli, p)
	}
	return crc
}
