package protocol

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// BoundedDecode decodes body into req, whose version is set. The body's
// structure is walked first, so that kmsg never takes memory for a count that
// the body does not hold, and so that nulls and tags where Kafka's schema has
// none are refused. Byte slices of the request lie in body.
func BoundedDecode(req kmsg.Request, body []byte) error {
	if _, err := walkBody(req.Key(), req.GetVersion(), body); err != nil {
		return err
	}
	if err := req.ReadFrom(body); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrMalformed, kmsg.NameForKey(req.Key()), err)
	}
	return nil
}
