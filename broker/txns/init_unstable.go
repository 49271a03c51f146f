package txns

import (
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/protocol"
)

// Version 6 of InitProducerId (KIP-939, two-phase commit) is unstable in Kafka 4.3: a broker serves it with
// unstable.api.versions.enable, and refuses what it is for, since transaction.two.phase.commit.enable is off. kmsg does
// not know it. It is version 5 with
//
//	request   … ProducerEpoch int16 │ Enable2PC bool │ KeepPreparedTxn bool │ tags
//	answer    … ProducerEpoch int16 │ OngoingTxnProducerID int64 = -1 │ OngoingTxnProducerEpoch int16 = -1 │ tags
const (
	initStable   = 5
	initUnstable = 6
)

// initRequest is a request of any version; before version 6 it asks for neither.
type initRequest struct {
	*kmsg.InitProducerIDRequest
	enable2PC, keepPrepared bool
}

// initAPI is the row of InitProducerId.
func (h *Handlers) initAPI() protocol.API {
	row := protocol.API{Key: int16(kmsg.InitProducerID), Max: initStable, MaxBytes: 1 << 16, Submit: h.initProducerID}
	if h.live.Bool("unstable.api.versions.enable") {
		row.Max, row.Decode, row.Submit = initUnstable, decodeInit, h.initUnstable
	}
	return row
}

// decodeInit reads a request of any version.
func decodeInit(c *protocol.Call, body []byte) error {
	r := &initRequest{InitProducerIDRequest: kmsg.NewPtrInitProducerIDRequest()}
	r.SetVersion(min(c.Version, initStable))
	if c.Version == initUnstable {
		// The server has walked the body: the lengths are right.
		id, n := binary.Uvarint(body)
		if n <= 0 || id > uint64(len(body)) {
			return fmt.Errorf("%w: InitProducerId version %d has a bad id", protocol.ErrMalformed, c.Version)
		}
		at := n + int(max(id, 1)-1) + 4 + 8 + 2
		if at+2 > len(body) {
			return fmt.Errorf("%w: InitProducerId version %d is cut short", protocol.ErrMalformed, c.Version)
		}
		r.enable2PC, r.keepPrepared = body[at] != 0, body[at+1] != 0
		body = append(append(make([]byte, 0, len(body)-2), body[:at]...), body[at+2:]...)
	}
	c.Body = r
	return protocol.BoundedDecode(r.InitProducerIDRequest, body)
}

// initUnstable answers InitProducerId of any version.
func (h *Handlers) initUnstable(c *protocol.Call) protocol.Finish {
	return h.init(c, c.Body.(*initRequest))
}

// initReply is the answer in the version of the request.
func initReply(c *protocol.Call, resp *kmsg.InitProducerIDResponse) protocol.Reply {
	if c.Version < initUnstable {
		return protocol.Reply{Msg: resp}
	}
	b := resp.AppendTo(nil)
	b = b[:len(b)-1] // The tags, of which there are none.
	b = append(b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0)
	return protocol.Reply{Body: &protocol.Buffers{Pieces: [][]byte{b}}}
}
