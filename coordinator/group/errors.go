package group

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
)

// codeOf is the code that a client is told; the machine's own errors all have one.
func codeOf(err error) int16 {
	if err == nil {
		return 0
	}
	var e *kerr.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return kerr.UnknownServerError.Code
}
