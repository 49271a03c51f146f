package txns

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/txn"
	"github.com/mainstem/mainstem/protocol"
)

// byBrokers is the version of AddPartitionsToTxn from which brokers send it, for
// many transactions. Clients whose brokers do so speak version 2 of transactions.
const byBrokers = 4

// adding is one transaction of an AddPartitionsToTxn.
type adding struct {
	request txn.Add
	verify  bool
	missing []bool // of each of the request's places
	// What was asked, nil if there was nothing to ask.
	added *Enlisting
	err   error
}

// addPartitionsToTxn answers AddPartitionsToTxn once the partitions are added, or
// verified. One that does not exist has none added.
func (h *Handlers) addPartitionsToTxn(c *protocol.Call) protocol.Finish {
	req := c.Request.(*kmsg.AddPartitionsToTxnRequest)
	if req.Version < byBrokers {
		return h.addForClient(c, req)
	}
	all := make([]*adding, len(req.Transactions))
	for i := range req.Transactions {
		rt := &req.Transactions[i]
		a := &adding{verify: rt.VerifyOnly, request: txn.Add{
			ID: rt.TransactionalID, Version: txn.Version2,
			Producer: coordinator.Producer{ID: rt.ProducerID, Epoch: rt.ProducerEpoch},
		}}
		for _, topic := range rt.Topics {
			a.places(topic.Topic, topic.Partitions)
		}
		h.begin(a)
		all[i] = a
	}
	return func() protocol.Reply {
		resp := req.ResponseKind().(*kmsg.AddPartitionsToTxnResponse)
		for i, a := range all {
			codes := a.codes(c)
			row := kmsg.NewAddPartitionsToTxnResponseTransaction()
			row.TransactionalID = req.Transactions[i].TransactionalID
			for _, topic := range req.Transactions[i].Topics {
				t := kmsg.NewAddPartitionsToTxnResponseTransactionTopic()
				t.Topic = topic.Topic
				for _, partition := range topic.Partitions {
					p := kmsg.NewAddPartitionsToTxnResponseTransactionTopicPartition()
					p.Partition, p.ErrorCode, codes = partition, codes[0], codes[1:]
					t.Partitions = append(t.Partitions, p)
				}
				row.Topics = append(row.Topics, t)
			}
			resp.Transactions = append(resp.Transactions, row)
		}
		return protocol.Reply{Msg: resp}
	}
}

// addForClient serves the versions that clients send: for one transaction.
func (h *Handlers) addForClient(c *protocol.Call, req *kmsg.AddPartitionsToTxnRequest) protocol.Finish {
	a := &adding{request: txn.Add{
		ID: req.TransactionalID, Version: txn.Version1,
		Producer: coordinator.Producer{ID: req.ProducerID, Epoch: req.ProducerEpoch},
	}}
	for _, topic := range req.Topics {
		a.places(topic.Topic, topic.Partitions)
	}
	h.begin(a)
	if a.added != nil {
		c.ReadyWhen(a.added.Ready)
	}
	return func() protocol.Reply {
		resp := req.ResponseKind().(*kmsg.AddPartitionsToTxnResponse)
		codes := a.codes(c)
		for _, topic := range req.Topics {
			t := kmsg.NewAddPartitionsToTxnResponseTopic()
			t.Topic = topic.Topic
			for _, partition := range topic.Partitions {
				p := kmsg.NewAddPartitionsToTxnResponseTopicPartition()
				p.Partition, p.ErrorCode, codes = partition, codes[0], codes[1:]
				t.Partitions = append(t.Partitions, p)
			}
			resp.Topics = append(resp.Topics, t)
		}
		return protocol.Reply{Msg: resp}
	}
}

func (a *adding) places(topic string, partitions []int32) {
	for _, p := range partitions {
		a.request.Places = append(a.request.Places, txn.Place{Topic: topic, Partition: p})
	}
}

// begin asks the coordinator, unless something is wrong with the request by itself.
func (h *Handlers) begin(a *adding) {
	if a.request.ID == "" {
		a.err = kerr.InvalidRequest
		return
	}
	a.missing = make([]bool, len(a.request.Places))
	incomplete := false
	for i, place := range a.request.Places {
		a.missing[i] = !h.exists(place)
		incomplete = incomplete || a.missing[i]
	}
	if incomplete {
		a.err = kerr.OperationNotAttempted
		return
	}
	a.added = h.ask(a.request, a.verify)
}

// exists tells whether the cluster has such a partition.
func (h *Handlers) exists(p txn.Place) bool {
	t := h.replicas.Topic(p.Topic)
	return t != nil && p.Partition >= 0 && int(p.Partition) < t.Partitions()
}

// codes are those of the places, in their order.
func (a *adding) codes(c *protocol.Call) []int16 {
	codes := make([]int16, len(a.request.Places))
	var errs []error
	if a.added != nil {
		errs = a.added.Wait(c.Ctx, c.Draining())
	}
	for i := range codes {
		err := a.err
		switch {
		case errs != nil:
			err = errs[i]
		case a.missing != nil && a.missing[i]:
			err = kerr.UnknownTopicOrPartition
		}
		codes[i] = codeBelow(knowsFenced, c, err)
	}
	return codes
}

// named is the topic of a name and the error for one that is not there.
func (h *Handlers) named(name string) (*replica.Topic, error) {
	if t := h.replicas.Topic(name); t != nil {
		return t, nil
	}
	return nil, kerr.UnknownTopicOrPartition
}
