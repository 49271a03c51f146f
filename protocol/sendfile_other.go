//go:build !linux

package protocol

import (
	"errors"
	"syscall"
)

// sendsFiles tells that sendFile works.
const sendsFiles = false

// sendFile is for other systems only.
func sendFile(_, _ syscall.RawConn, _ int64, _ int) (int, error) { return 0, errors.ErrUnsupported }
