package batch

// MarkerType says how a transaction ended.
type MarkerType int16

// The types of markers.
const (
	Abort MarkerType = iota
	Commit
)

// Marker ends a transaction on a partition.
type Marker struct {
	Type             MarkerType
	ProducerID       int64
	ProducerEpoch    int16
	CoordinatorEpoch int32
	Timestamp        int64
}

// Batch returns the control batch that holds the marker, at base offset 0.
func (m Marker) Batch() []byte { panic("skeleton") }

// ParseMarker reads the marker out of a control batch.
func ParseMarker(b []byte) (Marker, error) { panic("skeleton") }
