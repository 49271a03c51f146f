package txns

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group"
	"github.com/mainstem/mainstem/coordinator/txn"
	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/protocol"
)

// Versions of TxnOffsetCommit: from the first on clients know
// TRANSACTION_ABORTABLE, from the second on the commit adds the group by itself.
const (
	commitKnowsAbortable = 4
	commitAdds           = 5
)

// offsetCommit is one TxnOffsetCommit on its way.
type offsetCommit struct {
	h    *Handlers
	req  *kmsg.TxnOffsetCommitRequest
	resp *kmsg.TxnOffsetCommitResponse
	list []group.Offset
	at   [][2]int // of each offset in list: topic and partition of the answer

	who       group.Client
	producer  coordinator.Producer
	partition int32 // of __consumer_offsets
	log       *replica.Partition
	guard     log.TxnGuard
	// enlisting is nil if the partition has an open transaction of the producer.
	enlisting *Enlisting
}

// txnOffsetCommit answers TxnOffsetCommit once the offsets are durable; they count
// when the transaction has committed.
func (h *Handlers) txnOffsetCommit(c *protocol.Call) protocol.Finish {
	req := c.Request.(*kmsg.TxnOffsetCommitRequest)
	o := &offsetCommit{
		h: h, req: req, resp: req.ResponseKind().(*kmsg.TxnOffsetCommitResponse),
		producer: coordinator.Producer{ID: req.ProducerID, Epoch: req.ProducerEpoch},
	}
	if o.who.Version = req.Version; c.ClientID != nil {
		o.who.ID = *c.ClientID
	}
	o.collect(c)
	if len(o.list) == 0 {
		return c.Answer(o.resp)
	}
	if err := o.enlist(); err != nil {
		o.fail(c, err)
		return c.Answer(o.resp)
	}
	var codes *group.Codes
	if o.enlisting == nil {
		codes = o.commit()
		c.ReadyWhen(codes.Ready)
	}
	return func() protocol.Reply {
		got, err := o.finish(c, codes)
		if err != nil {
			o.fail(c, o.told(err))
			return protocol.Reply{Msg: o.resp}
		}
		for i, n := range got {
			if n != 0 {
				_, _ = c.ErrorCode(kerr.ErrorForCode(n))
			}
			o.row(i).ErrorCode = n
		}
		return protocol.Reply{Msg: o.resp}
	}
}

// maxAsked bounds how often the coordinators are asked about one commit.
const maxAsked = 5

// errLate says that a marker has come since the transaction's coordinator was asked.
var errLate = fmt.Errorf("a marker came before the offsets: %w", kerr.TransactionAbortable)

// finish waits for the transaction's coordinator and for the group's. A commit that
// adds its group itself is tried again if a marker came in between: it may have been
// that of the transaction before.
func (o *offsetCommit) finish(c *protocol.Call, codes *group.Codes) ([]int16, error) {
	for asked := 1; ; asked++ {
		if o.enlisting != nil {
			if err := o.enlisting.Wait(c.Ctx, c.Draining())[0]; err != nil {
				return nil, err
			}
			o.enlisting, codes = nil, nil
		}
		if codes == nil {
			codes = o.commit()
		}
		got, err := codes.Wait(c.Ctx, c.Draining())
		if !errors.Is(err, errLate) || o.req.Version < commitAdds || asked == maxAsked {
			return got, err
		}
		codes = nil
		if err := o.enlist(); err != nil {
			return nil, err
		}
	}
}

// collect makes a row of each partition, and an offset of each that exists.
func (o *offsetCommit) collect(c *protocol.Call) {
	for i := range o.req.Topics {
		rt := &o.req.Topics[i]
		t, err := o.h.named(rt.Topic)
		row := kmsg.NewTxnOffsetCommitResponseTopic()
		row.Topic = rt.Topic
		for j := range rt.Partitions {
			rp := &rt.Partitions[j]
			p := kmsg.NewTxnOffsetCommitResponseTopicPartition()
			p.Partition = rp.Partition
			if err != nil || rp.Partition < 0 || int(rp.Partition) >= t.Partitions() {
				p.ErrorCode, _ = c.ErrorCode(kerr.UnknownTopicOrPartition)
			} else {
				o.at = append(o.at, [2]int{i, j})
				offset := group.Offset{Topic: t.Name, TopicID: t.ID, Partition: rp.Partition, Offset: rp.Offset, Epoch: -1, Metadata: rp.Metadata}
				if o.req.Version >= knowsFenced {
					offset.Epoch = rp.LeaderEpoch
				}
				o.list = append(o.list, offset)
			}
			row.Partitions = append(row.Partitions, p)
		}
		o.resp.Topics = append(o.resp.Topics, row)
	}
}

// enlist makes sure that the transaction includes the group: the partition has it
// open, or else the coordinator is asked.
func (o *offsetCommit) enlist() error {
	if o.req.TransactionalID == "" {
		return kerr.InvalidRequest
	}
	partition, err := o.h.offsetsPartition(o.req.Group)
	if err != nil {
		return err
	}
	o.partition = partition
	found, err := replica.Find(o.h.replicas.Topic(OffsetsTopic), partition)
	if err != nil {
		return kerr.NotCoordinator
	}
	var open bool
	o.log = found
	if o.guard, open = found.Log().TxnGuard(o.producer.ID, o.producer.Epoch); open {
		return nil
	}
	places := []txn.Place{{Topic: OffsetsTopic, Partition: partition}}
	switch {
	case o.req.Version >= commitAdds:
		o.enlisting = o.h.Enlist(o.req.TransactionalID, o.producer, places, o.h.live.Millis("offsets.commit.timeout.ms"))
	case o.h.live.Bool("transaction.partition.verification.enable"):
		o.enlisting = o.h.Verify(o.req.TransactionalID, o.producer, places)
	}
	return nil
}

// commit has the group's coordinator commit, unless the transaction has ended
// since it was looked at.
func (o *offsetCommit) commit() *group.Codes {
	l, producer, guard := o.log.Log(), o.producer, o.guard
	return o.h.groups.CommitTxnOffsets(o.who, o.req, o.list, func() error {
		if now, _ := l.TxnGuard(producer.ID, producer.Epoch); now != guard {
			return errLate
		}
		return nil
	})
}

// told is the error that the request's version knows for one of the transaction's
// coordinator.
func (o *offsetCommit) told(err error) error {
	switch {
	case errors.Is(err, kerr.TransactionAbortable) && o.req.Version < commitKnowsAbortable:
		return kerr.InvalidTxnState
	case errors.Is(err, kerr.ProducerFenced):
		return kerr.InvalidProducerEpoch
	case errors.Is(err, kerr.NotCoordinator), errors.Is(err, kerr.CoordinatorNotAvailable):
		// The client has come to the right coordinator of the group: it is to stay.
		return kerr.CoordinatorLoadInProgress
	}
	return err
}

// fail gives all rows that are left an error.
func (o *offsetCommit) fail(c *protocol.Call, err error) {
	n := code(c, err)
	for i := range o.at {
		o.row(i).ErrorCode = n
	}
}

func (o *offsetCommit) row(i int) *kmsg.TxnOffsetCommitResponseTopicPartition {
	return &o.resp.Topics[o.at[i][0]].Partitions[o.at[i][1]]
}
