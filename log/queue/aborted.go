package queue

import (
	"cmp"
	"slices"
	"sort"
)

// AbortedTxn is an aborted transaction.
type AbortedTxn struct {
	ProducerID int64
	First      int64 // offset of its first record
	Last       int64 // offset of its marker
	LastStable int64 // last stable offset once it had ended
}

// aborted are a queue's aborted transactions, by marker.
type aborted []AbortedTxn

// between returns those that touch [from, to), by first offset.
func (a aborted) between(from, to int64) []AbortedTxn {
	var found []AbortedTxn
	i := sort.Search(len(a), func(i int) bool { return a[i].Last >= from })
	for ; i < len(a); i++ {
		if a[i].First < to {
			found = append(found, a[i])
		}
		if a[i].LastStable >= to {
			break // Whatever ended later began at or above this stable offset.
		}
	}
	slices.SortStableFunc(found, func(x, y AbortedTxn) int { return cmp.Compare(x.First, y.First) })
	return found
}

// moveStart forgets those that ended below the log start.
func (a *aborted) moveStart(start int64) {
	i := sort.Search(len(*a), func(i int) bool { return (*a)[i].Last >= start })
	if i == 0 {
		return
	}
	*a = append(aborted(nil), (*a)[i:]...)
}

// truncate forgets those whose marker lies at or above the end.
func (a *aborted) truncate(end int64) {
	i := sort.Search(len(*a), func(i int) bool { return (*a)[i].Last >= end })
	*a = (*a)[:i]
}

// from returns those whose marker lies at or above the offset.
func (a aborted) from(offset int64) []AbortedTxn {
	return a[sort.Search(len(a), func(i int) bool { return a[i].Last >= offset }):]
}
