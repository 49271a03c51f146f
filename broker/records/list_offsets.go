package records

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/protocol"
)

// The timestamps of ListOffsets that are not times, and the version from which
// each is known.
const (
	latest        = -1
	earliest      = -2
	maxTimestamp  = -3 // v7: of the record with the largest timestamp
	earliestLocal = -4 // v8: of what is not in remote storage alone
	latestTiered  = -5 // v9: of what is in remote storage
	pendingUpload = -6 // v11: of what is not yet in remote storage
)

// listOffsets answers ListOffsets. Looking a time up may read files, so it is done
// when the answer's turn has come.
func (h *Handlers) listOffsets(c *protocol.Call) protocol.Finish {
	req := c.Request.(*kmsg.ListOffsetsRequest)
	return func() protocol.Reply {
		resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
		twice := repeatedOffsets(req)
		for i := range req.Topics {
			rt := &req.Topics[i]
			t := kmsg.NewListOffsetsResponseTopic()
			t.Topic = rt.Topic
			for j := range rt.Partitions {
				rp := &rt.Partitions[j]
				o, err := replica.NoOffset(), error(kerr.InvalidRequest)
				k := offsetKey{rt.Topic, rp.Partition}
				answered, again := twice[k]
				switch {
				case answered:
					continue
				case again:
					twice[k] = true
				default:
					o, err = h.listOffset(req, rt.Topic, rp)
				}
				p := kmsg.NewListOffsetsResponseTopicPartition()
				p.Partition, p.Offset, p.Timestamp, p.LeaderEpoch = rp.Partition, o.Offset, o.Timestamp, o.Epoch
				p.ErrorCode = listOffsetCode(c, err, req.Version)
				t.Partitions = append(t.Partitions, p)
			}
			if len(t.Partitions) > 0 || len(rt.Partitions) == 0 {
				resp.Topics = append(resp.Topics, t)
			}
		}
		return protocol.Reply{Msg: resp}
	}
}

type offsetKey struct {
	topic     string
	partition int32
}

// repeatedOffsets are the partitions that are named more than once; each gets one
// answer, an error. The value tells whether it was given.
func repeatedOffsets(req *kmsg.ListOffsetsRequest) map[offsetKey]bool {
	seen := make(map[offsetKey]struct{})
	var twice map[offsetKey]bool
	for i := range req.Topics {
		for j := range req.Topics[i].Partitions {
			k := offsetKey{req.Topics[i].Topic, req.Topics[i].Partitions[j].Partition}
			if _, again := seen[k]; again {
				if twice == nil {
					twice = make(map[offsetKey]bool)
				}
				twice[k] = false
			}
			seen[k] = struct{}{}
		}
	}
	return twice
}

// listOffset looks one offset up.
func (h *Handlers) listOffset(req *kmsg.ListOffsetsRequest, topic string, rp *kmsg.ListOffsetsRequestTopicPartition) (replica.Offset, error) {
	none := replica.NoOffset()
	p, err := replica.Find(h.replicas.Topic(topic), rp.Partition)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return none, err
	}
	if !knownTimestamp(rp.Timestamp, req.Version) {
		return none, kerr.UnsupportedVersion
	}
	if req.IsolationLevel != 0 && req.IsolationLevel != 1 {
		return none, kerr.UnknownServerError // As Kafka says it.
	}
	if err != nil {
		return none, err
	}
	committed := req.IsolationLevel == 1
	switch rp.Timestamp {
	case latest:
		return p.Latest(rp.CurrentLeaderEpoch, committed)
	case earliest, earliestLocal:
		return p.Earliest(rp.CurrentLeaderEpoch)
	case maxTimestamp:
		return p.AtMaxTime(rp.CurrentLeaderEpoch, committed)
	case latestTiered, pendingUpload:
		// There is no remote storage. The leader is asked for its epoch's sake.
		_, err := p.Earliest(rp.CurrentLeaderEpoch)
		return none, err
	}
	return p.AtTime(rp.CurrentLeaderEpoch, committed, rp.Timestamp)
}

func knownTimestamp(ts int64, version int16) bool {
	switch ts {
	case maxTimestamp:
		return version >= 7
	case earliestLocal:
		return version >= 8
	case latestTiered:
		return version >= 9
	case pendingUpload:
		return version >= 11
	}
	return ts >= earliest
}

// listOffsetCode is what the client is told of an error; clients of old versions
// know another for a leader that has to catch up first.
func listOffsetCode(c *protocol.Call, err error, version int16) int16 {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, kerr.UnknownServerError): // The client's own fault, so there is nothing to report.
		return kerr.UnknownServerError.Code
	case version < 5 && errors.Is(err, kerr.OffsetNotAvailable):
		err = kerr.LeaderNotAvailable
	}
	code, _ := c.ErrorCode(err)
	return code
}
