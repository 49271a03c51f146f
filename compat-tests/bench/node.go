package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/mainstem/mainstem/compat-tests/harness"
)

// newNode returns a broker on free ports that is not started.
func newNode(dir string) (*harness.Node, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	web, err := freeAddress()
	if err != nil {
		return nil, err
	}
	return &harness.Node{Dir: dir, Address: address, HTTP: web}, nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// startTimed starts the broker and returns how long it took until it was ready.
func startTimed(n *harness.Node) (time.Duration, error) {
	began := time.Now()
	if err := n.Start(); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}

// createTopics makes topics of so many partitions until there are total, and
// returns how long that took.
func createTopics(ctx context.Context, n *harness.Node, total, each int) (time.Duration, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(n.Address), kgo.RetryTimeout(2*time.Minute), kgo.RequestTimeoutOverhead(2*time.Minute))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	admin.SetTimeoutMillis(120_000)
	began := time.Now()
	for made := 0; made < total; made += each {
		topic := fmt.Sprintf("bench-%d", made/each)
		if _, err := admin.CreateTopic(ctx, int32(min(each, total-made)), 1, nil, topic); err != nil {
			return 0, fmt.Errorf("create topic %s: %w", topic, err)
		}
	}
	return time.Since(began), nil
}

// metric reads one value without labels of a broker's metrics.
func metric(n *harness.Node, name string) (float64, error) {
	client := http.Client{Timeout: time.Minute}
	resp, err := client.Get("http://" + n.HTTP + "/metrics")
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, errors.Join(fmt.Errorf("the broker has no metric %s", name), lines.Err())
}

// liveHeap waits for a garbage collection, which an idle process makes every
// two minutes, and returns the bytes in use right after it.
func liveHeap(ctx context.Context, n *harness.Node) (float64, error) {
	const collections, inUse = "go_gc_duration_seconds_count", "go_memstats_heap_alloc_bytes"
	before, err := metric(n, collections)
	if err != nil {
		return 0, err
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for range 180 {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-tick.C:
		}
		now, err := metric(n, collections)
		if err != nil {
			return 0, err
		}
		if now > before {
			return metric(n, inUse)
		}
	}
	return 0, errors.New("the broker collected no garbage in three minutes")
}

// usage is what the files of a folder take.
type usage struct {
	files       int
	bytes, disk int64
	indexes     int64 // bytes of the indexes of segments
}

func diskUsage(dir string) (u usage, err error) {
	err = walkFiles(dir, func(path string, info os.FileInfo) error {
		u.files++
		u.bytes += info.Size()
		u.disk += blocks(info)
		if filepath.Ext(path) == ".index" {
			u.indexes += info.Size()
		}
		return nil
	})
	return u, err
}

func walkFiles(dir string, visit func(string, os.FileInfo) error) error {
	return filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		return visit(path, info)
	})
}
