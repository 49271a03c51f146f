package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const consumeText = `Consume prints the records of topics: values only, unless a flag says more.

It reads all partitions, or those named, from the beginning to what is the end
when it starts; --follow waits for more. No consumer group is used and no offset
is committed.

With --format a record is printed by a layout: %t topic, %p partition, %o offset,
%k key, %v value, %d timestamp in ms, %h{%k=%v } headers, lengths as %K %V,
%v{hex} or %v{base64} for bytes, %d{go#RFC3339#} for a date; \n and \t as usual.`

type consume struct {
	*remote
	partitions []int32
	offset     string
	until      string
	count      int64
	follow     bool
	format     string
	keys       bool
	headers    bool
	offsets    bool
	isolation  string
}

func newConsume(c *console) *cobra.Command {
	o := &consume{}
	cmd := &cobra.Command{
		Use:   "consume TOPIC...",
		Short: "Print the records of topics",
		Long:  consumeText,
		Example: `  mainstem consume greetings
  mainstem consume greetings --follow --offset end --keys
  mainstem consume greetings --partition 0 --offset -10 --json
  mainstem consume greetings --offset @-1h --format '%p/%o %k=%v\n'`,
		Args: needArgs("the topic's name", 1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.explain(o.run(cmd.Context(), args))
		},
	}
	o.remote = addRemote(cmd, c)
	f := cmd.Flags()
	f.Lookup("json").Usage = "print each record as a line of JSON, as 'produce --json' reads it"
	f.Int32SliceVarP(&o.partitions, "partition", "p", nil, "partitions to read (default all)")
	f.StringVarP(&o.offset, "offset", "o", "beginning", placeHelp)
	f.StringVar(&o.until, "until", "end", "where to stop, as --offset")
	f.Int64VarP(&o.count, "count", "n", 0, "stop after so many records")
	f.BoolVarP(&o.follow, "follow", "f", false, "wait for more records at the end")
	f.StringVarP(&o.format, "format", "F", "", `layout of a record, such as '%k=%v\n'`)
	f.BoolVarP(&o.keys, "keys", "k", false, "print the key and a tab before the value")
	f.BoolVar(&o.headers, "headers", false, "print headers before the value")
	f.BoolVar(&o.offsets, "offsets", false, "print topic, partition, offset and time before the value")
	f.StringVar(&o.isolation, "isolation", "read_committed", "read_committed or read_uncommitted")
	cmd.MarkFlagsMutuallyExclusive("json", "format", "keys")
	cmd.MarkFlagsMutuallyExclusive("json", "format", "headers")
	cmd.MarkFlagsMutuallyExclusive("json", "format", "offsets")
	cmd.MarkFlagsMutuallyExclusive("follow", "until")
	cmd.ValidArgsFunction = completeTopics(o.remote)
	return cmd
}

func (o *consume) run(ctx context.Context, topics []string) error {
	now := time.Now()
	from, err := parsePlace("offset", o.offset, now)
	if err != nil {
		return err
	}
	until, err := parsePlace("until", o.until, now)
	if err != nil {
		return err
	}
	level, ok := map[string]kgo.IsolationLevel{
		"read_committed": kgo.ReadCommitted(), "read_uncommitted": kgo.ReadUncommitted(),
	}[o.isolation]
	if !ok {
		return usage("Use read_committed or read_uncommitted.", "--isolation %q is unknown", o.isolation)
	}
	write, err := o.writer()
	if err != nil {
		return err
	}
	// Ctrl-C ends the reading, not the writing of what was read.
	ctx, release := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer release()
	spans, err := o.plan(ctx, topics, from, until)
	if err != nil {
		return err
	}
	cl, err := o.client(
		kgo.ConsumePartitions(assignment(spans)),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchIsolationLevel(level),
		kgo.FetchMaxWait(500*time.Millisecond),
		kgo.KeepControlRecords(), // They move us on at the end of a partition.
	)
	if err != nil {
		return err
	}
	defer cl.Close()
	out := bufio.NewWriterSize(o.c.out, 64<<10)
	r := &reading{consume: o, client: cl, out: out, write: write, left: make(map[partition]span)}
	for _, s := range spans {
		if s.at < s.end || o.follow {
			r.left[partition{s.topic, s.partition}] = s
		}
	}
	err = r.all(ctx)
	if flushErr := out.Flush(); flushErr != nil && err == nil {
		err = fmt.Errorf("write output: %w", flushErr)
	}
	return err
}

// plan asks where the partitions begin and end.
func (o *consume) plan(ctx context.Context, topics []string, from, until place) ([]span, error) {
	var spans []span
	err := o.admin(ctx, func(ctx context.Context, adm *kadm.Client) error {
		b, err := askBounds(ctx, adm, topics, o.partitions, o.isolation == "read_committed")
		if err != nil {
			return err
		}
		spans, err = b.spans(ctx, from, until)
		return err
	})
	return spans, err
}

type partition struct {
	topic  string
	number int32
}

// reading is one run of consume.
type reading struct {
	*consume
	client  *kgo.Client
	out     *bufio.Writer
	write   func(*bufio.Writer, *kgo.Record) error
	left    map[partition]span // What is still to be read.
	printed int64
}

// errEnough ends a reading that has what it wants.
var errEnough = errors.New("enough")

// idleLimit is how long nothing may come from partitions that should have more.
// Then what is missing was removed meanwhile, or its broker is gone.
const idleLimit = 5 * time.Second

func (r *reading) all(ctx context.Context) error {
	last := time.Now()
	for len(r.left) > 0 {
		poll, cancel := context.WithTimeout(ctx, time.Second)
		fetches := r.client.PollFetches(poll)
		cancel()
		if ctx.Err() != nil {
			return nil // Ctrl-C.
		}
		if err := r.failed(fetches); err != nil {
			return err
		}
		if fetches.NumRecords() > 0 {
			last = time.Now()
		}
		switch err := r.take(fetches); {
		case errors.Is(err, errEnough):
			return nil
		case err != nil:
			return err
		}
		if r.out.Buffered() > 0 {
			if err := r.out.Flush(); err != nil {
				return fmt.Errorf("write output: %w", err)
			}
		}
		if !r.follow && time.Since(last) > idleLimit {
			if err := r.recheck(ctx); err != nil {
				return err
			}
			last = time.Now()
		}
	}
	return nil
}

func (r *reading) failed(fetches kgo.Fetches) error {
	var found error
	fetches.EachError(func(topic string, p int32, err error) {
		switch {
		case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
		case topic == "":
			found = errors.Join(found, err)
		default:
			found = errors.Join(found, fmt.Errorf("topic %s partition %d: %w", topic, p, err))
		}
	})
	return found
}

// take prints records and notes how far each partition is.
func (r *reading) take(fetches kgo.Fetches) error {
	for it := fetches.RecordIter(); !it.Done(); {
		rec := it.Next()
		key := partition{rec.Topic, rec.Partition}
		s, ok := r.left[key]
		if !ok || rec.Offset < s.at {
			continue
		}
		if !r.follow && rec.Offset >= s.end {
			delete(r.left, key)
			continue
		}
		if !rec.Attrs.IsControl() {
			if err := r.write(r.out, rec); err != nil {
				return err
			}
			if r.printed++; r.printed == r.count {
				return errEnough
			}
		}
		s.at = rec.Offset + 1
		r.left[key] = s
		if !r.follow && s.at >= s.end {
			delete(r.left, key)
		}
	}
	return nil
}

// recheck makes sure that the broker is well when nothing came for long. If it
// is, the rest of the partitions is not there: deleted meanwhile, or compacted away.
func (r *reading) recheck(ctx context.Context) error {
	var names []string
	for key := range r.left {
		if !slices.Contains(names, key.topic) {
			names = append(names, key.topic)
		}
	}
	if _, err := r.plan(ctx, names, place{from: fromStart}, place{from: fromEnd}); err != nil {
		return err
	}
	for key, s := range r.left {
		if err := printf(r.c.err, "topic %s partition %d: nothing is left from offset %d to %d\n", key.topic, key.number, s.at, s.end); err != nil {
			return err
		}
		delete(r.left, key)
	}
	return nil
}
