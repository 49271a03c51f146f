package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
)

func newGroup(c *console) *cobra.Command {
	return group("group", "List, describe and delete consumer groups, and move their offsets",
		newGroupList(c), newGroupDescribe(c), newGroupReset(c), newGroupDelete(c))
}

// completeGroups offers the groups of the cluster for the argument.
func completeGroups(r *remote) completion {
	return completeNames(r, func(ctx context.Context, adm *kadm.Client) ([]string, error) {
		groups, err := adm.ListGroups(ctx)
		return groups.Groups(), err
	})
}

type groupList struct {
	*remote
	states []string
	kinds  []string
}

type listedGroup struct {
	Group        string `json:"group"`
	Type         string `json:"type"`
	ProtocolType string `json:"protocol_type"`
	State        string `json:"state"`
	Coordinator  int32  `json:"coordinator"`
}

func newGroupList(c *console) *cobra.Command {
	o := &groupList{}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List groups",
		Example: `  mainstem group list
  mainstem group list --state empty`,
		Args: needArgs("", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.admin(cmd.Context(), o.run)
		},
	}
	o.remote = addRemote(cmd, c)
	f := cmd.Flags()
	f.StringSliceVar(&o.states, "state", nil, "only groups in these states: Stable, Empty, PreparingRebalance, …")
	f.StringSliceVar(&o.kinds, "type", nil, "only groups of these types: classic, consumer")
	return cmd
}

func (o *groupList) run(ctx context.Context, adm *kadm.Client) error {
	groups, err := adm.ListGroupsByType(ctx, o.kinds, o.states...)
	if err != nil {
		return fmt.Errorf("list groups: %w", err)
	}
	rows := make([]listedGroup, 0, len(groups))
	for _, g := range groups.Sorted() {
		rows = append(rows, listedGroup{g.Group, g.GroupType, g.ProtocolType, g.State, g.Coordinator})
	}
	if o.json {
		return printJSON(o.c.out, rows)
	}
	if len(rows) == 0 {
		return printf(o.c.err, "There is no such group.\n")
	}
	t := table{heading: []string{"GROUP", "TYPE", "PROTOCOL TYPE", "STATE", "COORDINATOR"}}
	for _, r := range rows {
		t.add(orNone(r.Group), orNone(r.Type), orNone(r.ProtocolType), orNone(r.State), itoa(r.Coordinator))
	}
	return t.print(o.c.out)
}

// orNone keeps columns visible that have nothing to say.
func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

type groupDelete struct {
	*remote
	exists bool
	topics []string
}

type groupResult struct {
	Group string `json:"group"`
	Topic string `json:"topic,omitempty"`
	Error string `json:"error,omitempty"`
}

func newGroupDelete(c *console) *cobra.Command {
	o := &groupDelete{}
	cmd := &cobra.Command{
		Use:   "delete GROUP...",
		Short: "Delete groups without members, with their offsets",
		Example: `  mainstem group delete billing
  mainstem group delete billing --topic orders    # Only its offsets of one topic.`,
		Args: needArgs("the group's name", 1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.admin(cmd.Context(), func(ctx context.Context, adm *kadm.Client) error { return o.run(ctx, adm, args) })
		},
	}
	o.remote = addRemote(cmd, c)
	f := cmd.Flags()
	f.BoolVar(&o.exists, "if-exists", false, "do not complain about a group that is not there")
	f.StringSliceVar(&o.topics, "topic", nil, "delete the offsets of these topics only")
	cmd.ValidArgsFunction = completeGroups(o.remote)
	return cmd
}

func (o *groupDelete) run(ctx context.Context, adm *kadm.Client, names []string) error {
	var results []groupResult
	var errs []error
	for _, name := range names {
		done, err := o.delete(ctx, adm, name)
		results = append(results, done...)
		errs = append(errs, err)
	}
	if o.json {
		if err := printJSON(o.c.out, results); err != nil {
			return err
		}
		return errors.Join(errs...)
	}
	for _, r := range results {
		what := r.Group
		if r.Topic != "" {
			what = "offsets of " + r.Group + " for " + r.Topic
		}
		if r.Error == "" {
			if err := printf(o.c.out, "%s deleted\n", what); err != nil {
				return err
			}
		}
	}
	return errors.Join(errs...)
}

// delete deletes a group, or its offsets of some topics.
func (o *groupDelete) delete(ctx context.Context, adm *kadm.Client, name string) ([]groupResult, error) {
	if len(o.topics) > 0 {
		return o.deleteOffsets(ctx, adm, name)
	}
	answer, err := adm.DeleteGroup(ctx, name)
	if err == nil {
		err = answerError("delete group "+name, answer.Err, answer.ErrMessage)
	} else {
		err = fmt.Errorf("delete group %s: %w", name, err)
	}
	if err != nil && o.exists && isUnknownGroup(err) {
		return nil, nil
	}
	r := groupResult{Group: name}
	if err != nil {
		r.Error = oneLine(err.Error())
	}
	return []groupResult{r}, err
}

func (o *groupDelete) deleteOffsets(ctx context.Context, adm *kadm.Client, name string) ([]groupResult, error) {
	committed, err := adm.FetchOffsets(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("fetch offsets of group %s: %w", name, err)
	}
	set := committed.Partitions()
	for topic := range set {
		if !slices.Contains(o.topics, topic) {
			delete(set, topic)
		}
	}
	answers, err := adm.DeleteOffsets(ctx, name, set)
	if err != nil {
		return nil, fmt.Errorf("delete offsets of group %s: %w", name, err)
	}
	var results []groupResult
	var errs []error
	for _, topic := range o.topics {
		r := groupResult{Group: name, Topic: topic}
		for p, err := range answers[topic] {
			if err != nil {
				err = fmt.Errorf("delete offset of group %s for %s-%d: %w", name, topic, p, err)
				r.Error = oneLine(err.Error())
				errs = append(errs, err)
			}
		}
		results = append(results, r)
	}
	return results, errors.Join(errs...)
}
