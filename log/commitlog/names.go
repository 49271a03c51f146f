package commitlog

import (
	"fmt"
	"strings"
)

// Names of files within the data directory.
const (
	lockName     = "LOCK"
	manifestName = "manifest"
	reserveName  = "reserve"

	segmentSuffix    = ".segment"
	indexSuffix      = ".index"
	checkpointSuffix = ".checkpoint"
	copySuffix       = ".copy"
	tempSuffix       = ".tmp"
	idDigits         = 16
)

// segmentName returns the name of a segment's file.
func segmentName(id SegmentID) string { return id.String() + segmentSuffix }

// IndexName returns the name that the index file of a segment has.
func IndexName(id SegmentID) string { return id.String() + indexSuffix }

// CheckpointName returns the name that a checkpoint of everything below an LSN has.
func CheckpointName(upto LSN) string { return fmt.Sprintf("%016x%s", uint64(upto), checkpointSuffix) }

// CopyName returns the name that the second copy of a checkpoint has.
func CopyName(checkpoint string) string { return checkpoint + copySuffix }

// ours reports whether a file in the data directory carries one of our names, so that it may go when nothing refers to it.
func ours(name string) bool {
	name = strings.TrimSuffix(name, tempSuffix)
	if name == manifestName || name == reserveName {
		return true
	}
	if copied, ok := strings.CutSuffix(name, copySuffix); ok && strings.HasSuffix(copied, checkpointSuffix) {
		name = copied
	}
	for _, suffix := range [...]string{segmentSuffix, indexSuffix, checkpointSuffix} {
		if digits, ok := strings.CutSuffix(name, suffix); ok {
			return isID(digits)
		}
	}
	return false
}

// isID reports whether s is a number as it stands in file names.
func isID(s string) bool {
	return len(s) == idDigits && strings.Trim(s, "0123456789abcdef") == ""
}

// isSegmentName reports whether a file is a segment's.
func isSegmentName(name string) bool {
	digits, ok := strings.CutSuffix(name, segmentSuffix)
	return ok && isID(digits)
}
