package broker

import (
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/mainstem/mainstem/broker/clients"
	"github.com/mainstem/mainstem/broker/metrics"
	"github.com/mainstem/mainstem/protocol"
)

func TestLinesAboutConnectionsAreWhole(t *testing.T) {
	core, lines := observer.New(zap.DebugLevel)
	b := &Broker{logger: zap.New(core), metrics: metrics.New(metrics.Options{}), clients: clients.New()}
	e := b.serverEvents()
	peer := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7}
	conn := &protocol.ConnInfo{Listener: "PLAINTEXT", Remote: peer, Local: peer}
	e.Accepted(conn)
	for level, report := range map[zapcore.Level]func(){
		zap.WarnLevel: func() {
			e.Rejected(protocol.Rejection{Listener: "PLAINTEXT", Limit: "max.connections"})
			e.Rejected(protocol.Rejection{Listener: "PLAINTEXT", Limit: "max.connections.per.ip", Remote: peer})
			e.Refused(protocol.Refusal{Conn: conn, Err: protocol.ErrHeader})
			e.Closed(conn, fmt.Errorf("read: %w", protocol.ErrStalled))
			e.Closed(conn, protocol.ErrUnread)
		},
		zap.DebugLevel: func() { e.Closed(conn, protocol.ErrHungUp) },
	} {
		report()
		for _, l := range lines.TakeAll() {
			require.Equal(t, level, l.Level, l.Message)
			for name := range l.ContextMap() {
				require.NotContains(t, name, "peerError", l.Message)
			}
		}
	}
}
