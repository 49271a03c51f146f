package admin

import (
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/mainstem/mainstem/protocol"
)

// unregisterBroker forgets a broker that is gone for good.
func (h *Handlers) unregisterBroker(c *protocol.Call, req *kmsg.UnregisterBrokerRequest, answer *kmsg.UnregisterBrokerResponse) {
	ctx, cancel := deadline(c, defaultTimeoutMs)
	defer cancel()
	err := h.opts.Controller.UnregisterBroker(ctx, req.BrokerID)
	if answer.ErrorCode, answer.ErrorMessage = code(c, err); err != nil {
		return
	}
	answer.ErrorMessage = new(string) // Kafka's is empty, not null.
	h.opts.Logger.Info("broker unregistered", zap.Int32("broker", req.BrokerID))
}
