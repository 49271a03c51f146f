package main

import (
	"fmt"
	"io"
	"strings"
)

// Exit codes. They are part of the interface: a number never changes its meaning.
const (
	exitOK        = 0
	exitOther     = 1
	exitUsage     = 2
	exitConfig    = 3
	exitAddress   = 4
	exitDirectory = 5
	exitLocked    = 6
	exitIdentity  = 7
	exitFormat    = 8
	exitNoSpace   = 9
	exitMetadata  = 10
	exitPoisoned  = 11
	exitCorrupt   = 12

	exitUnreachable = 20
	exitRefused     = 21
	exitDamaged     = 30
)

// exitCodes is the list that --help shows.
const exitCodes = `Exit codes:
   0  done, or stopped as asked
   1  a failure that has no number of its own
   2  the command line is wrong
   3  a setting is unknown, has a bad value or is not supported
   4  an address to listen on is in use or not of this machine
   5  the data directory cannot be used (missing rights, not a directory)
   6  the data directory is in use by another process
   7  the data directory and the metadata belong to different clusters or nodes
   8  the data were written by a newer version
   9  no space left on the disk
  10  the metadata store (etcd) refuses or lost what it needs
  11  a write or sync of the log failed while running
  12  files of the log are damaged that nothing can make up for
  20  no broker answers
  21  the broker refused the request
  30  'log check' found damage`

// failure is an error with its exit code and what the user can do about it.
type failure struct {
	code   int
	err    error
	remedy string // A sentence or two, or "".
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// fail makes an error that diagnose leaves as it is.
func fail(code int, remedy string, err error) error {
	return &failure{code: code, err: err, remedy: remedy}
}

// usage is a mistake on the command line.
func usage(remedy, format string, args ...any) error {
	return fail(exitUsage, remedy, fmt.Errorf(format, args...))
}

// print writes one line: cause, then remedy.
func (f *failure) print(w io.Writer) {
	_, _ = fmt.Fprintln(w, "mainstem: "+f.line())
}

func (f *failure) line() string {
	cause := oneLine(f.err.Error())
	if f.remedy == "" {
		return cause
	}
	if !strings.HasSuffix(cause, ".") && !strings.HasSuffix(cause, "?") {
		cause += "."
	}
	return cause + " " + oneLine(f.remedy)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// reportedError ends the program with a code; its text was printed before.
type reportedError struct{ code int }

func (e *reportedError) Error() string { return fmt.Sprintf("exit code %d", e.code) }
