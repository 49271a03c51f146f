package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type topicDescribe struct {
	*remote
	all bool
}

type describedTopic struct {
	Topic      string               `json:"topic"`
	ID         string               `json:"id"`
	Internal   bool                 `json:"internal"`
	Partitions []describedPartition `json:"partitions"`
	Configs    []describedConfig    `json:"configs"`
}

type describedPartition struct {
	Partition   int32   `json:"partition"`
	Leader      int32   `json:"leader"`
	LeaderEpoch int32   `json:"leader_epoch"`
	Replicas    []int32 `json:"replicas"`
	ISR         []int32 `json:"isr"`
	Start       *int64  `json:"start_offset"`
	End         *int64  `json:"end_offset"`
	Bytes       *int64  `json:"bytes"` // Of the largest replica.
	Error       string  `json:"error,omitempty"`
}

type describedConfig struct {
	Name   string  `json:"name"`
	Value  *string `json:"value"`
	Source string  `json:"source"`
}

func newTopicDescribe(c *console) *cobra.Command {
	o := &topicDescribe{}
	cmd := &cobra.Command{
		Use:     "describe TOPIC...",
		Short:   "Show partitions, offsets, sizes and configs of topics",
		Example: "  mainstem topic describe orders --configs",
		Args:    needArgs("the topic's name", 1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.admin(cmd.Context(), func(ctx context.Context, adm *kadm.Client) error { return o.run(ctx, adm, args) })
		},
	}
	o.remote = addRemote(cmd, c)
	cmd.Flags().BoolVar(&o.all, "configs", false, "all configs, also those that have their default")
	cmd.ValidArgsFunction = completeTopics(o.remote)
	return cmd
}

func (o *topicDescribe) run(ctx context.Context, adm *kadm.Client, names []string) error {
	topics, err := adm.ListTopicsWithInternal(ctx, names...)
	if err != nil {
		return fmt.Errorf("describe topics: %w", err)
	}
	var errs []error
	var found []string
	for _, t := range topics.Sorted() {
		if t.Err != nil {
			errs = append(errs, fmt.Errorf("describe topic %s: %w", t.Topic, t.Err))
			continue
		}
		found = append(found, t.Topic)
	}
	described := make([]describedTopic, 0, len(found))
	if len(found) > 0 {
		facts, err := o.ask(ctx, adm, topics, found)
		if err != nil {
			return err
		}
		for _, name := range found {
			described = append(described, facts.describe(topics[name], o.all))
		}
	}
	if o.json {
		if err := printJSON(o.c.out, described); err != nil {
			return err
		}
		return errors.Join(errs...)
	}
	for i := range described {
		if err := o.print(&described[i], i > 0); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// topicFacts is what is asked for beside the metadata.
type topicFacts struct {
	starts, ends kadm.ListedOffsets
	sizes        map[string]map[int32]int64
	configs      kadm.ResourceConfigs
}

func (o *topicDescribe) ask(ctx context.Context, adm *kadm.Client, topics kadm.TopicDetails, names []string) (*topicFacts, error) {
	var f topicFacts
	var err error
	// A partition without a leader has no offsets to tell; the rest has.
	var some *kadm.ShardErrors
	if f.starts, err = adm.ListStartOffsets(ctx, names...); err != nil && !errors.As(err, &some) {
		return nil, fmt.Errorf("list start offsets: %w", err)
	}
	if f.ends, err = adm.ListEndOffsets(ctx, names...); err != nil && !errors.As(err, &some) {
		return nil, fmt.Errorf("list end offsets: %w", err)
	}
	if f.configs, err = adm.DescribeTopicConfigs(ctx, names...); err != nil {
		return nil, fmt.Errorf("describe configs: %w", err)
	}
	var set kadm.TopicsSet
	for _, name := range names {
		set.Add(name, topics[name].Partitions.Numbers()...)
	}
	dirs, err := adm.DescribeAllLogDirs(ctx, set)
	if err != nil && !errors.As(err, &some) {
		return nil, fmt.Errorf("describe log directories: %w", err)
	}
	f.sizes = make(map[string]map[int32]int64)
	dirs.Each(func(d kadm.DescribedLogDir) {
		d.Topics.Each(func(p kadm.DescribedLogDirPartition) {
			if f.sizes[p.Topic] == nil {
				f.sizes[p.Topic] = make(map[int32]int64)
			}
			f.sizes[p.Topic][p.Partition] = max(f.sizes[p.Topic][p.Partition], p.Size)
		})
	})
	return &f, nil
}

func (f *topicFacts) describe(t kadm.TopicDetail, all bool) describedTopic {
	d := describedTopic{Topic: t.Topic, ID: topicID(t.ID), Internal: t.IsInternal, Configs: []describedConfig{}}
	for _, p := range t.Partitions.Sorted() {
		out := describedPartition{
			Partition: p.Partition, Leader: p.Leader, LeaderEpoch: p.LeaderEpoch,
			Replicas: p.Replicas, ISR: p.ISR,
		}
		if p.Err != nil {
			out.Error = p.Err.Error()
		}
		if start, ok := f.starts.Lookup(t.Topic, p.Partition); ok && start.Err == nil {
			out.Start = &start.Offset
		}
		if end, ok := f.ends.Lookup(t.Topic, p.Partition); ok && end.Err == nil {
			out.End = &end.Offset
		}
		if size, ok := f.sizes[t.Topic][p.Partition]; ok {
			out.Bytes = &size
		}
		d.Partitions = append(d.Partitions, out)
	}
	rc, err := f.configs.On(t.Topic, nil)
	if err != nil || rc.Err != nil {
		return d
	}
	for _, c := range rc.Configs {
		if all || c.Source == kmsg.ConfigSourceDynamicTopicConfig {
			d.Configs = append(d.Configs, describedConfig{Name: c.Key, Value: c.Value, Source: c.Source.String()})
		}
	}
	slices.SortFunc(d.Configs, func(a, b describedConfig) int { return strings.Compare(a.Name, b.Name) })
	return d
}

func (o *topicDescribe) print(d *describedTopic, again bool) error {
	if again {
		if err := printf(o.c.out, "\n"); err != nil {
			return err
		}
	}
	if err := printf(o.c.out, "%s (id %s, %d partitions)\n", d.Topic, d.ID, len(d.Partitions)); err != nil {
		return err
	}
	t := table{heading: []string{"PARTITION", "LEADER", "EPOCH", "REPLICAS", "IN SYNC", "START", "END", "SIZE"}}
	for _, p := range d.Partitions {
		leader := itoa(p.Leader)
		if p.Leader < 0 {
			leader = "none"
		}
		t.add(itoa(p.Partition), leader, itoa(p.LeaderEpoch), joinIDs(p.Replicas), joinIDs(p.ISR),
			orDash(p.Start, itoa), orDash(p.End, itoa), orDash(p.Bytes, byteSize))
	}
	if err := t.print(o.c.out); err != nil || len(d.Configs) == 0 {
		return err
	}
	configs := table{heading: []string{"CONFIG", "VALUE", "SOURCE"}}
	for _, c := range d.Configs {
		value := ""
		if c.Value != nil {
			value = *c.Value
		}
		configs.add(c.Name, value, c.Source)
	}
	return configs.print(o.c.out)
}

func orDash(n *int64, write func(int64) string) string {
	if n == nil {
		return "-"
	}
	return write(*n)
}
