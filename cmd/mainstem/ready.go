package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const (
	defaultHTTP = "127.0.0.1:9644"
	httpEnv     = "MAINSTEM_HTTP"

	// listenerEnv is where a container's settings name the broker's own listener: its health check finds it there.
	listenerEnv = "KAFKA_MAINSTEM_HTTP_LISTENER"
)

// httpAddress is where the broker answers HTTP, if no flag says otherwise.
func httpAddress(c *console) string {
	return cmp.Or(c.getenv(httpEnv), c.getenv(listenerEnv), defaultHTTP)
}

// newReady asks a broker's /ready, for health checks where there is no curl.
func newReady(c *console) *cobra.Command {
	var timeout time.Duration
	address := httpAddress(c)
	cmd := &cobra.Command{
		Use:   "ready",
		Short: "Ask whether a broker serves requests (exit code 0 if it does)",
		Args:  needArgs("", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return askReady(ctx, c.out, address)
		},
	}
	cmd.Flags().StringVar(&address, "http", address, "the broker's mainstem.http.listener (env "+httpEnv+")")
	cmd.Flags().DurationVar(&timeout, "timeout", 3*time.Second, "how long to wait for the answer")
	return cmd
}

func askReady(ctx context.Context, out io.Writer, address string) error {
	const remedy = "See the broker's log, or name its mainstem.http.listener with --http."
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/ready", nil)
	if err != nil {
		return usage("Write --http host:port.", "%w", err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return fail(exitUnreachable, remedy, fmt.Errorf("no broker answers at %s: %w", address, rootCause(err)))
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(res.Body, 4096))
	if err != nil {
		return fail(exitUnreachable, remedy, fmt.Errorf("read the answer of %s: %w", address, err))
	}
	if res.StatusCode != http.StatusOK {
		return fail(exitRefused, remedy, fmt.Errorf("the broker at %s is not ready: %s", address, strings.TrimSpace(string(text))))
	}
	return printf(out, "ready\n")
}
