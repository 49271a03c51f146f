package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A request frame, all numbers big-endian:
//
//	int32   size        of all that follows
//	int16   key         ┐
//	int16   version     │ header version 1
//	int32   correlation │
//	int16   n           │ client id, null if n is negative
//	n bytes client id   ┘
//	tags                  header version 2 only: a uvarint count, and for each
//	                      a uvarint number, a uvarint size, and as many bytes
//	...     body
//
// Header version 2 goes with the flexible versions of an API. An answer's frame
// is int32 size, int32 correlation, tags if the version is flexible (but never
// for ApiVersions), body.
const (
	sizeLen = 4
	// prefixLen is what the connection looks at before it takes memory: size,
	// key and version.
	prefixLen = sizeLen + 4
	// minFrame is a header with an empty client id.
	minFrame = 10
)

// ErrHeader is what a request header that cannot be read gives.
var ErrHeader = errors.New("malformed request header")

// header is a request's header. The client id lies in the frame.
type header struct {
	key, version int16
	correlation  int32
	clientID     []byte // nil for null
}

// parseHeader reads the header of a frame (without its size) and gives the body.
// Tags of the header are skipped, none is known.
func parseHeader(frame []byte, flexible bool) (header, []byte, error) {
	var h header
	if len(frame) < minFrame {
		return h, nil, fmt.Errorf("%w: %d bytes", ErrHeader, len(frame))
	}
	h.key = int16(binary.BigEndian.Uint16(frame))
	h.version = int16(binary.BigEndian.Uint16(frame[2:]))
	h.correlation = int32(binary.BigEndian.Uint32(frame[4:]))
	n := int(int16(binary.BigEndian.Uint16(frame[8:])))
	b := frame[minFrame:]
	if n > len(b) {
		return h, nil, fmt.Errorf("%w: client id of %d bytes in %d", ErrHeader, n, len(b))
	}
	if n >= 0 {
		h.clientID = b[:n:n]
		b = b[n:]
	}
	if !flexible {
		return h, b, nil
	}
	w := walker{b: b}
	if err := w.tags(&unknownTags); err != nil {
		return h, nil, fmt.Errorf("%w: %w", ErrHeader, err)
	}
	return h, w.b, nil
}

// appendResponseHeader starts an answer: room for the size, the correlation id,
// and empty tags if the header has them.
func appendResponseHeader(dst []byte, correlation int32, flexible bool) []byte {
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(correlation))
	if flexible {
		dst = append(dst, 0)
	}
	return dst
}
