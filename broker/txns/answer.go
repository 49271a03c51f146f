package txns

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/txn"
	"github.com/mainstem/mainstem/protocol"
)

// finish waits for a promise and answers with what it gives.
func finish[A any](c *protocol.Call, p *coordinator.Promise[A], reply func(a A, err error) kmsg.Response) protocol.Finish {
	c.ReadyWhen(p.Ready)
	return func() protocol.Reply {
		return protocol.Reply{Msg: reply(p.Wait(c.Ctx, c.Draining()))}
	}
}

// outcome waits for an Outcome; its error comes out as the error.
func outcome(c *protocol.Call, p *txn.Promise) (coordinator.Producer, error) {
	o, err := p.Wait(c.Ctx, c.Draining())
	if err == nil {
		err = o.Err
	}
	if err != nil {
		return txn.NoProducer(), err
	}
	return o.Producer, nil
}

// code is what the client is told of an error. Who has hung up is told nothing,
// whatever it is.
func code(c *protocol.Call, err error) int16 {
	if err != nil && c.Ctx.Err() != nil {
		return kerr.NotCoordinator.Code
	}
	n, _ := c.ErrorCode(err)
	return n
}

// codeBelow is code for requests of which versions below one do not know
// PRODUCER_FENCED: they are told what it was called before.
func codeBelow(version int16, c *protocol.Call, err error) int16 {
	if c.Version < version && errors.Is(err, kerr.ProducerFenced) {
		err = kerr.InvalidProducerEpoch
	}
	return code(c, err)
}
