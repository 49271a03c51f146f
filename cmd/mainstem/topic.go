package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

func newTopic(c *console) *cobra.Command {
	return group("topic", "Create, list, describe, alter and delete topics",
		newTopicCreate(c), newTopicList(c), newTopicDescribe(c), newTopicAlter(c), newTopicDelete(c))
}

// completeTopics offers the topics of the broker for the argument.
func completeTopics(r *remote) completion {
	return completeNames(r, func(ctx context.Context, adm *kadm.Client) ([]string, error) {
		topics, err := adm.ListTopics(ctx)
		return topics.Names(), err
	})
}

// parsePairs splits k=v words.
func parsePairs(flag string, words []string) ([][2]string, error) {
	var out [][2]string
	for _, w := range words {
		k, v, ok := strings.Cut(w, "=")
		if !ok || k == "" {
			return nil, usage("Write --"+flag+" name=value.", "--%s %q is not name=value", flag, w)
		}
		out = append(out, [2]string{k, v})
	}
	return out, nil
}

type topicResult struct {
	Topic             string `json:"topic"`
	ID                string `json:"id,omitempty"`
	Partitions        int32  `json:"partitions,omitempty"`
	ReplicationFactor int16  `json:"replication_factor,omitempty"`
	Existed           bool   `json:"existed,omitempty"`
	Error             string `json:"error,omitempty"`

	did string // What the table says.
}

// finish prints what was done for each topic and returns all errors as one.
func (r *remote) finish(results []topicResult, errs []error) error {
	if r.json {
		if err := printJSON(r.c.out, results); err != nil {
			return err
		}
		return errors.Join(errs...)
	}
	for _, t := range results {
		if t.Error == "" {
			if err := printf(r.c.out, "%s %s\n", t.Topic, t.did); err != nil {
				return err
			}
		}
	}
	return errors.Join(errs...)
}

type topicCreate struct {
	*remote
	partitions int32
	replicas   int16
	configs    []string
	exists     bool
	dry        bool
}

func newTopicCreate(c *console) *cobra.Command {
	o := &topicCreate{}
	cmd := &cobra.Command{
		Use:   "create TOPIC...",
		Short: "Create topics",
		Example: `  mainstem topic create orders
  mainstem topic create orders --partitions 6 --config retention.ms=86400000`,
		Args: needArgs("the topic's name", 1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.admin(cmd.Context(), func(ctx context.Context, adm *kadm.Client) error { return o.run(ctx, adm, args) })
		},
	}
	o.remote = addRemote(cmd, c)
	f := cmd.Flags()
	f.Int32VarP(&o.partitions, "partitions", "p", -1, "number of partitions; -1: the broker's default")
	f.Int16VarP(&o.replicas, "replicas", "r", -1, "copies of each partition; -1: the broker's default")
	f.StringArrayVarP(&o.configs, "config", "c", nil, "topic config name=value (may be repeated)")
	f.BoolVar(&o.exists, "if-not-exists", false, "leave a topic that exists as it is")
	f.BoolVar(&o.dry, "dry-run", false, "only check")
	return cmd
}

func (o *topicCreate) run(ctx context.Context, adm *kadm.Client, names []string) error {
	pairs, err := parsePairs("config", o.configs)
	if err != nil {
		return err
	}
	configs := make(map[string]*string)
	for _, p := range pairs {
		configs[p[0]] = &p[1]
	}
	create, did := adm.CreateTopics, "created"
	if o.dry {
		create, did = adm.ValidateCreateTopics, "can be created"
	}
	answers, err := create(ctx, o.partitions, o.replicas, configs, names...)
	if err != nil {
		return fmt.Errorf("create topics: %w", err)
	}
	var results []topicResult
	var errs []error
	for _, a := range answers.Sorted() {
		t := topicResult{Topic: a.Topic, did: did}
		switch {
		case a.Err == nil:
			t.ID, t.Partitions, t.ReplicationFactor = topicID(a.ID), a.NumPartitions, a.ReplicationFactor
		case o.exists && errors.Is(a.Err, kerr.TopicAlreadyExists):
			t.Existed, t.did = true, "exists"
		default:
			err := answerError("create topic "+a.Topic, a.Err, a.ErrMessage)
			t.Error = oneLine(err.Error())
			errs = append(errs, err)
		}
		results = append(results, t)
	}
	return o.finish(results, errs)
}

type topicDelete struct {
	*remote
	exists bool
}

func newTopicDelete(c *console) *cobra.Command {
	o := &topicDelete{}
	cmd := &cobra.Command{
		Use:     "delete TOPIC...",
		Short:   "Delete topics and their records",
		Example: "  mainstem topic delete orders",
		Args:    needArgs("the topic's name", 1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.admin(cmd.Context(), func(ctx context.Context, adm *kadm.Client) error { return o.run(ctx, adm, args) })
		},
	}
	o.remote = addRemote(cmd, c)
	cmd.Flags().BoolVar(&o.exists, "if-exists", false, "do not complain about a topic that is not there")
	cmd.ValidArgsFunction = completeTopics(o.remote)
	return cmd
}

func (o *topicDelete) run(ctx context.Context, adm *kadm.Client, names []string) error {
	answers, err := adm.DeleteTopics(ctx, names...)
	if err != nil {
		return fmt.Errorf("delete topics: %w", err)
	}
	var results []topicResult
	var errs []error
	for _, a := range answers.Sorted() {
		t := topicResult{Topic: a.Topic, did: "deleted"}
		switch {
		case a.Err == nil:
		case o.exists && errors.Is(a.Err, kerr.UnknownTopicOrPartition):
			t.did = "is not there"
		default:
			err := answerError("delete topic "+a.Topic, a.Err, a.ErrMessage)
			t.Error = oneLine(err.Error())
			errs = append(errs, err)
		}
		results = append(results, t)
	}
	return o.finish(results, errs)
}
