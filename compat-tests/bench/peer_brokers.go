package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/mainstem/mainstem/compat-tests/harness"
)

// broker is a broker that is compared: a process and where it serves.
type broker interface {
	// start runs it on a data directory and returns when it has acknowledged a
	// first record, and after how long.
	start(ctx context.Context) (time.Duration, error)
	// prepare does what has to be done once before that.
	prepare(ctx context.Context) error
	address() string
	pid() int
	kill()
	// warmth is the CPU time until its code is compiled.
	warmth() time.Duration
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

func (m *mainstemBroker) address() string       { return m.node.Address }
func (m *mainstemBroker) pid() int              { return m.node.Pid() }
func (m *mainstemBroker) kill()                 { m.node.Kill() }
func (m *mainstemBroker) warmth() time.Duration { return 2 * time.Second }

func (m *mainstemBroker) prepare(context.Context) error { return nil }

// kafka is Apache Kafka as its own scripts start it: heap of 1 GiB, G1, defaults.
// Only files of deleted topics go after a second, not after a minute: what is to be
// written of one measurement shall not be in the way of the next.
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

func (k *kafka) address() string       { return k.bootstrap }
func (k *kafka) pid() int              { return k.cmd.Process.Pid }
func (k *kafka) warmth() time.Duration { return 20 * time.Second }

func (k *kafka) config() string { return filepath.Join(k.dir, "server.properties") }

func (k *kafka) prepare(ctx context.Context) error {
	if k.formatted {
		return nil
	}
	k.formatted = true
	return k.format(ctx, k.config())
}

func (k *kafka) start(ctx context.Context) (time.Duration, error) {
	if err := k.prepare(ctx); err != nil {
		return 0, err
	}
	began := time.Now()
	k.cmd = k.java("-Xms1g", "-Xmx1g", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
		"-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true", "-cp", filepath.Join(k.jars, "*"), "kafka.Kafka", k.config())
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
		"log.segment.delete.delay.ms=1000\n" +
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

// isKafka tells the brokers that are Apache Kafka.
func isKafka(name string) bool { return strings.HasPrefix(name, "kafka") }
