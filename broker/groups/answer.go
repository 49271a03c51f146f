package groups

import (
	"net"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group"
	"github.com/mainstem/mainstem/protocol"
)

// finish waits for a promise and answers with what it gives.
func finish[A any](c *protocol.Call, p *coordinator.Promise[A], reply func(a A, err error) kmsg.Response) protocol.Finish {
	c.ReadyWhen(p.Ready)
	return func() protocol.Reply {
		return protocol.Reply{Msg: reply(p.Wait(c.Ctx, c.Draining()))}
	}
}

// code is what the client is told of an error. Who has hung up is told nothing,
// whatever it is.
func code(c *protocol.Call, err error) int16 {
	if err != nil && c.Ctx.Err() != nil {
		return kerr.NotCoordinator.Code
	}
	n, _ := c.ErrorCode(err)
	return n
}

// count has the codes of an answer counted.
func count(c *protocol.Call, codes ...int16) {
	for _, n := range codes {
		if n != 0 {
			_, _ = c.ErrorCode(kerr.ErrorForCode(n))
		}
	}
}

// clientOf is who has sent a request.
func clientOf(c *protocol.Call) group.Client {
	who := group.Client{Version: c.Version}
	if c.ClientID != nil {
		who.ID = *c.ClientID
	}
	if c.Conn != nil && c.Conn.Remote != nil {
		who.Host = hostOf(c.Conn.Remote)
	}
	return who
}

// hostOf is an address as Kafka shows it: a slash, and IPv6 without abbreviations.
func hostOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return "/" + a.String()
	}
	host, zone, _ := strings.Cut(host, "%")
	ip := net.ParseIP(host)
	if ip == nil || ip.To4() != nil {
		return "/" + host
	}
	parts := make([]string, 0, net.IPv6len/2)
	for i := 0; i < net.IPv6len; i += 2 {
		parts = append(parts, strconv.FormatUint(uint64(ip[i])<<8|uint64(ip[i+1]), 16))
	}
	if host = strings.Join(parts, ":"); zone != "" {
		host += "%" + zone
	}
	return "/" + host
}

// groupOperations are what everybody may do with a group as long as there is no
// access control, as bits by Kafka's numbers of operations: read, delete,
// describe, and describe and alter configs.
const groupOperations = 1<<3 | 1<<6 | 1<<8 | 1<<10 | 1<<11
