package batch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy"
)

// Records under the codec snappy come in two forms, and both must be read. Most clients write one raw snappy block. Java's
// write the framing of snappy-java (xerial):
//
//	magic    8 bytes   0x82 "SNAPPY" 0x00
//	version  int32     1
//	lowest   int32     1, the lowest version that can read it
//	then, again and again:
//	length   int32     of the block that follows
//	block              raw snappy, 32 KiB decompressed by default
//
// A second stream may follow the first, with its own magic. All numbers are big-endian.
const (
	xerialMagic     = "\x82SNAPPY\x00"
	xerialHeaderLen = len(xerialMagic) + 8
	xerialVersion   = 1
	xerialBlock     = 32 << 10

	// snappyMaxRatio is more than snappy can save: three bytes stand for at most 64. A block that claims more is a lie.
	snappyMaxRatio = 22
	// maxPooledBlock is the largest block buffer that is kept.
	maxPooledBlock = 1 << 20
)

var errSnappy = errors.New("snappy: corrupt input")

// snappyReader decompresses either form, block by block.
type snappyReader struct {
	in      []byte // Blocks not read yet, with their lengths; nil when raw.
	block   []byte // What is decompressed and not read yet.
	scratch []byte
	limit   int
}

// open starts with another input, which must stay until the last read.
func (r *snappyReader) open(src []byte, limit int) error {
	if cap(r.scratch) > maxPooledBlock {
		r.scratch = nil
	}
	r.in, r.block, r.limit = nil, nil, limit
	if !isXerial(src) {
		return r.decode(src)
	}
	r.in = src
	return nil
}

// isXerial reports whether the bytes have Java's framing.
func isXerial(src []byte) bool {
	return len(src) >= xerialHeaderLen && string(src[:len(xerialMagic)]) == xerialMagic
}

// Read implements io.Reader.
func (r *snappyReader) Read(p []byte) (int, error) {
	for len(r.block) == 0 {
		if len(r.in) == 0 {
			return 0, io.EOF
		}
		if err := r.nextBlock(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.block)
	r.block = r.block[n:]
	return n, nil
}

func (r *snappyReader) nextBlock() error {
	if isXerial(r.in) {
		if lowest := binary.BigEndian.Uint32(r.in[len(xerialMagic)+4:]); lowest > xerialVersion {
			return fmt.Errorf("xerial version %d: %w", lowest, errSnappy)
		}
		r.in = r.in[xerialHeaderLen:]
		return nil
	}
	if len(r.in) < 4 {
		return errSnappy
	}
	n := binary.BigEndian.Uint32(r.in)
	if uint64(n) > uint64(len(r.in)-4) {
		return errSnappy
	}
	block := r.in[4 : 4+n]
	r.in = r.in[4+n:]
	return r.decode(block)
}

// decode decompresses a raw block, whose claimed size it checks before it takes memory.
func (r *snappyReader) decode(src []byte) error {
	n, err := snappy.DecodedLen(src)
	if err != nil || n > len(src)*snappyMaxRatio {
		return errSnappy
	}
	if n > r.limit {
		return ErrTooLarge
	}
	if n > cap(r.scratch) {
		r.scratch = make([]byte, n)
	}
	r.block, err = snappy.DecodeStrict(r.scratch[:cap(r.scratch)], src)
	if err != nil {
		return errSnappy
	}
	return nil
}

// snappyWriter compresses into Java's framing.
type snappyWriter struct {
	out     io.Writer
	block   []byte
	scratch []byte
	started bool
}

func (w *snappyWriter) reset(out io.Writer) {
	w.out, w.block, w.started = out, w.block[:0], false
	if w.scratch == nil {
		w.block = make([]byte, 0, xerialBlock)
		w.scratch = make([]byte, 4+s2.MaxEncodedLen(xerialBlock))
	}
}

// Write implements io.Writer.
func (w *snappyWriter) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		n := min(len(p), xerialBlock-len(w.block))
		w.block = append(w.block, p[:n]...)
		p, written = p[n:], written+n
		if len(w.block) == xerialBlock {
			if err := w.flush(); err != nil {
				return written, err
			}
		}
	}
	return written, nil
}

// Close writes what is left.
func (w *snappyWriter) Close() error { return w.flush() }

func (w *snappyWriter) flush() error {
	if !w.started {
		w.started = true
		header := binary.BigEndian.AppendUint32([]byte(xerialMagic), xerialVersion)
		if _, err := w.out.Write(binary.BigEndian.AppendUint32(header, xerialVersion)); err != nil {
			return err
		}
	}
	if len(w.block) == 0 {
		return nil
	}
	block := s2.EncodeSnappy(w.scratch[4:], w.block)
	w.block = w.block[:0]
	binary.BigEndian.PutUint32(w.scratch, uint32(len(block)))
	_, err := w.out.Write(w.scratch[:4+len(block)])
	return err
}
