package protocol

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestErrorsBecomeCodes(t *testing.T) {
	code, text := ErrorCode(nil)
	require.Zero(t, code)
	require.Nil(t, text)
	code, text = ErrorCode(kerr.InvalidTopicException)
	require.Equal(t, int16(17), code)
	require.Equal(t, kerr.InvalidTopicException.Description, *text)
	code, text = ErrorCode(fmt.Errorf("topic %q: %w", "a b", kerr.InvalidTopicException))
	require.Equal(t, int16(17), code)
	require.Contains(t, *text, `topic "a b"`)
	code, text = ErrorCode(errors.New("open /secret/path"))
	require.Equal(t, int16(-1), code)
	require.NotContains(t, *text, "secret")
}

func TestUnknownErrorsAreReportedOnceAndAllCodesCounted(t *testing.T) {
	var unknown []error
	var codes []int16
	s := serve(t, Options{
		APIs: []API{{Key: 3, Min: 0, Max: 13, Submit: func(c *Call) Finish {
			for _, err := range []error{nil, kerr.InvalidRequest, context.Canceled} {
				code, _ := c.ErrorCode(err)
				want, _ := ErrorCode(err)
				require.Equal(t, want, code)
			}
			return c.Answer(c.Request.ResponseKind())
		}}},
		Events: Events{
			UnknownError: func(c *ConnInfo, key, version int16, err error) {
				require.Equal(t, []int16{3, 1}, []int16{key, version})
				unknown = append(unknown, err)
			},
			ErrorCode: func(key, version, code int16) {
				require.Equal(t, []int16{3, 1}, []int16{key, version})
				codes = append(codes, code)
			},
		},
	})
	dial(t, s, "PLAINTEXT").alive()
	require.Equal(t, []error{context.Canceled}, unknown)
	require.Equal(t, []int16{42, -1}, codes)
}

func TestEveryExchangeIsTold(t *testing.T) {
	told := make(chan Exchange, 9)
	conns := make(chan uint64, 9)
	s := serve(t, Options{APIs: (&fakeBroker{}).apis(), Events: Events{
		Answered: func(e Exchange) { told <- e },
		Accepted: func(c *ConnInfo) { conns <- c.ID },
		Closed:   func(c *ConnInfo, _ error) { conns <- c.ID },
	}})
	c := dial(t, s, "PLAINTEXT")
	silent := frameOf(produceTo(0, []byte("r")), 1, "c")
	c.send(silent)
	e := <-told
	require.Equal(t, Exchange{Key: 0, Version: 9, RequestBytes: len(silent), Took: e.Took}, e)

	fetch := frameOf(fetchFor(0), 1, "c")
	c.send(fetch)
	_, answer := c.receive()
	e = <-told
	require.Equal(t, Exchange{Key: 1, Version: 12, RequestBytes: len(fetch), ResponseBytes: 8 + len(answer), Took: e.Took}, e)
	require.Positive(t, e.Took)
	require.NoError(t, c.nc.Close())
	require.Equal(t, uint64(1), <-conns)
	require.Equal(t, uint64(1), <-conns)
}

// Answers are let go exactly once, whether they were written or not.
func TestAnswersAreReleasedOnce(t *testing.T) {
	released := make(chan string, 9)
	entered := make(chan struct{}, 1)
	s := serve(t, Options{APIs: []API{{Key: 3, Min: 0, Max: 13, Submit: func(c *Call) Finish {
		r := Reply{Body: &Buffers{
			Pieces:  [][]byte{{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}},
			Release: func() { released <- "body" },
		}, Release: func() { released <- "reply" }}
		if c.Version == 0 {
			return c.Reply(r)
		}
		c.MayPark()
		ctx := c.Ctx
		return func() Reply { entered <- struct{}{}; <-ctx.Done(); return r }
	}}}})
	c := dial(t, s, "PLAINTEXT")
	c.send(frameOf(metadataOf(0), 1, "c"))
	_, b := c.receive()
	require.Len(t, b, 12)
	require.ElementsMatch(t, []string{"body", "reply"}, []string{<-released, <-released})
	c.send(frameOf(metadataOf(1), 2, "c"))
	<-entered
	require.NoError(t, c.nc.Close())
	require.ElementsMatch(t, []string{"body", "reply"}, []string{<-released, <-released})
	require.Empty(t, released)
}

func TestRequestsRunWithoutAConnection(t *testing.T) {
	apis := (&fakeBroker{}).apis()
	r, err := apis[0].Do(t.Context(), produceTo(1, []byte("r")), nil)
	require.NoError(t, err)
	require.Len(t, r.Msg.(*kmsg.ProduceResponse).Topics, 1)
	r, err = apis[0].Do(t.Context(), produceTo(0, []byte("r")), nil)
	require.NoError(t, err)
	require.True(t, r.None)
	r, err = apis[2].Do(t.Context(), metadataOf(3), nil)
	require.NoError(t, err)
	require.Equal(t, int16(3), r.Msg.GetVersion())
}
