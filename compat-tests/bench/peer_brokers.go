package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/mainstem/mainstem/compat-tests/harness"
)

// broker is a broker that is compared: a process and where it serves.
type broker interface {
	// start runs it on a data directory and returns when it has acknowledged a
	// first record, and after how long.
	start(ctx context.Context) (time.Duration, error)
	address() string
	pid() int
	kill()
	stop() error
}

// peerNames are the brokers that can be compared; the first is what ratios are to.
func peerNames() []string { return []string{"kafka", "kafka-synced", "mainstem", "mainstem-async"} }

// newBroker returns a broker by its name, with an empty data directory.
func newBroker(name, dir string) (broker, error) {
	switch name {
	case "mainstem", "mainstem-async":
		n, err := newNode(dir)
		if err != nil {
			return nil, err
		}
		if name == "mainstem-async" {
			n.Settings = append(n.Settings, "mainstem.durability=async")
		}
		return &mainstemBroker{n}, nil
	case "kafka", "kafka-synced":
		return newKafka(dir, name == "kafka-synced")
	}
	return nil, fmt.Errorf("there is no broker %q; they are %v", name, peerNames())
}

type mainstemBroker struct{ node *harness.Node }

func (m *mainstemBroker) start(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	if err := m.node.Start(); err != nil {
		return 0, err
	}
	return firstAck(ctx, m.node.Address, began, m.node.Exited())
}

func (m *mainstemBroker) address() string { return m.node.Address }
func (m *mainstemBroker) pid() int        { return m.node.Pid() }
func (m *mainstemBroker) kill()           { m.node.Kill() }
func (m *mainstemBroker) stop() error     { return m.node.Stop() }

// kafka is Apache Kafka as its own scripts start it: defaults, heap of 1 GiB, G1.
type kafka struct {
	dir, bootstrap string
	jars           string
	formatted      bool
	synced         bool
	cmd            *exec.Cmd
	done           chan struct{}
}

func newKafka(dir string, synced bool) (*kafka, error) {
	jars := os.Getenv("KAFKA_TOOLS")
	if jars == "" {
		return nil, errors.New("KAFKA_TOOLS names no folder with Kafka's jars; run compat-tests/bench/peer")
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	return &kafka{dir: dir, bootstrap: address, jars: jars, synced: synced}, nil
}

func (k *kafka) address() string { return k.bootstrap }
func (k *kafka) pid() int        { return k.cmd.Process.Pid }

func (k *kafka) start(ctx context.Context) (time.Duration, error) {
	config := filepath.Join(k.dir, "server.properties")
	if !k.formatted {
		if err := k.format(ctx, config); err != nil {
			return 0, err
		}
		k.formatted = true
	}
	began := time.Now()
	k.cmd = k.java("-Xms1g", "-Xmx1g", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
		"-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true", "-cp", filepath.Join(k.jars, "*"), "kafka.Kafka", config)
	out, err := os.Create(filepath.Join(k.dir, "kafka.log"))
	if err != nil {
		return 0, err
	}
	defer out.Close()
	k.cmd.Stdout, k.cmd.Stderr = out, out
	if err := k.cmd.Start(); err != nil {
		return 0, err
	}
	k.done = make(chan struct{})
	go func() {
		_ = k.cmd.Wait() // How it ends is of no interest.
		close(k.done)
	}()
	took, err := firstAck(ctx, k.bootstrap, began, k.done)
	if err != nil {
		k.kill()
		tail, _ := os.ReadFile(out.Name()) // What can be had of the reason.
		return 0, fmt.Errorf("%w\n%s", err, tail[max(0, len(tail)-2000):])
	}
	return took, nil
}

func (k *kafka) java(args ...string) *exec.Cmd {
	cmd := exec.Command("java", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for us.
	return cmd
}

// format writes the configuration and an empty data directory.
func (k *kafka) format(ctx context.Context, config string) error {
	controller, err := freeAddress()
	if err != nil {
		return err
	}
	text := "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n" +
		"controller.quorum.voters=1@" + controller + "\n" +
		"listeners=PLAINTEXT://" + k.bootstrap + ",CONTROLLER://" + controller + "\n" +
		"advertised.listeners=PLAINTEXT://" + k.bootstrap + "\n" +
		"listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n" +
		"offsets.topic.replication.factor=1\ntransaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n" +
		"share.coordinator.state.topic.replication.factor=1\nshare.coordinator.state.topic.min.isr=1\n" +
		"log.dirs=" + filepath.Join(k.dir, "data") + "\n"
	if k.synced {
		text += "log.flush.interval.messages=1\n"
	}
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return err
	}
	var id [16]byte
	_, _ = rand.Read(id[:]) // It never fails.
	cmd := exec.CommandContext(ctx, "java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(k.jars, "*"), "kafka.tools.StorageTool",
		"format", "--cluster-id", base64.RawURLEncoding.EncodeToString(id[:]), "--config", config)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("format Kafka's data directory: %w\n%s", err, out)
	}
	return nil
}

func (k *kafka) kill() {
	if k.done != nil {
		_ = k.cmd.Process.Kill()
		<-k.done
	}
}

func (k *kafka) stop() error {
	if err := k.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-k.done:
		return nil
	case <-time.After(time.Minute):
		k.kill()
		return errors.New("kafka did not stop within a minute")
	}
}

// firstAck waits until a broker acknowledges a record.
func firstAck(ctx context.Context, address string, began time.Time, exited <-chan struct{}) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	for {
		select {
		case <-exited:
			return 0, errors.New("the broker ended before it served")
		case <-ctx.Done():
			return 0, errors.New("the broker acknowledged nothing within 90 s")
		case <-time.After(5 * time.Millisecond):
		}
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			continue
		}
		conn.Close()
		if err := ackOne(ctx, address); err == nil {
			return time.Since(began), nil
		}
	}
}

func ackOne(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.AllowAutoTopicCreation(), kgo.ProducerLinger(0),
		kgo.MetadataMinAge(20*time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }))
	if err != nil {
		return err
	}
	defer client.Close()
	return client.ProduceSync(ctx, &kgo.Record{Topic: "first", Value: []byte(strconv.Itoa(1))}).FirstErr()
}
