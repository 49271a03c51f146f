package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func newClient(c *console) *cobra.Command {
	return group("client", "Show who is connected", newClientList(c))
}

type clientList struct {
	c          *console
	address    string
	timeout    time.Duration
	json       bool
	partitions bool
}

// shownClient is what a broker tells at /clients.
type shownClient struct {
	ClientID    string            `json:"client_id"`
	Host        string            `json:"host"`
	Software    string            `json:"software"`
	Version     string            `json:"software_version"`
	Connections int               `json:"connections"`
	Groups      []shownMembership `json:"groups"`
}

type shownMembership struct {
	Group      string         `json:"group"`
	State      string         `json:"state"`
	Partitions []shownReading `json:"partitions"`
	Lag        int64          `json:"lag"`
}

type shownReading struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Committed *int64 `json:"committed_offset"`
	End       *int64 `json:"end_offset"`
	Lag       *int64 `json:"lag"`
}

func newClientList(c *console) *cobra.Command {
	o := &clientList{c: c, address: httpAddress(c)}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the clients of a broker, their groups and their lag",
		Long: `List the clients of one broker: client id, address, software, connections, groups,
partitions and lag. It is asked by HTTP, as each broker knows its own clients.`,
		Example: `  mainstem client list
  mainstem client list --partitions --http broker2:9644`,
		Args: needArgs("", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), o.timeout)
			defer cancel()
			return o.run(ctx)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.address, "http", o.address, "the broker's mainstem.http.listener (env "+httpEnv+")")
	f.DurationVar(&o.timeout, "timeout", 15*time.Second, "how long to wait for the answer")
	f.BoolVar(&o.json, "json", false, "print JSON")
	f.BoolVar(&o.partitions, "partitions", false, "a line for each partition that is read")
	return cmd
}

func (o *clientList) run(ctx context.Context) error {
	text, err := askHTTP(ctx, o.address, "/clients")
	if err != nil {
		return err
	}
	if o.json {
		return printf(o.c.out, "%s", text)
	}
	var clients []shownClient
	if err := json.Unmarshal(text, &clients); err != nil {
		return fmt.Errorf("read the answer of %s: %w", o.address, err)
	}
	if len(clients) == 0 {
		return printf(o.c.err, "Nobody is connected.\n")
	}
	if o.partitions {
		return o.printPartitions(clients)
	}
	t := table{heading: []string{"CLIENT", "HOST", "SOFTWARE", "CONNECTIONS", "GROUP", "STATE", "PARTITIONS", "LAG"}}
	for i := range clients {
		c := &clients[i]
		if len(c.Groups) == 0 {
			t.add(orNone(c.ClientID), c.Host, software(c), itoa(c.Connections), "-", "-", "-", "-")
		}
		for _, g := range c.Groups {
			t.add(orNone(c.ClientID), c.Host, software(c), itoa(c.Connections), g.Group, g.State, itoa(len(g.Partitions)), itoa(g.Lag))
		}
	}
	return t.print(o.c.out)
}

func (o *clientList) printPartitions(clients []shownClient) error {
	t := table{heading: []string{"CLIENT", "HOST", "GROUP", "TOPIC", "PARTITION", "COMMITTED", "END", "LAG"}}
	for i := range clients {
		for _, g := range clients[i].Groups {
			for _, r := range g.Partitions {
				t.add(orNone(clients[i].ClientID), clients[i].Host, g.Group, r.Topic, itoa(r.Partition),
					orDash(r.Committed, itoa), orDash(r.End, itoa), orDash(r.Lag, itoa))
			}
		}
	}
	return t.print(o.c.out)
}

func software(c *shownClient) string {
	return orNone(strings.TrimSpace(c.Software + " " + c.Version))
}

// askHTTP gets a page of a broker's HTTP listener.
func askHTTP(ctx context.Context, address, path string) ([]byte, error) {
	const remedy = "See the broker's log, or name its mainstem.http.listener with --http."
	const most = 256 << 20
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return nil, usage("Write --http host:port.", "%w", err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return nil, fail(exitUnreachable, remedy, fmt.Errorf("no broker answers at %s: %w", address, rootCause(err)))
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(res.Body, most))
	if err != nil {
		return nil, fail(exitUnreachable, remedy, fmt.Errorf("read the answer of %s: %w", address, err))
	}
	if res.StatusCode != http.StatusOK {
		return nil, fail(exitRefused, remedy, fmt.Errorf("the broker at %s says: %s", address, strings.TrimSpace(string(text))))
	}
	return text, nil
}
