package protocol

import "github.com/twmb/franz-go/pkg/kmsg"

// BoundedDecode decodes body into req, whose version is set. The body's
// structure is walked first, so that kmsg never takes memory for a count that
// the body does not hold, and so that nulls and tags where Kafka's schema has
// none are refused.
func BoundedDecode(req kmsg.Request, body []byte) error { panic("skeleton") }
