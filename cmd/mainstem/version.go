package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionText is what the linker was told, else what Go knows of the build.
func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "development"
}

type versionInfo struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func newVersion(c *console) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version of this binary",
		Args:  needArgs("", 0, 0),
		RunE: func(*cobra.Command, []string) error {
			v := versionInfo{versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH}
			if asJSON {
				return printJSON(c.out, v)
			}
			return printf(c.out, "mainstem %s (%s, %s/%s)\n", v.Version, v.Go, v.OS, v.Arch)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
