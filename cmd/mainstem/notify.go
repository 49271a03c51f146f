package main

import (
	"fmt"
	"net"
	"strings"
)

// notify tells systemd how the service is: READY=1, STOPPING=1. Without
// NOTIFY_SOCKET it does nothing.
func notify(c *console, state ...string) error {
	path := c.getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	if path[0] == '@' {
		path = "\x00" + path[1:] // An abstract socket.
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	_, err = conn.Write([]byte(strings.Join(state, "\n")))
	if closeErr := conn.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	return nil
}
