package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
)

type topicList struct {
	*remote
	internal bool
}

type listedTopic struct {
	Topic             string `json:"topic"`
	ID                string `json:"id"`
	Internal          bool   `json:"internal"`
	Partitions        int    `json:"partitions"`
	ReplicationFactor int    `json:"replication_factor"`
}

func newTopicList(c *console) *cobra.Command {
	o := &topicList{}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List topics",
		Args:    needArgs("", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.admin(cmd.Context(), o.run)
		},
	}
	o.remote = addRemote(cmd, c)
	cmd.Flags().BoolVar(&o.internal, "internal", false, "internal topics too")
	return cmd
}

func (o *topicList) run(ctx context.Context, adm *kadm.Client) error {
	list := adm.ListTopics
	if o.internal {
		list = adm.ListTopicsWithInternal
	}
	topics, err := list(ctx)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	rows := make([]listedTopic, 0, len(topics))
	for _, t := range topics.Sorted() {
		rows = append(rows, listedTopic{
			Topic:             t.Topic,
			ID:                topicID(t.ID),
			Internal:          t.IsInternal,
			Partitions:        len(t.Partitions),
			ReplicationFactor: t.Partitions.NumReplicas(),
		})
	}
	if o.json {
		return printJSON(o.c.out, rows)
	}
	if len(rows) == 0 {
		return printf(o.c.err, "There is no topic yet. Create one: mainstem topic create NAME\n")
	}
	t := table{heading: []string{"TOPIC", "PARTITIONS", "REPLICAS"}}
	for _, r := range rows {
		t.add(r.Topic, itoa(r.Partitions), itoa(r.ReplicationFactor))
	}
	return t.print(o.c.out)
}
