package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/protocol"
)

// refusal is an error that the client is told: Kafka's code and our text.
type refusal struct {
	kind *kerr.Error
	text string
}

func refuse(kind *kerr.Error, format string, args ...any) error {
	return &refusal{kind: kind, text: fmt.Sprintf(format, args...)}
}

// Error is the text for the client.
func (r *refusal) Error() string { return r.text }

// Unwrap gives the code.
func (r *refusal) Unwrap() error { return r.kind }

// code turns an error into what an answer carries. A change that did not come
// through in time is one that the client may try again.
func code(c *protocol.Call, err error) (int16, *string) {
	if errors.Is(err, context.DeadlineExceeded) {
		err = refuse(kerr.RequestTimedOut, "the metadata store did not answer in time; the change may still be made")
	}
	return c.ErrorCode(err)
}

// checkTopicName says what is wrong with a name for a topic.
func checkTopicName(name string) error {
	switch {
	case meta.LegalTopicName(name):
		return nil
	case name == "":
		return refuse(kerr.InvalidTopicException, "Topic name is invalid: the empty string is not allowed")
	case name == "." || name == "..":
		return refuse(kerr.InvalidTopicException, "Topic name is invalid: '%s' is not allowed", name)
	case len(name) > meta.MaxTopicName:
		return refuse(kerr.InvalidTopicException, "Topic name is invalid: the length of '%s' is longer than the max allowed length %d", clip(name), meta.MaxTopicName)
	}
	return refuse(kerr.InvalidTopicException, "Topic name is invalid: '%s' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'", clip(name))
}

// clip keeps hostile text out of messages.
func clip(s string) string {
	const most = 260
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.ToValidUTF8(s, "?")
}

func textOf(s string) *string { return &s }

// invalid gives what was wrong with a config its code.
func invalid(kind *kerr.Error, err error) error {
	return &refusal{kind: kind, text: clip(err.Error())}
}
