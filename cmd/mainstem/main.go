package main

import (
	"context"
	"errors"
	"io"
	"os"
)

// version is set by the linker; see versionText.
var version string

// console is what a command sees of the world.
type console struct {
	in       io.Reader
	out, err io.Writer
	inTTY    bool
	outTTY   bool
	errTTY   bool
	getenv   func(string) string
	environ  []string
	program  string                            // How the user called us, for texts.
	signals  func() (<-chan os.Signal, func()) // What asks a broker to stop, and how to let go of it.
}

func main() {
	os.Exit(run(context.Background(), os.Args[1:], &console{
		in:      os.Stdin,
		out:     os.Stdout,
		err:     os.Stderr,
		inTTY:   isTerminal(os.Stdin),
		outTTY:  isTerminal(os.Stdout),
		errTTY:  isTerminal(os.Stderr),
		getenv:  os.Getenv,
		environ: os.Environ(),
		program: os.Args[0],
		signals: stopSignals,
	}))
}

// run is main without the process: it returns the exit code.
func run(ctx context.Context, args []string, c *console) int {
	root := newRoot(c)
	root.SetArgs(args)
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	var reported *reportedError
	if errors.As(err, &reported) {
		return reported.code
	}
	failures := diagnoseAll(err, cmd)
	for _, f := range failures {
		f.print(c.err)
	}
	return failures[0].code
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
