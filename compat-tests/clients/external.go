package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// External returns the clients in other languages. They are programs in the
// folder external that take and give a JSON record a line; `make compat`
// installs what they need.
func External() []Client {
	every := []string{"none", "gzip", "snappy", "lz4", "zstd"}
	return []Client{
		program{name: "kcat", argv: []string{"/usr/bin/python3", "kcat_client.py"}, codecs: every,
			// It cannot tell an empty key from none.
			able: Abilities{NoEmptyKey: true}},
		program{name: "librdkafka", argv: []string{"/usr/bin/python3", "confluent_client.py"}, codecs: every},
		program{name: "kafka-python", argv: []string{"/usr/bin/python3", "kafkapython_client.py"}, codecs: every},
		// Other codecs of kafkajs are add-ons; its headers are an object.
		program{name: "kafkajs", argv: []string{"node", "kafkajs_client.js"}, codecs: []string{"none", "gzip"},
			able: Abilities{HeadersByName: true}},
		// The console tools are made for lines of text.
		program{name: "java-console", argv: []string{"/usr/bin/python3", "java/console_client.py"}, codecs: every,
			able: Abilities{Text: true}},
	}
}

// program is a client that runs as a process of its own.
type program struct {
	name   string
	argv   []string
	codecs []string
	able   Abilities
}

func (p program) Name() string { return p.name }

func (p program) Codecs() []string { return p.codecs }

func (p program) Abilities() Abilities { return p.able }

func (p program) Write(ctx context.Context, address, topic, codec string, records []Record) error {
	var in bytes.Buffer
	enc := json.NewEncoder(&in)
	for _, r := range records {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	_, err := p.run(ctx, &in, "write", address, topic, codec)
	return err
}

func (p program) Read(ctx context.Context, address, topic string, n int) ([]Record, error) {
	out, err := p.run(ctx, nil, "read", address, topic, fmt.Sprint(n))
	if err != nil {
		return nil, err
	}
	var records []Record
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var r Record
		if err := dec.Decode(&r); err != nil {
			return records, err
		}
		records = append(records, r)
	}
	return records, nil
}

func (p program) run(ctx context.Context, in *bytes.Buffer, args ...string) ([]byte, error) {
	argv := append(append([]string{}, p.argv[1:]...), args...)
	cmd := exec.CommandContext(ctx, p.argv[0], argv...)
	dir, err := filepath.Abs("external")
	if err != nil {
		return nil, err
	}
	cmd.Dir, cmd.Env = dir, os.Environ()
	if in != nil {
		cmd.Stdin = in
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", p.name, args[0], err, stderr.String())
	}
	return stdout.Bytes(), nil
}
