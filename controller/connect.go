package controller

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const (
	firstAttempt   = time.Second
	attemptTimeout = 5 * time.Second
	listTimeout    = time.Minute
	firstBackoff   = 100 * time.Millisecond
	maxBackoff     = 5 * time.Second
	pingEvery      = 10 * time.Second
	pingTimeout    = 3 * time.Second
	probeTimeout   = time.Second
	probeWait      = 200 * time.Millisecond
)

// connect makes a client of an external etcd. Without a user it does not wait for etcd.
func connect(ctx context.Context, o *Options) (*clientv3.Client, error) {
	t, err := tlsConfig(o)
	if err != nil {
		return nil, &verdict{err}
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
	if files.ServerName != "" {
		expectName(c, files.ServerName)
	}
	return c, nil
}

// expectName checks the server's certificate for a name that is not the endpoint's host. The client puts the host into
// ServerName for each endpoint, so the check is made here in place of the usual one.
func expectName(c *tls.Config, name string) {
	roots := c.RootCAs
	c.InsecureSkipVerify = true // VerifyConnection does it.
	c.VerifyConnection = func(s tls.ConnectionState) error {
		others := x509.NewCertPool()
		for _, cert := range s.PeerCertificates[1:] {
			others.AddCert(cert)
		}
		_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{DNSName: name, Roots: roots, Intermediates: others})
		return err
	}
}

// persist calls do until it succeeds, fails for good, or ctx ends, and says in the log that it waits. The first attempt
// takes up to limit, later ones more, up to maxLimit.
func persist(ctx context.Context, o *Options, limit, maxLimit time.Duration, do func(ctx context.Context) error) error {
	wait := firstBackoff
	for ; ; limit = min(2*limit, maxLimit) {
		attempt, cancel := context.WithTimeout(ctx, limit)
		err := do(attempt)
		cancel()
		var v *verdict
		if errors.As(err, &v) {
			return v.error
		}
		if err == nil || isRefused(err) {
			return err
		}
		if isFinal(err) {
			return fmt.Errorf("ask %s (user %q, prefix %s): %w", o.where(), o.User, o.Prefix, err)
		}
		why := diagnose(ctx, o, err)
		if ctx.Err() == nil {
			o.Logger.Warn("etcd cannot be reached; trying again", zap.Strings("endpoints", o.Endpoints),
				zap.Duration("in", wait), zap.String("cause", why))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("reach %s: %s: %w", o.where(), why, context.Cause(ctx))
		case <-time.After(wait):
		}
		wait = min(2*wait, maxBackoff)
	}
}

// cause shortens what a request that was not answered in time says.
func cause(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	return err.Error()
}

// diagnose finds out why a request was not answered: the client does not tell why it cannot connect.
func diagnose(ctx context.Context, o *Options, err error) string {
	if o.isEmbedded() || !errors.Is(err, context.DeadlineExceeded) {
		return cause(err)
	}
	c, err := tlsConfig(o)
	if err != nil {
		return err.Error()
	}
	for _, e := range o.Endpoints {
		if err := probe(context.WithoutCancel(ctx), e, c); err != nil {
			return err.Error()
		}
	}
	return "it takes connections but does not answer; check that its members have a leader, and whether it wants TLS"
}

// probe connects to one endpoint.
func probe(ctx context.Context, endpoint string, c *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	network, address := "tcp", endpoint
	if _, rest, ok := strings.Cut(endpoint, "://"); ok {
		address = rest
	}
	if strings.HasPrefix(endpoint, "unix") {
		network = "unix"
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if c == nil {
		return nil
	}
	c = c.Clone()
	c.ServerName, _, _ = net.SplitHostPort(address)
	t := tls.Client(conn, c)
	if err := t.HandshakeContext(ctx); err != nil {
		return err
	}
	// A server that wants another certificate says so after the handshake.
	if err := t.SetReadDeadline(time.Now().Add(probeWait)); err != nil {
		return err
	}
	_, err = t.Read(make([]byte, 1))
	var timeout net.Error
	if err == nil || errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// isRefused tells whether the error is our own verdict on what etcd holds.
func isRefused(err error) bool {
	var identity *IdentityError
	return errors.As(err, &identity) || isUnreadable(err)
}
