package protocol

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// All listeners are plain, and on a plain listener the SASL calls have one
// answer: there is nothing to authenticate for.

func saslHandshake(c *Call) Finish {
	resp := c.Request.ResponseKind().(*kmsg.SASLHandshakeResponse)
	resp.ErrorCode = kerr.IllegalSaslState.Code
	return c.Answer(resp)
}

func saslAuthenticate(c *Call) Finish {
	resp := c.Request.ResponseKind().(*kmsg.SASLAuthenticateResponse)
	resp.ErrorCode = kerr.IllegalSaslState.Code
	text := "This listener takes clients without authentication; no exchange is under way."
	resp.ErrorMessage = &text
	return c.Answer(resp)
}
