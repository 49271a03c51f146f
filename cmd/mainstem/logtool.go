package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/log/vfs"
)

func newLog(c *console) *cobra.Command {
	return group("log", "Look into the data directory of a stopped broker", newLogDump(c), newLogCheck(c))
}

func newLogDump(c *console) *cobra.Command {
	o := log.DumpOptions{Partition: -1}
	var dir string
	cmd := &cobra.Command{
		Use:   "dump [DIR]",
		Short: "Print what a data directory holds (default ./mainstem-data)",
		Example: `  mainstem log dump
  mainstem log dump /var/lib/mainstem --topic orders --partition 0 --records`,
		Args: needArgs("", 0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir = dataDir(args)
			out := bufio.NewWriterSize(c.out, 64<<10)
			if err := log.Dump(vfs.OS(), dir, out, o); err != nil {
				return stoppedFailure(dir, errors.Join(err, out.Flush()))
			}
			if err := out.Flush(); err != nil {
				return fmt.Errorf("write output: %w", err)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.Frames, "frames", false, "every frame")
	f.BoolVar(&o.Batches, "batches", false, "the header of every record batch")
	f.BoolVar(&o.Records, "records", false, "every record")
	f.BoolVar(&o.Partitions, "partitions", false, "the state of every partition")
	f.StringVarP(&o.Topic, "topic", "t", "", "only this topic")
	f.Int32VarP(&o.Partition, "partition", "p", -1, "only this partition")
	return cmd
}

type checkReport struct {
	Directory  string   `json:"directory"`
	Segments   int      `json:"segments"`
	Partitions int      `json:"partitions"`
	Frames     int64    `json:"frames"`
	Batches    int64    `json:"batches"`
	Bytes      int64    `json:"bytes"`
	Clean      bool     `json:"clean"`
	Problems   []string `json:"problems"`
}

func newLogCheck(c *console) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check [DIR]",
		Short: "Read everything in a data directory and report damage (default ./mainstem-data)",
		Args:  needArgs("", 0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := dataDir(args)
			r, err := log.Check(vfs.OS(), dir)
			if err != nil {
				return stoppedFailure(dir, err)
			}
			report := checkReport{dir, r.Segments, r.Partitions, r.Frames, r.Batches, r.Bytes, r.Clean, append([]string{}, r.Problems...)}
			if err := report.print(c, asJSON); err != nil {
				return err
			}
			if len(r.Problems) > 0 {
				return fail(exitDamaged, "Other records stay readable; start the broker to set the damaged ones aside.",
					fmt.Errorf("%s: %d problems found", dir, len(r.Problems)))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (r *checkReport) print(c *console, asJSON bool) error {
	if asJSON {
		return printJSON(c.out, r)
	}
	for _, p := range r.Problems {
		if err := printf(c.out, "%s\n", p); err != nil {
			return err
		}
	}
	state := "cleanly stopped"
	if !r.Clean {
		state = "not cleanly stopped"
	}
	return printf(c.out, "%s: %d segments, %d partitions, %d frames, %d batches, %s; %s; %d problems\n",
		r.Directory, r.Segments, r.Partitions, r.Frames, r.Batches, byteSize(r.Bytes), state, len(r.Problems))
}

func dataDir(args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	return "mainstem-data"
}

// stoppedFailure is for the commands that want a stopped data directory.
func stoppedFailure(dir string, err error) error {
	var locked *vfs.LockedError
	switch {
	case errors.As(err, &locked):
		return fail(exitLocked, "Stop the broker first, or copy the directory while it is stopped.", err)
	case errors.Is(err, fs.ErrNotExist):
		return fail(exitDirectory, "Give the directory that log.dirs names.", fmt.Errorf("%s is not a data directory: %w", dir, err))
	}
	return err
}
