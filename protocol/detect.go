package protocol

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

var (
	// ErrFrameSize is a frame whose size no request has.
	ErrFrameSize = errors.New("size of the request is out of bounds")
	// ErrNotKafka is a client that speaks another protocol.
	ErrNotKafka = errors.New("client does not speak Kafka's protocol")
	// ErrUnserved is a request of an API or version that is not served.
	ErrUnserved = errors.New("request is not served")
	// ErrStalled is a request that stopped coming while others needed its memory.
	ErrStalled = errors.New("client stalled in the middle of a request")
	// ErrUnread is an answer that stopped being taken while others needed its memory.
	ErrUnread = errors.New("client does not read its answers")
	// ErrClosedByReply is a connection that was closed after an answer that asked
	// for it.
	ErrClosedByReply = errors.New("connection was closed with its last answer")
	// ErrHandler is a call for which its handler gave no answer.
	ErrHandler = errors.New("request was not answered")
)

// foreign are the first bytes by which other protocols are known.
var foreign = [...]struct {
	prefix string
	name   string
}{
	{"GET ", "HTTP"},
	{"POST", "HTTP"},
	{"HEAD", "HTTP"},
	{"PUT ", "HTTP"},
	{"DELE", "HTTP"},
	{"OPTI", "HTTP"},
	{"PATC", "HTTP"},
	{"CONN", "HTTP"},
	{"TRAC", "HTTP"},
	{"PRI ", "HTTP/2"},
	{"SSH-", "SSH"},
}

// frameSizeError tells what is wrong with a size that no request may have:
// often the client speaks something else.
func frameSizeError(first []byte, limit int) (remedy string, err error) {
	for _, f := range foreign {
		if bytes.HasPrefix(first, []byte(f.prefix)) {
			return "this port takes Kafka clients only: point the client at the HTTP listener, or a Kafka client at this one",
				fmt.Errorf("%w: it speaks %s", ErrNotKafka, f.name)
		}
	}
	if first[0] == 0x16 && first[1] == 3 {
		return "this listener is PLAINTEXT: set security.protocol=PLAINTEXT in the client",
			fmt.Errorf("%w: it opens a TLS connection", ErrNotKafka)
	}
	size := int32(binary.BigEndian.Uint32(first))
	return "if a client sends batches that big, raise socket.request.max.bytes",
		fmt.Errorf("%w: %d bytes, 1 to %d are allowed", ErrFrameSize, size, limit)
}
