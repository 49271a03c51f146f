package batch

// fault is what is wrong with the records of a batch. It is a number, so that finding one allocates nothing.
type fault uint8

const (
	sound fault = iota
	faultVarint
	faultRecordLength
	faultRecordShort
	faultKeyLength
	faultValueLength
	faultHeaderCount
	faultHeaderKeyLength
	faultHeaderValueLength
	faultTrailing
	faultFewRecords
	faultManyRecords
	faultUndecodable
	faultTooLarge
)

// String says what is wrong.
func (f fault) String() string {
	switch f {
	case sound:
		return "nothing is wrong"
	case faultVarint:
		return "a number is too long"
	case faultRecordLength:
		return "a record's length is negative or points past the end of the batch"
	case faultRecordShort:
		return "a record ends before its fields do"
	case faultKeyLength:
		return "a key's length is below -1 or points past the end of its record"
	case faultValueLength:
		return "a value's length is below -1 or points past the end of its record"
	case faultHeaderCount:
		return "a record's header count is negative or more than the record can hold"
	case faultHeaderKeyLength:
		return "a header key's length is negative or points past the end of its record"
	case faultHeaderValueLength:
		return "a header value's length is below -1 or points past the end of its record"
	case faultTrailing:
		return "a record is longer than its fields"
	case faultFewRecords:
		return "the batch holds fewer records than its header says"
	case faultManyRecords:
		return "the batch holds more records than its header says"
	case faultUndecodable:
		return ErrUndecodable.Error()
	case faultTooLarge:
		return ErrTooLarge.Error()
	default:
		return "unknown fault"
	}
}

// Error makes a fault an error where a reader meets one.
func (f fault) Error() string { return f.String() }

// Is lets errors.Is find the sentinel that a fault stands for.
func (f fault) Is(target error) bool {
	switch f {
	case faultUndecodable:
		return target == ErrUndecodable
	case faultTooLarge:
		return target == ErrTooLarge
	default:
		return target == ErrInvalidRecord
	}
}
