package commitlog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// runHead is a run's header as it is on disk.
type runHead struct {
	id           PartitionID
	position     int64
	length       int64 // of the batches.
	batches      int
	items        int // of the index.
	indexCRC     uint32
	first, next  int64 // offsets.
	maxTimestamp int64
}

// size returns the bytes that the run takes.
func (h *runHead) size() int64 {
	return alignUp(runHeader+h.length+int64(h.items)*runIndexItem, frameAlign)
}

// encode returns the header.
func (h *runHead) encode(seed uint32) []byte {
	b := make([]byte, runHeader)
	le.PutUint32(b[0:], runMagic)
	b[4], b[5] = runVersion, runKind
	le.PutUint64(b[8:], uint64(h.position))
	le.PutUint64(b[16:], uint64(h.length))
	le.PutUint32(b[24:], uint32(h.batches))
	le.PutUint32(b[28:], uint32(h.items))
	copy(b[32:48], h.id.Topic[:])
	le.PutUint32(b[48:], uint32(h.id.Partition))
	le.PutUint32(b[52:], h.indexCRC)
	le.PutUint64(b[56:], uint64(h.first))
	le.PutUint64(b[64:], uint64(h.next))
	le.PutUint64(b[72:], uint64(h.maxTimestamp))
	le.PutUint32(b[80:], crc32.Update(seed, castagnoli, b[:80]))
	return b
}

// decodeRunHead reads the header of the run that should begin at a position with room bytes behind it.
func decodeRunHead(b []byte, seed uint32, pos, room int64) (runHead, verdict) {
	var h runHead
	if len(b) < runHeader || le.Uint32(b) != runMagic {
		return h, frameBad
	}
	h.position = int64(le.Uint64(b[8:]))
	h.length = int64(le.Uint64(b[16:]))
	h.batches = int(le.Uint32(b[24:]))
	h.items = int(le.Uint32(b[28:]))
	if h.position != pos || crc32.Update(seed, castagnoli, b[:80]) != le.Uint32(b[80:]) {
		return h, frameBad
	}
	if b[4] != runVersion || b[5] != runKind {
		return h, frameNewer
	}
	if h.length < 0 || h.length > room || int64(h.batches) > h.length/batchHead || h.items > h.batches || h.size() > room {
		return h, frameBad
	}
	copy(h.id.Topic[:], b[32:48])
	h.id.Partition = int32(le.Uint32(b[48:]))
	h.indexCRC = le.Uint32(b[52:])
	h.first = int64(le.Uint64(b[56:]))
	h.next = int64(le.Uint64(b[64:]))
	h.maxTimestamp = int64(le.Uint64(b[72:]))
	return h, frameGood
}

// runItem is an entry of a run's index: a stretch of whole batches.
type runItem struct {
	position     int64 // from the first batch.
	first        int64 // offset.
	maxTimestamp int64
	batches      int
	outsideCRC   uint32 // over what the batches' own checksums leave out.
}

func (i *runItem) encode(b []byte) []byte {
	b = le.AppendUint64(b, uint64(i.position))
	b = le.AppendUint64(b, uint64(i.first))
	b = le.AppendUint64(b, uint64(i.maxTimestamp))
	b = le.AppendUint32(b, uint32(i.batches))
	return le.AppendUint32(b, i.outsideCRC)
}

func decodeRunItem(b []byte) runItem {
	return runItem{
		position: int64(le.Uint64(b)), first: int64(le.Uint64(b[8:])), maxTimestamp: int64(le.Uint64(b[16:])),
		batches: int(le.Uint32(b[24:])), outsideCRC: le.Uint32(b[28:]),
	}
}

// scanClustered calls fn for the batches of a clustered segment, run by run.
func (l *Log) scanClustered(s *segment, fn func(Frame) error) error {
	end := s.end.Load()
	sc, err := l.newScanner(s, end)
	if err != nil {
		return err
	}
	for pos := int64(dataStart); pos < end; {
		b, err := sc.bytes(pos, runHeader)
		if err != nil {
			return err
		}
		if len(b) >= 4 && le.Uint32(b) == 0 {
			return nil
		}
		h, v := decodeRunHead(b, s.seed, pos, end-pos)
		switch v {
		case frameNewer:
			return fmt.Errorf("read run at %d of %s: version %d, kind %d: %w", pos, s.name, b[4], b[5], ErrFormatTooNew)
		case frameGood:
			if err := l.scanRun(sc, &h, fn); err != nil {
				return err
			}
			pos += h.size()
		default:
			if pos, err = l.skipRuns(sc, pos, end); err != nil {
				return err
			}
		}
	}
	return nil
}

// skipRuns quarantines what is damaged from a position on and returns where the next run begins.
func (l *Log) skipRuns(sc *scanner, from, end int64) (int64, error) {
	to := end
	for pos := from + frameAlign; pos+runHeader <= end && !sc.gone; {
		b, err := sc.w.some(pos, runHeader)
		if err != nil {
			return 0, fmt.Errorf("read segment %v: %w", sc.seg.id, err)
		}
		if len(b) < runHeader {
			break
		}
		at := findMagic(b, runMagic)
		if at < 0 {
			pos += int64(len(b)) &^ (frameAlign - 1)
			continue
		}
		pos += int64(at)
		if b, err = sc.bytes(pos, runHeader); err != nil {
			return 0, err
		}
		if _, v := decodeRunHead(b, sc.seg.seed, pos, end-pos); v != frameBad {
			to = pos
			break
		}
		pos += frameAlign
	}
	return to, l.foundRun(sc, from, to, "no run begins here")
}

// foundRun quarantines a damaged span of a clustered segment, unless it is listed already.
func (l *Log) foundRun(sc *scanner, from, to int64, cause string) error {
	e := sc.corrupt(from, to)
	e.LSN = 0
	if !sc.gone {
		e.Cause = cause
	}
	return l.Quarantine(e)
}

// scanRun calls fn for the batches of one run, stretch by stretch of its index.
func (l *Log) scanRun(sc *scanner, h *runHead, fn func(Frame) error) error {
	base := h.position + runHeader
	b, err := sc.bytes(base+h.length, h.items*runIndexItem)
	if err != nil {
		return err
	}
	if len(b) < h.items*runIndexItem || crc32.Checksum(b, castagnoli) != h.indexCRC {
		return l.foundRun(sc, h.position, h.position+h.size(), "wrong checksum of the run's index")
	}
	items := make([]runItem, 0, h.items+1)
	for ; len(b) > 0; b = b[runIndexItem:] {
		items = append(items, decodeRunItem(b))
	}
	items = append(items, runItem{position: h.length})
	for i := range items[:h.items] {
		from, to := items[i].position, items[i+1].position
		if from < 0 || from >= to || to > h.length {
			return l.foundRun(sc, h.position, h.position+h.size(), "wrong order of the run's index")
		}
		b, err := sc.bytes(base+from, int(to-from))
		if err != nil {
			return err
		}
		if int64(len(b)) < to-from || !stretchOK(b, &items[i]) {
			err = l.foundRun(sc, base+from, base+to, "wrong checksum of a stretch of batches")
		} else {
			err = l.scanStretch(sc, h, base+from, b, fn)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stretchOK checks what the batches' own checksums leave out, lengths among it.
func stretchOK(b []byte, item *runItem) bool {
	var crc uint32
	n := 0
	for ; len(b) > 0; n++ {
		size := batchSize(b)
		if size == 0 {
			return false
		}
		crc = crc32.Update(crc, castagnoli, b[:batchOutside])
		b = b[size:]
	}
	return n == item.batches && crc == item.outsideCRC
}

// batchSize returns the size of the batch at the start of b, 0 if it is not whole.
func batchSize(b []byte) int {
	if len(b) < batchHead {
		return 0
	}
	size := int64(binary.BigEndian.Uint32(b[8:])) + batchPrefix
	if size < batchHead || size > int64(len(b)) {
		return 0
	}
	return int(size)
}

// scanStretch calls fn for the batches of a stretch whose heads are right.
func (l *Log) scanStretch(sc *scanner, h *runHead, pos int64, b []byte, fn func(Frame) error) error {
	for len(b) > 0 {
		batch := b[:batchSize(b)]
		b = b[len(batch):]
		at := Place{Segment: sc.seg.id, Offset: pos, Size: int32(len(batch))}
		pos += int64(len(batch))
		if !batchOK(batch) {
			if err := l.foundRun(sc, at.Offset, pos, "wrong checksum of the batch"); err != nil {
				return err
			}
			continue
		}
		if err := fn(Frame{Header: batchHeader(h.id, batch), Place: at, Payload: batch}); err != nil {
			return err
		}
	}
	return nil
}

// batchHeader reads from a batch what a frame's header would say about it.
func batchHeader(id PartitionID, b []byte) Header {
	be := binary.BigEndian
	return Header{
		Kind: Data, ID: id, LeaderEpoch: int32(be.Uint32(b[12:])), BaseOffset: int64(be.Uint64(b)),
		OffsetCount: int32(be.Uint32(b[23:])) + 1, MaxTimestamp: int64(be.Uint64(b[35:])),
	}
}
