package main

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSystemdIsToldThroughItsSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	c := &console{getenv: func(name string) string {
		require.Equal(t, "NOTIFY_SOCKET", name)
		return path
	}}
	require.NoError(t, notify(c, "READY=1", "STATUS=Serving requests"))
	buf := make([]byte, 100)
	n, err := l.Read(buf)
	require.NoError(t, err)
	require.Equal(t, "READY=1\nSTATUS=Serving requests", string(buf[:n]))
}

func TestWithoutSystemdNobodyIsTold(t *testing.T) {
	c := &console{getenv: func(string) string { return "" }}
	require.NoError(t, notify(c, "READY=1"))
	c.getenv = func(string) string { return filepath.Join(t.TempDir(), "none") }
	require.Error(t, notify(c, "READY=1"))
}
