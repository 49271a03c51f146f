package main

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mainstem/mainstem/broker"
	"github.com/mainstem/mainstem/broker/config"
)

// greeting is what the start-up text speaks of.
type greeting struct {
	version string
	address string // For clients.
	dir     string
	http    string // host:port, "" when off.
}

// welcome prints what runs, and what to type next.
func welcome(c *console, g greeting) error {
	dir := g.dir
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	me, flag := shellWord(c.program), ""
	if g.address != defaultBootstrap {
		flag = " -b " + g.address
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Mainstem %s is ready for Kafka clients on %s\n", g.version, g.address)
	fmt.Fprintf(&b, "  data     %s\n", dir)
	if g.http != "" {
		fmt.Fprintf(&b, "  metrics  http://%s/metrics\n", g.http)
	}
	fmt.Fprintf(&b, "\nTry in another terminal:\n")
	fmt.Fprintf(&b, "  %s topic create greetings%s\n", me, flag)
	fmt.Fprintf(&b, "  echo hello | %s produce greetings%s\n", me, flag)
	fmt.Fprintf(&b, "  %s consume greetings%s\n", me, flag)
	fmt.Fprintf(&b, "\nCtrl-C stops the broker; the data stay.\n\n")
	return printf(c.out, "%s", b.String())
}

// shellWord quotes a word for the shell where it must.
func shellWord(s string) string {
	if s == "" || strings.ContainsAny(s, " \t\n'\"\\$`&|;<>()*?[]#~!{}") {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

// bootstrapOf is the address that a client on this machine would use: that of
// the first listener, with the port that it got.
func bootstrapOf(b *broker.Broker, static *config.Static) string {
	first := static.Listeners()[0] // There is always one.
	host, port := first.Host, strconv.Itoa(first.Port)
	if addr := b.Addrs()[first.Name]; addr != nil {
		_, port, _ = net.SplitHostPort(addr.String())
	}
	return reachable(net.JoinHostPort(host, port))
}

// reachable makes an address that listens on all interfaces one to connect to.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
