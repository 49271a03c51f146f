package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mainstem/mainstem/broker"
	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/log/vfs"
)

func newLog(c *console) *cobra.Command {
	return group("log", "Look into the data directory of a stopped broker", newLogDump(c), newLogCheck(c))
}

func newLogDump(c *console) *cobra.Command {
	o := log.DumpOptions{Partition: -1}
	cmd := &cobra.Command{
		Use:   "dump [DIR]",
		Short: "Print what a data directory holds (default ./mainstem-data)",
		Example: `  mainstem log dump
  mainstem log dump /var/lib/mainstem --topic orders --partition 0 --records`,
		Args: needArgs("", 0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			return onStopped(dataDir(args), func(dir string) error {
				out := bufio.NewWriterSize(c.out, 64<<10)
				err := log.Dump(vfs.OS(), broker.LogDir(dir), out, o)
				if flushErr := out.Flush(); err == nil && flushErr != nil {
					err = fmt.Errorf("write output: %w", flushErr)
				}
				return err
			})
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
			return onStopped(dataDir(args), func(dir string) error { return checkLog(c, dir, asJSON) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func checkLog(c *console, dir string, asJSON bool) error {
	r, err := log.Check(vfs.OS(), broker.LogDir(dir))
	if err != nil {
		return err
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

// onStopped runs fn on a data directory while no broker can start in it. A copy
// that cannot be written, and so cannot be locked, is looked into as it is. The
// log's own folder may be named as well.
func onStopped(dir string, fn func(dir string) error) error {
	fsys := vfs.OS()
	if parent := filepath.Dir(filepath.Clean(dir)); broker.LogDir(parent) == filepath.Clean(dir) {
		dir = parent
	}
	if _, err := fsys.Stat(broker.LogDir(dir)); err != nil {
		return fail(exitDirectory, "Give the directory that log.dirs names.", fmt.Errorf("%s is not a data directory: %w", dir, err))
	}
	lock, err := fsys.Lock(filepath.Join(dir, "lock"))
	switch {
	case errors.Is(err, vfs.ErrLocked):
		return fail(exitLocked, "Stop the broker first, or copy the directory while it is stopped.", err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fn(dir)
	case err != nil:
		return fmt.Errorf("lock %s: %w", dir, err)
	}
	return errors.Join(fn(dir), lock.Close())
}
