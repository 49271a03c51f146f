package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const rootText = `Mainstem is a message broker that Kafka clients use unchanged.

Without a command it starts a broker on 127.0.0.1:9092 with its data in
./mainstem-data. The other commands talk to a running broker.`

// newRoot builds the whole command line.
func newRoot(c *console) *cobra.Command {
	root := &cobra.Command{
		Use:           "mainstem",
		Short:         "A Kafka-compatible message broker",
		Long:          rootText + "\n\n" + exitCodes,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noUnknownCommand,

		SuggestionsMinimumDistance: 2,
	}
	root.CompletionOptions.HiddenDefaultCmd = false
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage(fmt.Sprintf("See '%s --help'.", cmd.CommandPath()), "%w", err)
	})
	root.SetGlobalNormalizationFunc(kafkaFlagNames)
	asServe(root, c)
	root.AddCommand(
		newServe(c),
		newTopic(c),
		newGroup(c),
		newClient(c),
		newTxn(c),
		newProduce(c),
		newConsume(c),
		newCluster(c),
		newBench(c),
		newLog(c),
		newAPIs(c),
		newReady(c),
		newVersion(c),
	)
	return root
}

// kafkaFlagNames lets Kafka's names of common flags stand for ours.
func kafkaFlagNames(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	switch name {
	case "bootstrap-server", "bootstrap-servers", "brokers":
		name = "bootstrap"
	case "replication-factor":
		name = "replicas"
	}
	return pflag.NormalizedName(name)
}

func noUnknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return usage(fmt.Sprintf("Did you mean '%s %s'?", cmd.CommandPath(), near[0]), "%s", text)
	}
	return usage(fmt.Sprintf("See '%s --help'.", cmd.CommandPath()), "%s", text)
}

// needArgs checks the number of arguments; what names them in the message. At
// most max are allowed, any number if max is negative.
func needArgs(what string, least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && (most < 0 || len(args) <= most) {
			return nil
		}
		err := errors.New("missing " + what)
		if len(args) > 0 && len(args) > most && most >= 0 {
			err = fmt.Errorf("unexpected argument %q", args[most])
		}
		return usage("Usage: "+strings.TrimSpace(cmd.UseLine())+".", "%w", err)
	}
}

// group makes a command that only holds others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  noUnknownCommand,

		SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	cmd.AddCommand(commands...)
	return cmd
}
