package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/mainstem/mainstem/broker"
	"github.com/mainstem/mainstem/broker/config"
)

const serveText = `Serve runs a broker in the foreground until SIGTERM or Ctrl-C.

The configuration is Kafka's: a server.properties with Kafka's names (and
mainstem.* and etcd.* for what Kafka does not have), KAFKA_… environment variables
(KAFKA_NUM_PARTITIONS is num.partitions; __ is _, ___ is -), and --override.
Later ones win: default, file, environment, override.

On SIGTERM the broker says that it is not ready, takes no more connections, answers
what it has appended, lets waiting fetches end, and stops, within 10 seconds; a
second signal stops it at once.`

// serveFlags are those of serve, and of mainstem without a command.
type serveFlags struct {
	c         *console
	overrides []string
	lenient   bool
	level     string
	format    string
}

func newServe(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve [server.properties]",
		Short: "Run a broker",
		Long:  serveText + "\n\n" + exitCodes,
		Example: `  mainstem serve
  mainstem serve server.properties --override log.dirs=/var/lib/mainstem
  mainstem serve --override listeners=PLAINTEXT://127.0.0.1:9094 --override node.id=2 --override log.dirs=second`,
		Args: needArgs("", 0, 1),
	}
	o := addServeFlags(cmd, c)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return o.run(cmd.Context(), "")
		}
		return o.run(cmd.Context(), args[0])
	}
	return cmd
}

// asServe makes the root command a broker with the defaults.
func asServe(root *cobra.Command, c *console) {
	o := addServeFlags(root, c)
	root.RunE = func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), "") }
}

func addServeFlags(cmd *cobra.Command, c *console) *serveFlags {
	o := &serveFlags{c: c}
	f := cmd.Flags()
	f.StringArrayVarP(&o.overrides, "override", "o", nil, "config name=value over file and environment (may be repeated)")
	f.BoolVar(&o.lenient, "lenient", false, "ignore unknown configs, as Kafka does")
	f.StringVar(&o.level, "log-level", "info", "debug, info, warn or error; PUT /loglevel changes it at run time")
	f.StringVar(&o.format, "log-format", "auto", "console, json, or auto: console on a terminal")
	return o
}

// load reads the configuration. A file that is named must be there.
func (o *serveFlags) load(file string) (*config.Static, error) {
	var sources []config.Source
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fail(exitConfig, "Give the path of a server.properties.", fmt.Errorf("read configuration: %w", err))
		}
		source, err := config.ParseFile(filepath.Base(file), text)
		if err != nil {
			return nil, fail(exitConfig, "A line is name=value.", err)
		}
		sources = append(sources, source)
	}
	overrides, err := config.ParseOverrides(o.overrides)
	if err != nil {
		return nil, usage("See 'mainstem serve --help'.", "%w", err)
	}
	sources = append(sources, config.ParseEnv(o.c.environ), overrides)
	host, err := os.Hostname()
	if err != nil {
		host = "" // Load asks for advertised.listeners then.
	}
	static, err := config.Load(config.Options{Sources: sources, Lenient: o.lenient, Hostname: host})
	if err != nil {
		return nil, configFailures(err)
	}
	return static, nil
}

// configFailures gives each complaint about the configuration its exit code.
func configFailures(err error) error {
	var all []error
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		all = many.Unwrap()
	} else {
		all = []error{err}
	}
	for i, e := range all {
		remedy := "Correct it and start again."
		if unknown := new(config.UnknownKeyError); errors.As(e, &unknown) {
			remedy = "" // The message has it.
		}
		all[i] = fail(exitConfig, remedy, e)
	}
	return errors.Join(all...)
}

func (o *serveFlags) run(ctx context.Context, file string) error {
	level, err := parseLevel(o.level)
	if err != nil {
		return err
	}
	logger, err := newLogger(o.c, o.format, level)
	if err != nil {
		return err
	}
	static, err := o.load(file)
	if err != nil {
		return err
	}
	for _, notice := range static.Notices() {
		logger.Info(notice)
	}
	signals, release := o.c.signals()
	defer release()
	s := &supervisor{
		signals: signals,
		logger:  logger,
		open: func(ctx context.Context) (node, error) {
			return broker.Open(ctx, broker.Options{Config: static, Logger: logger, LogLevel: level, Version: versionText()})
		},
		ready: func(n node) error {
			b := n.(*broker.Broker)
			logger.Info("serving", zap.String("version", versionText()), zap.Strings("listeners", listening(b)),
				zap.String("http", b.HTTPAddr()), zap.String("data", static.LogDir()))
			return o.ready(b, static, file)
		},
		stop: func() error { return notify(o.c, "STOPPING=1") },
	}
	err = s.run(ctx)
	_ = logger.Sync() // Terminals and pipes cannot be synced; there is nobody left to tell.
	return err
}

// listening are the bound addresses, by name.
func listening(b *broker.Broker) []string {
	var out []string
	for name, addr := range b.Addrs() {
		out = append(out, name+"://"+addr.String())
	}
	slices.Sort(out)
	return out
}

// ready tells systemd, and whoever started the broker by hand what to type next.
func (o *serveFlags) ready(b *broker.Broker, static *config.Static, file string) error {
	if err := notify(o.c, "READY=1", "STATUS=Serving requests"); err != nil {
		return err
	}
	if file != "" || o.format == "json" {
		return nil // Nobody reads along.
	}
	return welcome(o.c, greeting{
		version: versionText(),
		address: bootstrapOf(b, static),
		dir:     static.LogDir(),
		http:    reachable(b.HTTPAddr()),
	})
}
