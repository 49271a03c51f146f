package controller

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const (
	attemptTimeout = 5 * time.Second
	listTimeout    = time.Minute
	firstBackoff   = 100 * time.Millisecond
	maxBackoff     = 5 * time.Second
	pingEvery      = 10 * time.Second
	pingTimeout    = 3 * time.Second
)

// connect makes a client of an external etcd. Without a user it does not wait for etcd.
func connect(ctx context.Context, o *Options) (*clientv3.Client, error) {
	t, err := tlsConfig(o)
	if err != nil {
		return nil, err
	}
	return clientv3.New(clientv3.Config{
		// The client must outlive ctx, which bounds the start only.
		Context:   context.WithoutCancel(ctx),
		Endpoints: o.Endpoints, TLS: t, Username: o.User, Password: o.Password,
		DialTimeout: attemptTimeout, DialKeepAliveTime: pingEvery, DialKeepAliveTimeout: pingTimeout,
		Logger: zap.NewNop(), // Its warnings repeat what is returned.
	})
}

// tlsConfig is nil for a plain connection.
func tlsConfig(o *Options) (*tls.Config, error) {
	secure := o.TLS != nil
	for _, e := range o.Endpoints {
		switch {
		case strings.HasPrefix(e, "https://"):
			secure = true
		case strings.HasPrefix(e, "http://") && o.TLS != nil:
			return nil, fmt.Errorf("etcd endpoint %s is plain http, but TLS files are given", e)
		}
	}
	if !secure {
		return nil, nil
	}
	var files TLS
	if o.TLS != nil {
		files = *o.TLS
	}
	info := transport.TLSInfo{
		TrustedCAFile: files.CAFile, CertFile: files.CertFile, KeyFile: files.KeyFile, ServerName: files.ServerName,
		Logger: zap.NewNop(),
	}
	c, err := info.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read etcd TLS files: %w", err)
	}
	return c, nil
}

// persist calls do until it succeeds, fails for good, or ctx ends, and says in the log that it waits. limit bounds one attempt.
func persist(ctx context.Context, o *Options, limit time.Duration, do func(ctx context.Context) error) error {
	wait := firstBackoff
	for {
		attempt, cancel := context.WithTimeout(ctx, limit)
		err := do(attempt)
		cancel()
		if err == nil || isRefused(err) || isFinal(err) {
			return err
		}
		if ctx.Err() == nil {
			o.Logger.Warn("etcd cannot be reached; trying again", zap.Strings("endpoints", o.Endpoints),
				zap.Duration("in", wait), zap.String("cause", cause(err)))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("reach %s: %s: %w", o.where(), cause(err), context.Cause(ctx))
		case <-time.After(wait):
		}
		wait = min(2*wait, maxBackoff)
	}
}

// cause shortens what gRPC says about a connection that it cannot make.
func cause(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer: check that etcd runs, the endpoints, and TLS on both sides"
	}
	return err.Error()
}

// isRefused tells whether the error is our own verdict on what etcd holds.
func isRefused(err error) bool {
	var identity *IdentityError
	return errors.As(err, &identity) || isUnreadable(err)
}
