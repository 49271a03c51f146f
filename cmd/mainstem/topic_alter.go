package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
)

type topicAlter struct {
	*remote
	partitions int
	set        []string
	unset      []string
	add, sub   []string
	dry        bool
}

func newTopicAlter(c *console) *cobra.Command {
	o := &topicAlter{}
	cmd := &cobra.Command{
		Use:   "alter TOPIC...",
		Short: "Change configs and the number of partitions of topics",
		Example: `  mainstem topic alter orders --set retention.ms=3600000 --unset max.message.bytes
  mainstem topic alter orders --partitions 12`,
		Args: needArgs("the topic's name", 1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.partitions == 0 && len(o.set)+len(o.unset)+len(o.add)+len(o.sub) == 0 {
				return usage("Say what, with --set, --unset, --append, --subtract or --partitions.", "nothing to alter")
			}
			return o.admin(cmd.Context(), func(ctx context.Context, adm *kadm.Client) error { return o.run(ctx, adm, args) })
		},
	}
	o.remote = addRemote(cmd, c)
	f := cmd.Flags()
	f.IntVarP(&o.partitions, "partitions", "p", 0, "number of partitions to grow to")
	f.StringArrayVarP(&o.set, "set", "s", nil, "config name=value (may be repeated)")
	f.StringArrayVarP(&o.unset, "unset", "u", nil, "config name to give its default again (may be repeated)")
	f.StringArrayVar(&o.add, "append", nil, "config name=element to add to a list")
	f.StringArrayVar(&o.sub, "subtract", nil, "config name=element to take from a list")
	f.BoolVar(&o.dry, "dry-run", false, "only check")
	cmd.ValidArgsFunction = completeTopics(o.remote)
	return cmd
}

func (o *topicAlter) alterations() ([]kadm.AlterConfig, error) {
	var out []kadm.AlterConfig
	for _, kind := range []struct {
		flag  string
		words []string
		op    kadm.IncrementalOp
	}{
		{"set", o.set, kadm.SetConfig},
		{"append", o.add, kadm.AppendConfig},
		{"subtract", o.sub, kadm.SubtractConfig},
	} {
		pairs, err := parsePairs(kind.flag, kind.words)
		if err != nil {
			return nil, err
		}
		for _, p := range pairs {
			out = append(out, kadm.AlterConfig{Op: kind.op, Name: p[0], Value: &p[1]})
		}
	}
	for _, name := range o.unset {
		out = append(out, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: name})
	}
	return out, nil
}

func (o *topicAlter) run(ctx context.Context, adm *kadm.Client, names []string) error {
	alter, err := o.alterations()
	if err != nil {
		return err
	}
	failed := make(map[string]error)
	if len(alter) > 0 {
		send := adm.AlterTopicConfigs
		if o.dry {
			send = adm.ValidateAlterTopicConfigs
		}
		answers, err := send(ctx, alter, names...)
		if err != nil {
			return fmt.Errorf("alter configs: %w", err)
		}
		for _, a := range answers {
			failed[a.Name] = errors.Join(failed[a.Name], answerError("alter topic "+a.Name, a.Err, a.ErrMessage))
		}
	}
	if o.partitions != 0 {
		send := adm.UpdatePartitions
		if o.dry {
			send = adm.ValidateUpdatePartitions
		}
		answers, err := send(ctx, o.partitions, names...)
		if err != nil {
			return fmt.Errorf("add partitions: %w", err)
		}
		for _, a := range answers {
			failed[a.Topic] = errors.Join(failed[a.Topic], answerError("add partitions to topic "+a.Topic, a.Err, a.ErrMessage))
		}
	}
	return o.report(names, failed)
}

func (o *topicAlter) report(names []string, failed map[string]error) error {
	did := "altered"
	if o.dry {
		did = "can be altered"
	}
	var results []topicResult
	var errs []error
	for _, name := range names {
		t := topicResult{Topic: name, did: did}
		if err := failed[name]; err != nil {
			t.Error = oneLine(err.Error())
			errs = append(errs, err)
		}
		results = append(results, t)
	}
	return o.finish(results, errs)
}
