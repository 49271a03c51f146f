package protocol

import (
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ackResponse is a produce answer that takes no memory to make.
func ackAPI() []API {
	resp := kmsg.NewPtrProduceResponse()
	t := kmsg.NewProduceResponseTopic()
	t.Topic = "topic"
	t.Partitions = append(t.Partitions, kmsg.NewProduceResponseTopicPartition())
	resp.Topics = append(resp.Topics, t)
	return []API{{Key: 0, Min: 3, Max: 13, MaxBytes: 100 << 20, Decode: DecodeProduce, Submit: func(c *Call) Finish {
		if len(c.Body.(*ProduceRequest).Topics) != 1 {
			return nil
		}
		return c.Answer(resp)
	}}}
}

func benchConn(b *testing.B, s *Server) net.Conn {
	nc, err := net.Dial("tcp", s.Addrs()["PLAINTEXT"].String())
	require.NoError(b, err)
	b.Cleanup(func() { _ = nc.Close() })
	return nc
}

// readAnswers reads n answers without taking memory.
func readAnswers(b *testing.B, nc net.Conn, buf []byte, n int) {
	have := 0
	for n > 0 {
		m, err := nc.Read(buf[have:])
		if err != nil {
			b.Fatal(err)
		}
		have += m
		at := 0
		for have-at >= 4 {
			size := 4 + int(binary.BigEndian.Uint32(buf[at:]))
			if have-at < size {
				break
			}
			at += size
			n--
		}
		have = copy(buf, buf[at:have])
	}
}

func BenchmarkLoneProduce(b *testing.B) {
	for name, size := range map[string]int{"100B": 100, "10KB": 10_000, "100KB": 100_000, "1MB": 1_000_000} {
		b.Run(name, func(b *testing.B) {
			nc := benchConn(b, serve(b, Options{APIs: ackAPI()}))
			frame := frameOf(produceTo(1, make([]byte, size)), 1, "bench")
			buf := make([]byte, 64<<10)
			b.ReportAllocs()
			b.SetBytes(int64(size))
			for b.Loop() {
				if _, err := nc.Write(frame); err != nil {
					b.Fatal(err)
				}
				readAnswers(b, nc, buf, 1)
			}
		})
	}
}

// BenchmarkPieces is a lone request that is answered by a body in pieces, as
// produce and fetch are.
func BenchmarkPieces(b *testing.B) {
	for name, size := range map[string]int{"60B": 60, "1KB": 1000, "10KB": 10_000} {
		b.Run(name, func(b *testing.B) {
			body := make([]byte, size)
			api := API{Key: 0, Min: 3, Max: 13, MaxBytes: 1 << 20, Decode: DecodeProduce, Submit: func(c *Call) Finish {
				return c.Reply(Reply{Body: &Buffers{Pieces: [][]byte{body[:size/2], body[size/2:]}}})
			}}
			nc := benchConn(b, serve(b, Options{APIs: []API{api}}))
			frame := frameOf(produceTo(1, make([]byte, 100)), 1, "bench")
			buf := make([]byte, 64<<10)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := nc.Write(frame); err != nil {
					b.Fatal(err)
				}
				readAnswers(b, nc, buf, 1)
			}
		})
	}
}

func BenchmarkPipelinedProduce(b *testing.B) {
	for name, size := range map[string]int{"100B": 100, "10KB": 10_000} {
		b.Run(name, func(b *testing.B) {
			nc := benchConn(b, serve(b, Options{APIs: ackAPI()}))
			const depth = 5
			var frames []byte
			for i := range int32(depth) {
				frames = append(frames, frameOf(produceTo(1, make([]byte, size)), i, "bench")...)
			}
			buf := make([]byte, 64<<10)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := nc.Write(frames); err != nil {
					b.Fatal(err)
				}
				readAnswers(b, nc, buf, depth)
			}
		})
	}
}

// BenchmarkBare is an exchange of the same sizes with nothing in between: what
// the sockets take.
func BenchmarkBare(b *testing.B) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	defer ln.Close()
	frame := frameOf(produceTo(1, make([]byte, 100)), 1, "bench")
	go func() {
		nc, err := ln.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		buf := make([]byte, len(frame))
		for {
			if _, err := io.ReadFull(nc, buf); err != nil {
				return
			}
			if _, err := nc.Write(buf[:60]); err != nil {
				return
			}
		}
	}()
	nc, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(b, err)
	defer nc.Close()
	buf := make([]byte, 60)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := nc.Write(frame); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(nc, buf); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMetadata(b *testing.B) {
	nc := benchConn(b, serve(b, Options{APIs: (&fakeBroker{}).apis()}))
	frame := frameOf(metadataOf(12), 1, "bench")
	buf := make([]byte, 64<<10)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := nc.Write(frame); err != nil {
			b.Fatal(err)
		}
		readAnswers(b, nc, buf, 1)
	}
}
