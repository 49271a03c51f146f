package protocol

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
)

// unknownText is what clients are told of an error that is none of Kafka's: the
// error itself may name files and peers.
const unknownText = "The broker met an unexpected error; its log says more."

// ErrorCode maps an error to the code that a client is told, and to a text for
// answers that carry one. Nil is 0; what is no Kafka error is -1.
func ErrorCode(err error) (code int16, message *string) {
	if err == nil {
		return 0, nil
	}
	text := unknownText
	var ke *kerr.Error
	if !errors.As(err, &ke) {
		return kerr.UnknownServerError.Code, &text
	}
	if text = err.Error(); errors.Is(ke, err) {
		text = ke.Description
	}
	return ke.Code, &text
}
