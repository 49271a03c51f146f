package protocol

import (
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// raw builds a frame from a header of version 1 and more bytes.
func raw(key, version int16, rest ...byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = binary.BigEndian.AppendUint32(b, 11)
	b = append(b, 0, 1, 'c')
	return sized(append(b, rest...))
}

func sized(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

func i32(n int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

func TestHostileClientsAreCutOffAndReported(t *testing.T) {
	apiVersions := func(edit func([]byte) []byte) []byte {
		req := kmsg.NewPtrApiVersionsRequest()
		req.Version, req.ClientSoftwareName, req.ClientSoftwareVersion = 3, "a", "1"
		return sized(edit(frameOf(req, 11, "c")[4:]))
	}
	cut := func(b []byte) []byte { return b[:len(b)-1] }
	for _, tc := range []struct {
		name string
		sent []byte
		want error
		text string // in the cause
	}{
		{"size 0", i32(0), ErrFrameSize, "0 bytes"},
		{"size -1", i32(-1), ErrFrameSize, "-1 bytes"},
		{"size beyond the limit", i32(100<<20 + 1), ErrFrameSize, "104857601 bytes"},
		{"size 2^31-1", i32(0x7fffffff), ErrFrameSize, ""},
		{"frame of 3 bytes", sized([]byte{1, 2, 3}), ErrHeader, ""},
		{"header cut after the correlation id", sized([]byte{0, 18, 0, 0, 0, 0, 0, 1}), ErrHeader, ""},
		{"client id beyond the frame", sized([]byte{0, 18, 0, 0, 0, 0, 0, 1, 0, 9, 'c'}), ErrHeader, "client id"},
		{"HTTP", []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), ErrNotKafka, "HTTP"},
		{"HTTP POST", []byte("POST /topics HTTP/1.1\r\n\r\n"), ErrNotKafka, "HTTP"},
		{"HTTP/2", []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), ErrNotKafka, "HTTP/2"},
		{"TLS", append([]byte{0x16, 3, 1, 2, 0, 1}, make([]byte, 512)...), ErrNotKafka, "TLS"},
		{"unknown key", raw(77, 0), ErrUnserved, ""},
		{"negative key", raw(-1, 0), ErrUnserved, ""},
		{"key 32767", raw(0x7fff, 0), ErrUnserved, ""},
		{"Produce below what is served", raw(0, 2), ErrUnserved, "Produce version 2"},
		{"Metadata above what is served", raw(3, 14), ErrUnserved, "Metadata version 14"},
		{"negative version", raw(3, -1), ErrUnserved, ""},
		{"request above its API's size", sized(append(raw(15, 0)[4:], make([]byte, 2000)...)), ErrFrameSize, "DescribeGroups"},
		{"body cut by a byte", sized(cut(raw(3, 1, 0, 0, 0, 0)[4:])), ErrMalformed, "Topics"},
		{"flexible body cut by a byte", apiVersions(cut), ErrMalformed, ""},
		{"flexible request without a body", raw(18, 3, 0), ErrMalformed, ""},
		{"header without tags", raw(18, 3), ErrHeader, ""},
		{"header tag beyond the frame", raw(3, 9, 1, 0, 0xff, 0xff, 0xff, 0xff, 7), ErrHeader, ""},
		{"header of 2^32-1 tags", raw(3, 9, 0xff, 0xff, 0xff, 0xff, 0x0f, 0), ErrHeader, ""},
		{"header tag count of six bytes", raw(3, 9, 0x81, 0x80, 0x80, 0x80, 0x80, 0), ErrHeader, ""},
		{"compact count 2^32-1", raw(3, 9, 0, 0xff, 0xff, 0xff, 0xff, 0x0f), ErrMalformed, ""},
		{"count 2^31-1", raw(3, 1, 0x7f, 0xff, 0xff, 0xff), ErrMalformed, ""},
		{"null in a string", raw(3, 1, 0, 0, 0, 1, 0xff, 0xff), ErrMalformed, "null"},
		{"string beyond the end", raw(3, 1, 0, 0, 0, 1, 0x75, 0x30, 'a'), ErrMalformed, ""},
		{"null topics of Produce", raw(0, 9, 0, 0, 0, 1, 0, 0, 3, 0xe8, 0, 0), ErrMalformed, "null"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			refusals := make(chan Refusal, 4)
			b := &fakeBroker{}
			s := serve(t, Options{APIs: b.apis(), Events: Events{Refused: func(r Refusal) { refusals <- r }}})
			c := dial(t, s, "PLAINTEXT")
			// An earlier request is still answered.
			c.send(frameOf(metadataOf(1), 1, "early"))
			c.answer(metadataOf(1), 1)
			c.send(tc.sent)
			c.closed()
			r := <-refusals
			require.ErrorIs(t, r.Err, tc.want)
			require.Contains(t, r.Cause, tc.text)
			require.Equal(t, r.Cause, r.Err.Error())
			require.Equal(t, c.nc.LocalAddr().String(), r.Conn.Remote.String())
			if r.ClientID != "" {
				require.Equal(t, "c", r.ClientID)
			}
			require.Empty(t, refusals, "reported once")
		})
	}
}

func TestRefusalNamesClientAPIAndVersion(t *testing.T) {
	refusals := make(chan Refusal, 1)
	s := serve(t, Options{APIs: (&fakeBroker{}).apis(), Events: Events{Refused: func(r Refusal) { refusals <- r }}})
	c := dial(t, s, "PLAINTEXT")
	c.send(raw(0, 2))
	c.closed()
	r := <-refusals
	require.Equal(t, "c", r.ClientID)
	require.Equal(t, int16(0), r.Key)
	require.Equal(t, int16(2), r.Version)
	require.NotEmpty(t, r.Remedy)
	require.Equal(t, "PLAINTEXT", r.Conn.Listener)
}

func TestOddButHarmlessRequestsAreAnswered(t *testing.T) {
	v3 := kmsg.NewPtrApiVersionsRequest()
	v3.Version, v3.ClientSoftwareName, v3.ClientSoftwareVersion = 3, "a", "1"
	v0 := kmsg.NewPtrApiVersionsRequest()
	body := v3.AppendTo(nil)
	header := func(clientID, tags []byte) []byte {
		b := append([]byte{0, 18, 0, 3}, 0xff, 0xff, 0xff, 0xff) // correlation -1
		b = append(b, clientID...)
		return append(b, tags...)
	}
	id, none := []byte{0, 1, 'c'}, []byte{0}
	for _, tc := range []struct {
		name string
		req  kmsg.Request
		sent []byte
	}{
		{"null client id", v3, append(header([]byte{0xff, 0xff}, none), body...)},
		{"client id length -2", v3, append(header([]byte{0xff, 0xfe}, none), body...)},
		{"empty client id", v3, append(header([]byte{0, 0}, none), body...)},
		{"unknown header tag", v3, append(header(id, []byte{1, 99, 3, 'a', 'b', 'c'}), body...)},
		{"header tag twice", v3, append(header(id, []byte{2, 99, 1, 'a', 99, 1, 'b'}), body...)},
		{"unknown body tag", v3, append(header(id, none), append(body[:len(body)-1:len(body)-1], 1, 99, 1, 'x')...)},
		{"bytes after the body", v3, append(header(id, none), append(body[:len(body):len(body)], "more"...)...)},
		{"bytes after an empty body", v0, append(append([]byte{0, 18, 0, 0, 0xff, 0xff, 0xff, 0xff}, id...), make([]byte, 100)...)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := serve(t, Options{})
			c := dial(t, s, "PLAINTEXT")
			for range 2 { // the same correlation id again
				c.send(sized(tc.sent))
				resp := c.answer(tc.req, -1).(*kmsg.ApiVersionsResponse)
				require.Zero(t, resp.ErrorCode)
			}
		})
	}
}

func TestRequestMayComeByteByByte(t *testing.T) {
	s := serve(t, Options{APIs: (&fakeBroker{}).apis()})
	c := dial(t, s, "PLAINTEXT")
	req := metadataOf(9)
	for _, b := range frameOf(req, 5, "slow") {
		c.send([]byte{b})
	}
	c.answer(req, 5)
}

func TestAllowedSizeWithoutDataWaitsAndTakesNoMemory(t *testing.T) {
	s := serve(t, Options{APIs: (&fakeBroker{}).apis()})
	c := dial(t, s, "PLAINTEXT")
	c.send(i32(100 << 20))
	require.NoError(t, c.nc.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	_, err := c.nc.Read(make([]byte, 1))
	require.ErrorContains(t, err, "timeout")
	require.Zero(t, s.Stats().FrameBytes)
}

func TestHostileFramesTakeLittleMemory(t *testing.T) {
	s := serve(t, Options{APIs: (&fakeBroker{}).apis()})
	sent := [][]byte{
		raw(3, 9, 1, 0, 0xff, 0xff, 0xff, 0xff, 7),
		raw(3, 9, 0, 0xff, 0xff, 0xff, 0xff, 0x0f),
		raw(3, 9, 0x81, 0x80, 0x80, 0x80, 0x80, 0),
		// A large frame is announced, begun and given up.
		append(i32(100<<20), raw(0, 9, 0)[4:]...),
	}
	took := allocated(func() {
		for range 100 {
			for _, b := range sent {
				c := dial(t, s, "PLAINTEXT")
				c.send(b)
				if len(b) > 0 && b[0] == 0x06 {
					_ = c.nc.Close()
					continue
				}
				c.closed()
			}
		}
	})
	require.Less(t, took, uint64(160<<20))
}

func TestHandlerWithoutAnAnswerClosesTheConnection(t *testing.T) {
	closed := make(chan error, 1)
	s := serve(t, Options{
		APIs: []API{
			{Key: 3, Min: 0, Max: 13, Submit: func(*Call) Finish { return nil }},
			{Key: 19, Min: 2, Max: 7, Submit: func(*Call) Finish { return func() Reply { return Reply{} } }},
		},
		Events: Events{Closed: func(_ *ConnInfo, err error) { closed <- err }},
	})
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Version = 5
	for _, req := range []kmsg.Request{metadataOf(1), create} {
		c := dial(t, s, "PLAINTEXT")
		c.send(frameOf(req, 1, "c"))
		c.closed()
		require.ErrorIs(t, <-closed, ErrHandler)
	}
}

func TestReplyMayCloseTheConnectionAfterItself(t *testing.T) {
	s := serve(t, Options{APIs: []API{
		{Key: 3, Min: 0, Max: 13, Submit: func(c *Call) Finish {
			return c.Reply(Reply{Msg: c.Request.ResponseKind(), Close: true})
		}},
		{Key: 19, Min: 2, Max: 7, Submit: func(c *Call) Finish { return c.Reply(Reply{None: true, Close: true}) }},
	}})
	c := dial(t, s, "PLAINTEXT")
	c.send(frameOf(metadataOf(1), 1, "c"))
	c.answer(metadataOf(1), 1)
	_, err := c.nc.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)

	create := kmsg.NewPtrCreateTopicsRequest()
	create.Version = 5
	c = dial(t, s, "PLAINTEXT")
	c.send(frameOf(create, 1, "c"))
	c.closed()
}

func TestLongTextsOfHostileClientsStayShortInTheirReport(t *testing.T) {
	refusals := make(chan Refusal, 1)
	s := serve(t, Options{APIs: (&fakeBroker{}).apis(), Events: Events{Refused: func(r Refusal) { refusals <- r }}})
	c := dial(t, s, "PLAINTEXT")
	id := strings.Repeat("x", 20000)
	b := append([]byte{0, 0, 0, 2, 0, 0, 0, 1, byte(len(id) >> 8), byte(len(id) & 0xff)}, id...)
	c.send(sized(b))
	c.closed()
	require.LessOrEqual(t, len((<-refusals).ClientID), maxReported)
}
