package protocol

import (
	"errors"
	"fmt"
	"net"
	"slices"
)

const (
	// strideBytes is how much of a large answer is written at once, so that one
	// that moves is told from one that stands still.
	strideBytes = 1 << 20
	// warmBytes is the same for what sources bring: it is written while it is still
	// in the processor's cache.
	warmBytes = 512 << 10
)

// errSource is why a connection ends whose answer cannot be completed.
var errSource = errors.New("cannot complete the answer")

// stride is a part of a large answer, written at once.
type stride struct {
	pieces net.Buffers
	size   int
	lent   []Source // whose last pieces end in here
}

// writeStrides writes all pieces and what the insets bring, and notes every stride
// as traffic.
func (o *outbox) writeStrides() error {
	defer o.endStride()
	at := 0
	for i := range o.insets {
		in := &o.insets[i]
		if err := o.addPieces(o.pieces[at:in.At]); err != nil {
			return err
		}
		at = in.At
		if err := o.addInset(in); err != nil {
			return err
		}
	}
	if err := o.addPieces(o.pieces[at:]); err != nil {
		return err
	}
	return o.writeStride()
}

// addPieces adds pieces to the stride, and writes it whenever it is full.
func (o *outbox) addPieces(pieces [][]byte) error {
	for _, p := range pieces {
		for len(p) > 0 {
			part := p[:min(len(p), strideBytes-o.stride.size)]
			p = p[len(part):]
			o.stride.pieces = append(o.stride.pieces, part)
			if o.stride.size += len(part); o.stride.size < strideBytes {
				continue
			}
			if err := o.writeStride(); err != nil {
				return err
			}
		}
	}
	return nil
}

// addInset adds all that an inset brings.
func (o *outbox) addInset(in *Inset) error {
	if in.Begun && o.stride.size > 0 {
		o.stride.lent = append(o.stride.lent, in.Source)
	}
	for left := in.Size; left > 0; {
		if o.stride.size >= warmBytes || slices.Contains(o.stride.lent, in.Source) {
			if err := o.writeStride(); err != nil {
				return err
			}
		}
		pieces, err := in.Source.More()
		if err != nil {
			return fmt.Errorf("%w: %w", errSource, err)
		}
		n := 0
		for _, p := range pieces {
			n += len(p)
		}
		if n == 0 || n > left {
			return fmt.Errorf("%w: %d bytes were to come, %d came", errSource, left, n)
		}
		left -= n
		if err := o.addPieces(pieces); err != nil {
			return err
		}
		o.stride.lent = append(o.stride.lent, in.Source) // Not before: a write in between would discard it.
	}
	return nil
}

// writeStride writes what the stride holds.
func (o *outbox) writeStride() error {
	defer o.endStride()
	if o.stride.size == 0 {
		return nil
	}
	if err := o.write(o.stride.pieces); err != nil {
		return err
	}
	o.conn.touch()
	return nil
}

// endStride empties the stride.
func (o *outbox) endStride() {
	s := &o.stride
	for _, source := range s.lent {
		source.Discard()
	}
	clear(s.lent)
	clear(s.pieces)
	s.pieces, s.size, s.lent = s.pieces[:0], 0, s.lent[:0]
}
