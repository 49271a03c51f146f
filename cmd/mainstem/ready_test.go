package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadyTellsByItsExitCode(t *testing.T) {
	ready := true
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ready" || !ready {
			http.Error(w, "stopping", http.StatusServiceUnavailable)
		}
	}))
	address := strings.TrimPrefix(s.URL, "http://")
	require.Equal(t, outcome{out: "ready\n"}, cli(t, "", nil, "ready", "--http", address))
	ready = false
	requireOneLine(t, cli(t, "", map[string]string{httpEnv: address}, "ready"), exitRefused, "is not ready: stopping")
	requireOneLine(t, cli(t, "", map[string]string{listenerEnv: address}, "ready"), exitRefused, "is not ready: stopping")
	s.Close()
	requireOneLine(t, cli(t, "", nil, "ready", "--http", address), exitUnreachable, address, "--http")
	requireOneLine(t, cli(t, "", nil, "ready", "--http", "no port:"), exitUsage, "host:port")
}
