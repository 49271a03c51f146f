package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mainstem/mainstem/broker"
	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/log/vfs"
)

// diagnoseAll splits joined errors and diagnoses each.
func diagnoseAll(err error, cmd *cobra.Command) []*failure {
	var done *failure
	if errors.As(err, &done) {
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			var out []*failure
			for _, e := range many.Unwrap() {
				out = append(out, diagnoseAll(e, cmd)...)
			}
			return out
		}
	}
	return []*failure{diagnose(err, cmd)}
}

// diagnose finds what kind of failure an error is and what to do about it.
func diagnose(err error, cmd *cobra.Command) *failure {
	var done *failure
	if errors.As(err, &done) {
		return done
	}
	var locked *vfs.LockedError
	switch {
	case strings.HasPrefix(err.Error(), "if any flags in the group"), strings.HasPrefix(err.Error(), "unknown command"):
		return &failure{exitUsage, err, fmt.Sprintf("See '%s --help'.", cmd.CommandPath())}
	case errors.As(err, &locked):
		return &failure{exitLocked, err, "Stop the other broker, or use another directory: --override log.dirs=DIR."}
	case errors.Is(err, syscall.EADDRINUSE) && strings.Contains(err.Error(), "for HTTP"):
		return &failure{exitAddress, err, "Stop what uses it, or choose another: --override mainstem.http.listener=HOST:PORT."}
	case errors.Is(err, syscall.EADDRINUSE):
		return &failure{exitAddress, err, "Choose another: --override listeners=PLAINTEXT://HOST:PORT."}
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return &failure{exitAddress, err, "Listen on an address of this machine; what clients are told is advertised.listeners."}
	}
	return diagnoseData(err)
}

// diagnoseData is diagnose for what a broker finds in its directory or metadata.
func diagnoseData(err error) *failure {
	switch {
	case errors.Is(err, broker.ErrFormatTooNew):
		return &failure{exitFormat, err, "Start the version that wrote it, or a newer one; nothing was changed."}
	case errors.Is(err, broker.ErrIdentity):
		return &failure{exitIdentity, err, "Give each broker its own log.dirs and node.id, and etcd.prefix of its own cluster; nothing was changed."}
	case errors.Is(err, log.ErrCorrupt):
		return &failure{exitCorrupt, err, "Bring the file back from a backup of the data directory; nothing was changed."}
	case vfs.IsNoSpace(err), errors.Is(err, log.ErrDiskFull):
		return &failure{exitNoSpace, err, "Make room on the disk, or use another directory: --override log.dirs=DIR."}
	case errors.Is(err, log.ErrPoisoned):
		return &failure{exitPoisoned, err, "Look at the disk and the kernel's log, then start again: what was acknowledged is on disk."}
	case errors.Is(err, broker.ErrMetadata):
		return &failure{exitMetadata, err, "Check etcd and etcd.endpoints, etcd.user and etcd.tls.*."}
	case errors.Is(err, fs.ErrPermission):
		return &failure{exitDirectory, err, "Give the user of the broker the right to write there, or use another directory: --override log.dirs=DIR."}
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EISDIR), errors.Is(err, fs.ErrNotExist):
		return &failure{exitDirectory, err, "Use a directory that can be written: --override log.dirs=DIR."}
	}
	return &failure{exitOther, err, ""}
}
