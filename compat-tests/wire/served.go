package wire

import (
	"encoding/binary"
	"fmt"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// ServedBy asks a broker which APIs it advertises and returns a filter for the
// exchanges of those. What it does not advertise it does not serve yet.
func ServedBy(address string) (func(*Exchange) bool, error) {
	conn, err := net.DialTimeout("tcp", address, answerWithin)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(answerWithin)); err != nil {
		return nil, err
	}
	// ApiVersions v0 without a client id: header and an empty body.
	request := []byte{0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff}
	if _, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(request))), request...)); err != nil {
		return nil, err
	}
	raw, err := readFrame(conn)
	if err != nil {
		return nil, err
	}
	resp := kmsg.NewPtrApiVersionsResponse()
	if err := resp.ReadFrom(raw[4:]); err != nil {
		return nil, fmt.Errorf("decode ApiVersions: %w", err)
	}
	keys := map[int16]bool{}
	for _, k := range resp.ApiKeys {
		keys[k.ApiKey] = true
	}
	return func(e *Exchange) bool { return keys[e.Key] }, nil
}
