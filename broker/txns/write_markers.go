package txns

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/txn"
	"github.com/mainstem/mainstem/protocol"
)

// writeTxnMarkers answers WriteTxnMarkers: another coordinator, or a tool that ends
// a transaction which its coordinator has forgotten.
func (h *Handlers) writeTxnMarkers(c *protocol.Call) protocol.Finish {
	req := c.Request.(*kmsg.WriteTxnMarkersRequest)
	w := &marks{h: h}
	for i := range req.Markers {
		rm := &req.Markers[i]
		for _, rt := range rm.Topics {
			for _, partition := range rt.Partitions {
				w.append(&mark{
					place:  txn.Place{Topic: rt.Topic, Partition: partition},
					raised: req.Version >= 2 && rm.TransactionVersion >= int8(txn.Version2),
					marker: coordinator.Marker{
						Producer: coordinator.Producer{ID: rm.ProducerID, Epoch: rm.ProducerEpoch},
						Commit:   rm.Committed, CoordinatorEpoch: rm.CoordinatorEpoch,
					},
				})
			}
		}
	}
	return func() protocol.Reply {
		w.wait(c.Ctx, h.live.Millis("request.timeout.ms"), c.Draining())
		resp := req.ResponseKind().(*kmsg.WriteTxnMarkersResponse)
		next := 0
		for i := range req.Markers {
			rm := &req.Markers[i]
			row := kmsg.NewWriteTxnMarkersResponseMarker()
			row.ProducerID = rm.ProducerID
			for _, rt := range rm.Topics {
				t := kmsg.NewWriteTxnMarkersResponseMarkerTopic()
				t.Topic = rt.Topic
				for _, partition := range rt.Partitions {
					p := kmsg.NewWriteTxnMarkersResponseMarkerTopicPartition()
					p.Partition, p.ErrorCode = partition, code(c, markerError(w.all[next]))
					next++
					t.Partitions = append(t.Partitions, p)
				}
				row.Topics = append(row.Topics, t)
			}
			resp.Markers = append(resp.Markers, row)
		}
		return protocol.Reply{Msg: resp}
	}
}

// markerError is what who sends a marker is told: to come back later to the
// partition's leader while the groups on it are being loaded.
func markerError(m *mark) error {
	if m.group != nil && errors.Is(m.err, kerr.NotCoordinator) {
		return kerr.NotLeaderForPartition
	}
	return m.err
}
