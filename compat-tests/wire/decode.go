package wire

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// decodeResponse decodes the recorded or received bytes of an answer: header
// and body. An ApiVersions request of an unknown version is answered in the
// layout of version 0 (KIP-511).
func decodeResponse(e *Exchange, raw []byte) (kmsg.Response, error) {
	if len(raw) < 4 {
		return nil, fmt.Errorf("answer of %d bytes has no header", len(raw))
	}
	resp := kmsg.ResponseForKey(e.Key)
	if resp == nil {
		return nil, fmt.Errorf("no decoder for api %d", e.Key)
	}
	version := e.Version
	const apiVersions = 18
	if e.Key == apiVersions && version > 4 {
		version = 0
	}
	resp.SetVersion(version)
	body := raw[4:]
	if resp.IsFlexible() && e.Key != apiVersions {
		if len(body) == 0 || body[0] != 0 {
			return nil, errors.New("answer header carries tags")
		}
		body = body[1:]
	}
	if err := resp.ReadFrom(body); err != nil {
		return nil, fmt.Errorf("decode answer: %w", err)
	}
	// An answer longer or shorter than its own re-encoding has stray bytes.
	if again := resp.AppendTo(nil); len(again) != len(body) {
		return nil, fmt.Errorf("answer has %d bytes, its re-encoding %d", len(body), len(again))
	}
	return resp, nil
}

// header is the part of a request before its body.
type header struct {
	length   int
	flexible bool
}

// splitRequest finds the body of a well-formed request; ok is false where the
// recorded bytes are malformed on purpose or belong to an unknown version.
func splitRequest(e *Exchange) (req kmsg.Request, h header, ok bool) {
	req = kmsg.RequestForKey(e.Key)
	if req == nil || e.Version < 0 || e.Version > req.MaxVersion() || len(e.Request) < 10 {
		return nil, h, false
	}
	req.SetVersion(e.Version)
	h.length = 10
	if n := int16(binary.BigEndian.Uint16(e.Request[8:])); n > 0 {
		h.length += int(n)
	}
	h.flexible = req.IsFlexible()
	if h.flexible {
		if h.length >= len(e.Request) || e.Request[h.length] != 0 {
			return nil, h, false
		}
		h.length++
	}
	if h.length > len(e.Request) {
		return nil, h, false
	}
	body := e.Request[h.length:]
	if req.ReadFrom(body) != nil {
		return nil, h, false
	}
	return req, h, string(req.AppendTo(nil)) == string(body)
}
