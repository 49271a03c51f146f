package protocol

// ProduceRequest is a Produce request of versions 3 to 13, walked by hand: the
// records lie in the frame, and no memory is taken a partition.
type ProduceRequest struct {
	Version         int16
	TransactionalID *string
	Acks            int16
	TimeoutMillis   int32
	Topics          []ProduceTopic
}

// ProduceTopic is a topic of a Produce request: by ID from version 13, by Name
// below.
type ProduceTopic struct {
	Name       string
	ID         [16]byte
	Partitions []ProducePartition
}

// ProducePartition is what is appended to one partition.
type ProducePartition struct {
	Index int32
	// Records is nil if the client sent null. It lies in the frame.
	Records []byte
}

// DecodeProduce is the API.Decode of Produce: Call.Body becomes a
// *ProduceRequest, valid until the answer was given.
func DecodeProduce(c *Call, body []byte) error { panic("skeleton") }
