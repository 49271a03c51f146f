package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
)

// completion offers words for an argument, as the shell asks for them.
type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// completeNames offers the names that a broker lists, but for those that are written already.
func completeNames(r *remote, list func(context.Context, *kadm.Client) ([]string, error)) completion {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		var names []string
		err := r.admin(cmd.Context(), func(ctx context.Context, adm *kadm.Client) (err error) {
			names, err = list(ctx, adm)
			return err
		})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) })
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
