package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

type groupDescribe struct {
	*remote
	members bool
}

type describedGroup struct {
	Group        string         `json:"group"`
	Type         string         `json:"type"`
	State        string         `json:"state"`
	ProtocolType string         `json:"protocol_type"`
	Assignor     string         `json:"assignor"`
	Coordinator  int32          `json:"coordinator"`
	Lag          int64          `json:"lag"` // The sum over partitions whose lag is known.
	Members      []groupMember  `json:"members"`
	Partitions   []groupReading `json:"partitions"`
}

type groupMember struct {
	ID         string `json:"id"`
	InstanceID string `json:"instance_id,omitempty"`
	ClientID   string `json:"client_id"`
	Host       string `json:"host"`
	Partitions int    `json:"partitions"`

	assigned kadm.TopicsSet
}

// groupReading is a partition that a group has committed, or that a member reads.
type groupReading struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Committed *int64 `json:"committed_offset"`
	End       *int64 `json:"end_offset"`
	Lag       *int64 `json:"lag"`
	Member    string `json:"member,omitempty"`
	Host      string `json:"host,omitempty"`
	ClientID  string `json:"client_id,omitempty"`
	Metadata  string `json:"metadata,omitempty"`
	Error     string `json:"error,omitempty"`
}

func newGroupDescribe(c *console) *cobra.Command {
	o := &groupDescribe{}
	cmd := &cobra.Command{
		Use:   "describe GROUP...",
		Short: "Show members, offsets and lag of groups",
		Example: `  mainstem group describe billing
  mainstem group describe billing --members`,
		Args: needArgs("the group's name", 1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.admin(cmd.Context(), func(ctx context.Context, adm *kadm.Client) error { return o.run(ctx, adm, args) })
		},
	}
	o.remote = addRemote(cmd, c)
	cmd.Flags().BoolVarP(&o.members, "members", "m", false, "members instead of partitions")
	cmd.ValidArgsFunction = completeGroups(o.remote)
	return cmd
}

func (o *groupDescribe) run(ctx context.Context, adm *kadm.Client, names []string) error {
	groups, errs := describeGroups(ctx, adm, names)
	if len(groups) > 0 {
		if err := addReadings(ctx, adm, groups); err != nil {
			return err
		}
	}
	if o.json {
		if err := printJSON(o.c.out, groups); err != nil {
			return err
		}
		return errors.Join(errs...)
	}
	for i, g := range groups {
		if err := o.print(g, i > 0); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// describeGroups asks about groups of all types. What cannot be described is left
// out, and told.
func describeGroups(ctx context.Context, adm *kadm.Client, names []string) (groups []*describedGroup, errs []error) {
	answers, err := adm.DescribeGroups(ctx, names...)
	var some *kadm.ShardErrors
	if err != nil && (!errors.As(err, &some) || some.AllFailed) {
		return nil, []error{fmt.Errorf("describe groups: %w", err)}
	}
	for _, name := range names {
		g, err := answers.On(name, nil)
		if err == nil && g.Err == nil && g.State != "Dead" {
			groups = append(groups, classicGroup(&g))
			continue
		}
		other, err := consumerGroup(ctx, adm, name)
		if err != nil {
			errs = append(errs, fmt.Errorf("describe group %s: %w", name, err))
			continue
		}
		groups = append(groups, other)
	}
	return groups, errs
}

func classicGroup(g *kadm.DescribedGroup) *describedGroup {
	d := &describedGroup{
		Group: g.Group, Type: "classic", State: g.State, ProtocolType: g.ProtocolType, Assignor: g.Protocol,
		Coordinator: g.Coordinator.NodeID, Members: []groupMember{},
	}
	for i := range g.Members {
		m := &g.Members[i]
		row := groupMember{ID: m.MemberID, ClientID: m.ClientID, Host: m.ClientHost, assigned: kadm.TopicsSet{}}
		if m.InstanceID != nil {
			row.InstanceID = *m.InstanceID
		}
		if a, ok := m.Assigned.AsConsumer(); ok {
			for _, t := range a.Topics {
				row.assigned.Add(t.Topic, t.Partitions...)
				row.Partitions += len(t.Partitions)
			}
		}
		d.Members = append(d.Members, row)
	}
	return d
}

// consumerGroup describes a group of the newer protocol.
func consumerGroup(ctx context.Context, adm *kadm.Client, name string) (*describedGroup, error) {
	answers, err := adm.DescribeConsumerGroups(ctx, name)
	var refused *kadm.ShardErrors
	switch {
	case errors.As(err, &refused):
		return nil, kerr.GroupIDNotFound // A broker without such groups has not this one either.
	case err != nil:
		return nil, err
	}
	g, ok := answers[name]
	if !ok {
		return nil, kerr.GroupIDNotFound
	}
	if g.Err != nil {
		return nil, g.Err
	}
	d := &describedGroup{
		Group: name, Type: "consumer", State: g.State, ProtocolType: "consumer", Assignor: g.AssignorName,
		Coordinator: g.Coordinator.NodeID, Members: []groupMember{},
	}
	for i := range g.Members {
		m := &g.Members[i]
		row := groupMember{ID: m.MemberID, ClientID: m.ClientID, Host: m.ClientHost, assigned: m.Assignment}
		if m.InstanceID != nil {
			row.InstanceID = *m.InstanceID
		}
		m.Assignment.Each(func(string, int32) { row.Partitions++ })
		d.Members = append(d.Members, row)
	}
	return d, nil
}

// addReadings finds out where the groups are, and how far behind.
func addReadings(ctx context.Context, adm *kadm.Client, groups []*describedGroup) error {
	names := make([]string, len(groups))
	wanted := kadm.TopicsSet{}
	for i, g := range groups {
		names[i] = g.Group
		for j := range g.Members {
			wanted.Merge(g.Members[j].assigned)
		}
	}
	commits := adm.FetchManyOffsets(ctx, names...)
	wanted.Merge(commits.CommittedPartitions())
	ends := kadm.ListedOffsets{}
	if topics := wanted.Topics(); len(topics) > 0 {
		var err error
		var some *kadm.ShardErrors
		if ends, err = adm.ListEndOffsets(ctx, topics...); err != nil && !errors.As(err, &some) {
			return fmt.Errorf("list end offsets: %w", err)
		}
	}
	for _, g := range groups {
		if err := commits[g.Group].Err; err != nil {
			return fmt.Errorf("fetch offsets of group %s: %w", g.Group, err)
		}
		g.read(commits[g.Group].Fetched, ends)
	}
	return nil
}

// read fills in the partitions of the group.
func (d *describedGroup) read(commits kadm.OffsetResponses, ends kadm.ListedOffsets) {
	all := commits.Partitions()
	readers := map[string]map[int32]*groupMember{}
	for i := range d.Members {
		m := &d.Members[i]
		all.Merge(m.assigned)
		m.assigned.Each(func(t string, p int32) {
			if readers[t] == nil {
				readers[t] = map[int32]*groupMember{}
			}
			readers[t][p] = m
		})
	}
	d.Partitions = []groupReading{}
	all.Each(func(t string, p int32) {
		r := groupReading{Topic: t, Partition: p}
		if c, ok := commits.Lookup(t, p); ok && c.Err == nil && c.At >= 0 {
			r.Committed, r.Metadata = &c.At, c.Metadata
		}
		if end, ok := ends.Lookup(t, p); ok && end.Err == nil {
			r.End = &end.Offset
		} else if ok {
			r.Error = end.Err.Error()
		}
		if r.Committed != nil && r.End != nil {
			lag := max(0, *r.End-*r.Committed)
			r.Lag = &lag
			d.Lag += lag
		}
		if m := readers[t][p]; m != nil {
			r.Member, r.Host, r.ClientID = m.ID, m.Host, m.ClientID
		}
		d.Partitions = append(d.Partitions, r)
	})
	slices.SortFunc(d.Partitions, func(a, b groupReading) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
}

func (o *groupDescribe) print(d *describedGroup, another bool) error {
	if another {
		if err := printf(o.c.out, "\n"); err != nil {
			return err
		}
	}
	err := printf(o.c.out, "Group %s: %s, %s group, %d member(s), assignor %s, coordinator %d, lag %d\n",
		d.Group, d.State, d.Type, len(d.Members), orNone(d.Assignor), d.Coordinator, d.Lag)
	if err != nil {
		return err
	}
	if o.members {
		return o.printMembers(d)
	}
	if len(d.Partitions) == 0 {
		return nil
	}
	t := table{heading: []string{"TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "CLIENT", "HOST", "MEMBER"}}
	for i := range d.Partitions {
		r := &d.Partitions[i]
		t.add(r.Topic, itoa(r.Partition), orDash(r.Committed, itoa), orDash(r.End, itoa), orDash(r.Lag, itoa),
			orNone(r.ClientID), orNone(r.Host), orNone(r.Member))
	}
	return t.print(o.c.out)
}

func (o *groupDescribe) printMembers(d *describedGroup) error {
	if len(d.Members) == 0 {
		return nil
	}
	t := table{heading: []string{"MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS"}}
	for i := range d.Members {
		m := &d.Members[i]
		t.add(m.ID, orNone(m.InstanceID), orNone(m.ClientID), orNone(m.Host), itoa(m.Partitions))
	}
	return t.print(o.c.out)
}

// isUnknownGroup tells that there is no such group.
func isUnknownGroup(err error) bool { return errors.Is(err, kerr.GroupIDNotFound) }
