package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// anchor says from what an offset counts.
type anchor uint8

const (
	atOffset anchor = iota // n itself.
	fromStart
	fromEnd // n records before the end.
	atTime  // The first record at or after n milliseconds.
)

// place is where to begin, or to end, in each partition.
type place struct {
	from anchor
	n    int64
}

const placeHelp = "beginning, end, an offset, -N (N before the end), or @TIME: @2026-01-31T15:04:05Z, @1700000000000 (ms), @-90m (ago)"

// parsePlace reads what placeHelp says.
func parsePlace(flag, s string, now time.Time) (place, error) {
	switch s {
	case "beginning", "start", "earliest":
		return place{from: fromStart}, nil
	case "end", "latest":
		return place{from: fromEnd}, nil
	}
	if when, ok := strings.CutPrefix(s, "@"); ok {
		ms, ok := parseTime(when, now)
		if !ok {
			return place{}, usage("Use "+placeHelp+".", "--%s %q is not a time", flag, s)
		}
		return place{from: atTime, n: ms}, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err != nil:
		return place{}, usage("Use "+placeHelp+".", "--%s %q is not an offset", flag, s)
	case n < 0 || strings.HasPrefix(s, "-"):
		return place{from: fromEnd, n: -n}, nil
	default:
		return place{from: atOffset, n: n}, nil
	}
}

func parseTime(s string, now time.Time) (ms int64, ok bool) {
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil && ms >= 0 {
		return ms, true
	}
	if d, err := time.ParseDuration(s); err == nil {
		return now.Add(d).UnixMilli(), true
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t.UnixMilli(), true
		}
	}
	return 0, false
}

// span is what to read of one partition: [at, end).
type span struct {
	topic     string
	partition int32
	at, end   int64
}

// bounds knows first and next offsets of partitions.
type bounds struct {
	adm        *kadm.Client
	topics     []string
	starts     kadm.ListedOffsets
	ends       kadm.ListedOffsets
	partitions []int32 // Those wanted; empty means all.
}

func askBounds(ctx context.Context, adm *kadm.Client, topics []string, partitions []int32, committed bool) (*bounds, error) {
	b := &bounds{adm: adm, topics: topics, partitions: partitions}
	var err error
	if b.starts, err = adm.ListStartOffsets(ctx, topics...); err != nil {
		return nil, fmt.Errorf("list start offsets: %w", err)
	}
	list := adm.ListEndOffsets
	if committed {
		list = adm.ListCommittedOffsets
	}
	if b.ends, err = list(ctx, topics...); err != nil {
		return nil, fmt.Errorf("list end offsets: %w", err)
	}
	for _, listed := range []kadm.ListedOffsets{b.starts, b.ends} {
		for _, t := range topics {
			for p, o := range listed[t] {
				if o.Err != nil && p < 0 {
					return nil, fmt.Errorf("topic %s: %w", t, o.Err)
				}
				if o.Err != nil && b.wanted(p) {
					return nil, fmt.Errorf("topic %s partition %d: %w", t, p, o.Err)
				}
			}
		}
	}
	return b, b.checkPartitions()
}

func (b *bounds) wanted(p int32) bool {
	return len(b.partitions) == 0 || slices.Contains(b.partitions, p)
}

func (b *bounds) checkPartitions() error {
	for _, t := range b.topics {
		if len(b.ends[t]) == 0 {
			return fmt.Errorf("topic %s: %w", t, kerr.UnknownTopicOrPartition)
		}
		for _, p := range b.partitions {
			if _, ok := b.ends[t][p]; !ok {
				return usage(fmt.Sprintf("'mainstem topic describe %s' shows what there is.", t), "topic %s has no partition %d", t, p)
			}
		}
	}
	return nil
}

// resolve turns a place into offsets; clamp keeps them inside the partition.
func (b *bounds) resolve(ctx context.Context, pl place, clamp bool) (map[string]map[int32]int64, error) {
	var times kadm.ListedOffsets
	if pl.from == atTime {
		var err error
		if times, err = b.adm.ListOffsetsAfterMilli(ctx, pl.n, b.topics...); err != nil {
			return nil, fmt.Errorf("look up time: %w", err)
		}
	}
	out := make(map[string]map[int32]int64)
	for _, t := range b.topics {
		out[t] = make(map[int32]int64)
		for p, end := range b.ends[t] {
			if !b.wanted(p) {
				continue
			}
			start := b.starts[t][p].Offset
			at, err := pl.offset(start, end.Offset, times[t][p])
			if err == nil && !clamp && (at < start || at > end.Offset) {
				err = usage("Choose one of them, or beginning.", "topic %s partition %d holds offsets %d to %d, not %d", t, p, start, end.Offset, at)
			}
			if err != nil {
				return nil, err
			}
			out[t][p] = min(max(at, start), end.Offset)
		}
	}
	return out, nil
}

func (pl place) offset(start, end int64, after kadm.ListedOffset) (int64, error) {
	switch pl.from {
	case fromStart:
		return start, nil
	case fromEnd:
		return max(end-pl.n, start), nil
	case atTime:
		if after.Err != nil {
			return 0, fmt.Errorf("topic %s partition %d: %w", after.Topic, after.Partition, after.Err)
		}
		if after.Offset < 0 {
			return end, nil // Nothing is that young.
		}
		return after.Offset, nil
	default:
		return pl.n, nil
	}
}

// spans are the parts to read, in order.
func (b *bounds) spans(ctx context.Context, from, until place) ([]span, error) {
	starts, err := b.resolve(ctx, from, false)
	if err != nil {
		return nil, err
	}
	ends, err := b.resolve(ctx, until, true)
	if err != nil {
		return nil, err
	}
	var out []span
	for _, t := range b.topics {
		for p, at := range starts[t] {
			out = append(out, span{topic: t, partition: p, at: at, end: ends[t][p]})
		}
	}
	slices.SortFunc(out, func(a, c span) int {
		if n := strings.Compare(a.topic, c.topic); n != 0 {
			return n
		}
		return int(a.partition - c.partition)
	})
	return out, nil
}

// assignment is spans as the Kafka client wants them.
func assignment(spans []span) map[string]map[int32]kgo.Offset {
	out := make(map[string]map[int32]kgo.Offset)
	for _, s := range spans {
		if out[s.topic] == nil {
			out[s.topic] = make(map[int32]kgo.Offset)
		}
		out[s.topic][s.partition] = kgo.NewOffset().At(s.at)
	}
	return out
}
