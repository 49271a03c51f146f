package main

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// answerReader reads answers into one buffer.
type answerReader struct {
	in  io.Reader
	buf []byte
}

func (a *answerReader) next(want int64) ([]byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(a.in, head[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(head[:])) - 4
	if n < 0 || n > 512<<20 {
		return nil, fmt.Errorf("an answer of %d bytes", n)
	}
	if got := int64(binary.BigEndian.Uint32(head[4:])); got != want&0xffffffff {
		return nil, fmt.Errorf("answer %d came, not %d", got, want)
	}
	if cap(a.buf) < n {
		a.buf = make([]byte, n)
	}
	a.buf = a.buf[:n]
	_, err := io.ReadFull(a.in, a.buf)
	return a.buf, err
}

// produce reads the answer to a produce. It was not taken if a partition's leader
// is not known yet; other error codes are errors.
func (a *answerReader) produce(want int64) (taken bool, err error) {
	body, err := a.next(want)
	if err != nil {
		return false, err
	}
	if allTaken(body) {
		return true, nil
	}
	resp := kmsg.NewPtrProduceResponse()
	resp.Version = rawProduceVersion
	if err := resp.ReadFrom(body[1:]); err != nil { // Behind the tags of the header.
		return false, err
	}
	taken = true
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			switch p.ErrorCode {
			case 0:
			case kerr.UnknownTopicOrPartition.Code, kerr.LeaderNotAvailable.Code, kerr.NotLeaderForPartition.Code:
				taken = false
			default:
				return false, fmt.Errorf("produce to partition %d: %w", p.Partition, kerr.ErrorForCode(p.ErrorCode))
			}
		}
	}
	return taken, nil
}

// allTaken walks the usual answer to a produce of version 9, without allocation;
// of what it does not expect it says no, for others to look at:
//
//	header's tags  0
//	topics         2 (uvarint of count + 1)
//	  name         uvarint of length + 1, bytes
//	  partitions   uvarint of count + 1
//	    index int32, error int16, base offset int64, append time int64, log start int64
//	    record errors 1 (none), message 0 (none), tags 0
func allTaken(body []byte) bool {
	const entry, failed, plain = 33, 4, 30
	if len(body) < 3 || body[0] != 0 || body[1] != 2 {
		return false
	}
	rest := body[2:]
	name, n := binary.Uvarint(rest)
	if n <= 0 || name == 0 || uint64(len(rest)-n) < name {
		return false
	}
	rest = rest[n+int(name)-1:]
	count, n := binary.Uvarint(rest)
	if n <= 0 || count < 2 || uint64(len(rest)-n) < (count-1)*entry {
		return false
	}
	rest = rest[n:]
	for range count - 1 {
		if rest[failed]|rest[failed+1] != 0 || rest[plain] != 1 || rest[plain+1]|rest[plain+2] != 0 {
			return false
		}
		rest = rest[entry:]
	}
	return true
}
