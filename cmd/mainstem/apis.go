package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/broker/metrics"
)

// newAPIs prints what a broker serves as the table of the README.
func newAPIs(c *console) *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use:    "apis",
		Short:  "Print the APIs that a broker serves, as Markdown",
		Hidden: true,
		Args:   needArgs("", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return r.explain(r.apis(cmd.Context()))
		},
	}
	r = addRemote(cmd, c)
	return cmd
}

func (r *remote) apis(ctx context.Context) error {
	cl, err := r.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	answer, err := askAPIs(ctx, cl)
	if err != nil {
		return err
	}
	if r.json {
		return printJSON(r.c.out, answer.ApiKeys)
	}
	return printf(r.c.out, "%s", apiTable(answer))
}

func askAPIs(ctx context.Context, cl *kgo.Client) (*kmsg.ApiVersionsResponse, error) {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "mainstem-cli", softwareVersion()
	answer, err := req.RequestWith(ctx, cl)
	if err != nil {
		return nil, fmt.Errorf("ask for API versions: %w", err)
	}
	if err := kerr.ErrorForCode(answer.ErrorCode); err != nil {
		return nil, fmt.Errorf("ask for API versions: %w", err)
	}
	return answer, nil
}

func apiTable(answer *kmsg.ApiVersionsResponse) string {
	var b strings.Builder
	b.WriteString("| key | API | versions |\n|---:|---|---|\n")
	for _, k := range answer.ApiKeys {
		versions := itoa(k.MinVersion)
		if k.MaxVersion != k.MinVersion {
			versions += "–" + itoa(k.MaxVersion)
		}
		fmt.Fprintf(&b, "| %d | %s | %s |\n", k.ApiKey, metrics.APIName(k.ApiKey), versions)
	}
	return b.String()
}
