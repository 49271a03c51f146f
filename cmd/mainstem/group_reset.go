package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
)

type groupReset struct {
	*remote
	topics     []string
	partitions []int32
	to         string
	shift      int64
	dry        bool
}

// movedOffset is an offset of a group before and after.
type movedOffset struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	From      *int64 `json:"from"`
	To        int64  `json:"to"`
	Error     string `json:"error,omitempty"`
}

func newGroupReset(c *console) *cobra.Command {
	o := &groupReset{}
	cmd := &cobra.Command{
		Use:   "reset-offsets GROUP",
		Short: "Move a group's committed offsets",
		Long: `Move the committed offsets of a group without members.

The place is ` + placeHelp + `.
Offsets outside of a partition are moved to its nearest end. Without --topic, all
topics are moved that the group has offsets of.`,
		Example: `  mainstem group reset-offsets billing --topic orders --to beginning
  mainstem group reset-offsets billing --to @-90m --dry-run
  mainstem group reset-offsets billing --topic orders --partition 3 --shift -100`,
		Args: needArgs("the group's name", 1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.admin(cmd.Context(), func(ctx context.Context, adm *kadm.Client) error {
				return o.run(ctx, adm, args[0], cmd.Flags().Changed("shift"))
			})
		},
	}
	o.remote = addRemote(cmd, c)
	f := cmd.Flags()
	f.StringSliceVar(&o.topics, "topic", nil, "the topics; default: all that the group has offsets of")
	f.Int32SliceVar(&o.partitions, "partition", nil, "only these partitions")
	f.StringVar(&o.to, "to", "", "where to: "+placeHelp)
	f.Int64Var(&o.shift, "shift", 0, "by how many records; below zero: back")
	f.BoolVar(&o.dry, "dry-run", false, "only show what would be done")
	cmd.MarkFlagsMutuallyExclusive("to", "shift")
	cmd.MarkFlagsOneRequired("to", "shift")
	cmd.ValidArgsFunction = completeGroups(o.remote)
	return cmd
}

func (o *groupReset) run(ctx context.Context, adm *kadm.Client, name string, shifts bool) error {
	committed, err := adm.FetchOffsets(ctx, name)
	if err != nil {
		return fmt.Errorf("fetch offsets of group %s: %w", name, err)
	}
	topics := o.topics
	if len(topics) == 0 {
		topics = committed.Partitions().Topics()
		slices.Sort(topics)
	}
	if len(topics) == 0 {
		return usage("Name the topics: --topic TOPIC.", "group %s has no offsets yet", name)
	}
	b, err := askBounds(ctx, adm, topics, o.partitions, false)
	if err != nil {
		return err
	}
	targets, err := o.targets(ctx, b, committed, shifts)
	if err != nil {
		return err
	}
	moves, offsets := planMoves(topics, targets, committed)
	if !o.dry {
		if err := o.commit(ctx, adm, name, offsets, moves); err != nil {
			return err
		}
	}
	return o.report(moves)
}

// targets are the new offsets.
func (o *groupReset) targets(ctx context.Context, b *bounds, committed kadm.OffsetResponses, shifts bool) (map[string]map[int32]int64, error) {
	if !shifts {
		to, err := parsePlace("to", o.to, time.Now())
		if err != nil {
			return nil, err
		}
		return b.resolve(ctx, to, true)
	}
	out := make(map[string]map[int32]int64)
	for _, t := range b.topics {
		out[t] = make(map[int32]int64)
		for p, end := range b.ends[t] {
			c, ok := committed.Lookup(t, p)
			if !b.wanted(p) || !ok || c.At < 0 {
				continue
			}
			out[t][p] = min(max(c.At+o.shift, b.starts[t][p].Offset), end.Offset)
		}
	}
	return out, nil
}

// planMoves puts the moves in order.
func planMoves(topics []string, targets map[string]map[int32]int64, committed kadm.OffsetResponses) ([]movedOffset, kadm.Offsets) {
	var moves []movedOffset
	var offsets kadm.Offsets
	for _, t := range topics {
		var numbers []int32
		for p := range targets[t] {
			numbers = append(numbers, p)
		}
		slices.Sort(numbers)
		for _, p := range numbers {
			m := movedOffset{Topic: t, Partition: p, To: targets[t][p]}
			if c, ok := committed.Lookup(t, p); ok && c.At >= 0 {
				m.From = &c.At
			}
			moves = append(moves, m)
			offsets.AddOffset(t, p, m.To, -1)
		}
	}
	return moves, offsets
}

// commit writes the new offsets, and notes in moves what was refused.
func (o *groupReset) commit(ctx context.Context, adm *kadm.Client, name string, offsets kadm.Offsets, moves []movedOffset) error {
	answers, err := adm.CommitOffsets(ctx, name, offsets)
	if err != nil {
		return fmt.Errorf("commit offsets of group %s: %w", name, err)
	}
	var errs []error
	for i := range moves {
		m := &moves[i]
		if a, ok := answers.Lookup(m.Topic, m.Partition); ok && a.Err != nil {
			m.Error = a.Err.Error()
			errs = append(errs, a.Err)
		}
	}
	if len(errs) > 0 && len(errs) == len(moves) {
		return fail(exitRefused, "Stop the group's members first; 'mainstem group describe "+strconv.Quote(name)+"' shows them.",
			fmt.Errorf("move offsets of group %s: %w", name, errs[0]))
	}
	return errors.Join(errs...)
}

func (o *groupReset) report(moves []movedOffset) error {
	if o.json {
		return printJSON(o.c.out, moves)
	}
	if len(moves) == 0 {
		return printf(o.c.err, "There is no offset to move.\n")
	}
	t := table{heading: []string{"TOPIC", "PARTITION", "FROM", "TO"}}
	for i := range moves {
		m := &moves[i]
		t.add(m.Topic, itoa(m.Partition), orDash(m.From, itoa), itoa(m.To))
	}
	if err := t.print(o.c.out); err != nil {
		return err
	}
	if o.dry {
		return printf(o.c.err, "Nothing was changed: --dry-run.\n")
	}
	return nil
}
