// Command replay sends the recorded exchanges of Apache Kafka 4.3.1 to a running
// broker, or to two side by side, and prints every difference.
//
//	replay -broker 127.0.0.1:9092                          compare with the recording
//	replay -broker 127.0.0.1:9092 -beside 127.0.0.1:19092  compare with a live Kafka
//
// The broker must be fresh: the recording creates its topics itself.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/mainstem/mainstem/compat-tests/wire"
)

func main() {
	broker := flag.String("broker", "127.0.0.1:9092", "broker under test")
	beside := flag.String("beside", "", "a live Kafka to compare with, instead of the recording")
	all := flag.Bool("all", false, "print accepted differences too")
	settle := flag.Duration("settle", 0, "wait after each change of topics (a live Kafka wants 1s)")
	verbose := flag.Bool("v", false, "print each exchange before it is sent")
	flag.Parse()
	if err := run(*broker, *beside, *all, *verbose, *settle); err != nil {
		fmt.Fprintln(os.Stderr, "replay:", err)
		os.Exit(1)
	}
}

func run(broker, beside string, all, verbose bool, settle time.Duration) error {
	exchanges, err := wire.Recorded()
	if err != nil {
		return err
	}
	list, err := wire.AcceptedDifferences()
	if err != nil {
		return err
	}
	served, err := wire.ServedBy(broker)
	if err != nil {
		return err
	}
	o := wire.Options{Address: broker, Beside: beside, Serves: served, Settle: settle}
	if verbose {
		o.Progress = func(e *wire.Exchange) { fmt.Println(e) }
	}
	sent, found, err := wire.Replay(exchanges, o)
	if err != nil {
		return err
	}
	rest := wire.Unexplained(found, list)
	if all {
		rest = found
	}
	for _, d := range rest {
		fmt.Println(d)
	}
	fmt.Printf("%d exchanges sent, %d of %d not served, %d differences, %d of them unexplained\n",
		sent, len(exchanges)-sent, len(exchanges), len(found), len(wire.Unexplained(found, list)))
	if len(rest) > 0 && !all {
		return fmt.Errorf("%d differences without a reason", len(rest))
	}
	return nil
}
