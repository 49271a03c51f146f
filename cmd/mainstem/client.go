package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	defaultBootstrap = "127.0.0.1:9092"
	bootstrapEnv     = "MAINSTEM_BOOTSTRAP"
	dialTimeout      = 5 * time.Second
)

// remote are the flags of all commands that talk to a broker.
type remote struct {
	c         *console
	bootstrap []string
	timeout   time.Duration
	json      bool
}

func addRemote(cmd *cobra.Command, c *console) *remote {
	r := &remote{c: c}
	seeds := []string{defaultBootstrap}
	if env := c.getenv(bootstrapEnv); env != "" {
		seeds = strings.Split(env, ",")
	}
	f := cmd.Flags()
	f.StringSliceVarP(&r.bootstrap, "bootstrap", "b", seeds, "brokers to ask first, host:port,… (env "+bootstrapEnv+")")
	f.DurationVar(&r.timeout, "timeout", 15*time.Second, "how long to wait for the broker's answer")
	f.BoolVar(&r.json, "json", false, "print JSON")
	return r
}

// client connects; the caller closes.
func (r *remote) client(opts ...kgo.Opt) (*kgo.Client, error) {
	seeds := make([]string, 0, len(r.bootstrap))
	for _, s := range r.bootstrap {
		if s = strings.TrimSpace(s); s != "" {
			seeds = append(seeds, s)
		}
	}
	opts = append([]kgo.Opt{
		kgo.SeedBrokers(seeds...),
		kgo.ClientID("mainstem-cli"),
		kgo.SoftwareNameAndVersion("mainstem-cli", softwareVersion()),
		kgo.DialTimeout(dialTimeout),
		kgo.RetryTimeout(r.timeout),
		kgo.RequestRetries(5),
	}, opts...)
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, usage("See --help.", "%w", err)
	}
	return cl, nil
}

// softwareVersion is the version in the characters that ApiVersions allows.
func softwareVersion() string {
	v := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' {
			return r
		}
		return '-'
	}, versionText())
	return strings.Trim(v, "-.")
}

// admin runs fn with an admin client and the timeout.
func (r *remote) admin(ctx context.Context, fn func(context.Context, *kadm.Client) error) error {
	cl, err := r.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	adm := kadm.NewClient(cl)
	adm.SetTimeoutMillis(int32(min(r.timeout, 5*time.Minute).Milliseconds()))
	return r.explain(fn(ctx, adm))
}

// explain gives errors of a client their exit code and remedy.
func (r *remote) explain(err error) error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		all := many.Unwrap()
		explained := make([]error, len(all))
		for i := range all {
			explained[i] = r.explain(all[i])
		}
		return errors.Join(explained...)
	}
	var done *failure
	var reported *reportedError
	if err == nil || errors.As(err, &done) || errors.As(err, &reported) {
		return err
	}
	at := strings.Join(r.bootstrap, ",")
	var answered *kerr.Error
	if errors.As(err, &answered) {
		return fail(exitRefused, remedyFor(answered), err)
	}
	var auth *kadm.AuthError
	if errors.As(err, &auth) {
		return fail(exitRefused, "Ask for the right to do this.", err)
	}
	var eof *kgo.ErrFirstReadEOF
	if errors.As(err, &eof) {
		return fail(exitUnreachable, "Is it a broker with a plain listener there? Give its address with --bootstrap.",
			fmt.Errorf("%s closes the connection", at))
	}
	var dial *net.OpError
	var name *net.DNSError
	if errors.As(err, &dial) || errors.As(err, &name) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, kgo.ErrRecordTimeout) {
		return fail(exitUnreachable, "Start one by typing 'mainstem', or name another with --bootstrap.",
			fmt.Errorf("no broker answers at %s: %w", at, rootCause(err)))
	}
	return err
}

// rootCause unwraps to what the network said.
func rootCause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("no answer in time")
	}
	return err
}

// remedyFor says what to do about a broker's answer.
func remedyFor(e *kerr.Error) string {
	switch e.Code {
	case kerr.UnknownTopicOrPartition.Code:
		return "'mainstem topic list' shows what there is; 'mainstem topic create' makes it."
	case kerr.TopicAlreadyExists.Code:
		return "Use another name, or --if-not-exists."
	case kerr.InvalidTopicException.Code:
		return "A name has 1 to 249 of the characters a-z A-Z 0-9 . _ - and is not . or .. itself."
	case kerr.GroupIDNotFound.Code, kerr.InvalidGroupID.Code:
		return "'mainstem group list' shows what there is."
	case kerr.TransactionalIDNotFound.Code:
		return "'mainstem txn list' shows what there is."
	case kerr.NonEmptyGroup.Code, kerr.UnknownMemberID.Code, kerr.GroupSubscribedToTopic.Code:
		return "Stop the group's members first; 'mainstem group describe' shows them."
	case kerr.InvalidReplicationFactor.Code:
		return "'mainstem cluster' shows how many brokers there are."
	case kerr.NotEnoughReplicas.Code, kerr.NotEnoughReplicasAfterAppend.Code:
		return "Start the missing brokers, or lower min.insync.replicas of the topic."
	case kerr.UnsupportedVersion.Code:
		return "The broker does not serve this request: it is of another version."
	case kerr.MessageTooLarge.Code:
		return "Send smaller records, or raise max.message.bytes of the topic."
	case kerr.KafkaStorageError.Code:
		return "The broker's log says more; 'mainstem log check' looks into its data directory."
	case kerr.InvalidRegularExpression.Code:
		return "Write it as RE2 does."
	case kerr.InvalidConfig.Code, kerr.InvalidRequest.Code, kerr.InvalidPartitions.Code:
		return "Correct the value and try again."
	}
	if e.Retriable {
		return "Try again in a moment."
	}
	return "The broker's log may say more."
}

// answerError joins a Kafka error with the broker's own words for it.
func answerError(subject string, err error, message string) error {
	if err == nil {
		return nil
	}
	if message = strings.TrimSpace(message); message != "" {
		var k *kerr.Error
		if errors.As(err, &k) && !strings.Contains(message, k.Message) {
			return fmt.Errorf("%s: %s: %w", subject, strings.TrimSuffix(message, "."), &namedError{k})
		}
		return fmt.Errorf("%s: %s: %w", subject, strings.TrimSuffix(message, "."), err)
	}
	return fmt.Errorf("%s: %w", subject, err)
}

// namedError shows only the name of a Kafka error, not its stock description.
type namedError struct{ err *kerr.Error }

func (e *namedError) Error() string { return e.err.Message }
func (e *namedError) Unwrap() error { return e.err }
