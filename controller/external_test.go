package controller

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// pki is a certificate authority with one server and one client.
type pki struct{ ca, serverCert, serverKey, clientCert, clientKey string }

func makePKI(t *testing.T) pki {
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	var parent *x509.Certificate
	var parentKey *ecdsa.PrivateKey
	issue := func(name string, template x509.Certificate) (cert, key string) {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		template.SerialNumber, template.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		by, byKey := parent, parentKey
		if by == nil {
			by, byKey = &template, k
		}
		der, err := x509.CreateCertificate(rand.Reader, &template, by, &k.PublicKey, byKey)
		require.NoError(t, err)
		if parent == nil {
			parent, err = x509.ParseCertificate(der)
			require.NoError(t, err)
			parentKey = k
		}
		raw, err := x509.MarshalPKCS8PrivateKey(k)
		require.NoError(t, err)
		return write(name+".crt", "CERTIFICATE", der), write(name+".key", "PRIVATE KEY", raw)
	}
	var p pki
	p.ca, _ = issue("ca", x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	p.serverCert, p.serverKey = issue("etcd", x509.Certificate{
		DNSNames: []string{"etcd.example"}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	p.clientCert, p.clientKey = issue("client", x509.Certificate{
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return p
}

// secureEtcd is an etcd of its own that wants client certificates, users and passwords.
func secureEtcd(t *testing.T, p pki) (endpoint string) {
	cfg := embed.NewConfig()
	cfg.Dir, cfg.LogLevel, cfg.LogOutputs = t.TempDir(), "error", []string{os.DevNull}
	cfg.TickMs, cfg.ElectionMs, cfg.UnsafeNoFsync, cfg.BcryptCost = 10, 50, true, 4
	client, peer := url.URL{Scheme: "https", Host: "127.0.0.1:0"}, url.URL{Scheme: "unix", Path: filepath.Join(t.TempDir(), "p")}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.ClientTLSInfo = transport.TLSInfo{CertFile: p.serverCert, KeyFile: p.serverKey, TrustedCAFile: p.ca, ClientCertAuth: true}
	e, err := embed.StartEtcd(cfg)
	require.NoError(t, err)
	t.Cleanup(e.Close)
	<-e.Server.ReadyNotify()
	return "https://" + e.Clients[0].Addr().String()
}

// addUsers makes root and one user who may use one prefix only.
func addUsers(t *testing.T, o Options) {
	cfg, err := tlsConfig(&o)
	require.NoError(t, err)
	c, err := clientv3.New(clientv3.Config{Endpoints: o.Endpoints, TLS: cfg, Logger: zap.NewNop()})
	require.NoError(t, err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for _, do := range []func() error{
		func() error { _, err := c.UserAdd(ctx, "root", "r"); return err },
		func() error { _, err := c.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := c.UserAdd(ctx, "mainstem", "secret"); return err },
		func() error { _, err := c.RoleAdd(ctx, "m"); return err },
		func() error {
			_, err := c.RoleGrantPermission(ctx, "m", o.Prefix, clientv3.GetPrefixRangeEnd(o.Prefix), clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := c.UserGrantRole(ctx, "mainstem", "m"); return err },
		func() error { _, err := c.AuthEnable(ctx); return err },
	} {
		require.NoError(t, do())
	}
}

func TestSecureEtcdIsUsedWithCertificatesUserAndPrefix(t *testing.T) {
	t.Parallel()
	p := makePKI(t)
	good := Options{
		Dir: t.TempDir(), NodeID: 1, Endpoints: []string{secureEtcd(t, p)}, Prefix: "/kafka/eu",
		TLS: &TLS{CAFile: p.ca, CertFile: p.clientCert, KeyFile: p.clientKey, ServerName: "etcd.example"},
	}
	require.NoError(t, good.fill())
	addUsers(t, good)
	good.User, good.Password = "mainstem", "secret"
	c := register(t, good)
	create(t, c, 9999, "big")
	_, _, err := c.AllocateProducerIDs(t.Context())
	require.NoError(t, err)

	for name, spoil := range map[string]func(o *Options){
		"password": func(o *Options) { o.Password = "wrong" },
		"prefix":   func(o *Options) { o.Prefix = "/elsewhere/" },
		"file":     func(o *Options) { o.TLS = &TLS{CAFile: "/does/not/exist"} },
		"half":     func(o *Options) { o.TLS = &TLS{CAFile: p.ca, CertFile: p.clientCert} },
		"plain":    func(o *Options) { o.Endpoints = []string{"http://127.0.0.1:1"} },
	} {
		bad := good
		spoil(&bad)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		_, err := Open(ctx, bad)
		cancel()
		require.Error(t, err, name)
		t.Log(name, err)
		require.Less(t, time.Since(began), 4*time.Second, "%s: it is not worth a second try", name)
	}
	for name, spoil := range map[string]func(o *Options){
		"server name": func(o *Options) {
			o.TLS = &TLS{CAFile: p.ca, CertFile: p.clientCert, KeyFile: p.clientKey, ServerName: "other"}
		},
		"no client": func(o *Options) { o.TLS = &TLS{CAFile: p.ca, ServerName: "etcd.example"} },
	} {
		bad := good
		bad.User, bad.Password = "", ""
		spoil(&bad)
		log, logs := logged()
		bad.Logger = log
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := Open(ctx, bad)
		cancel()
		require.ErrorContains(t, err, bad.Endpoints[0], name)
		require.ErrorContains(t, err, "certificate", name)
		t.Log(name, err, logs.Len())
	}
}

func TestUnreachableEtcdIsNamedAndTriedUntilItComes(t *testing.T) {
	t.Parallel()
	s, err := etcd()
	require.NoError(t, err)
	o := external(t)
	path := filepath.Join(t.TempDir(), "later")
	o.Endpoints = []string{"unix://" + path}
	log, logs := logged()
	o.Logger = log

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = Open(ctx, o)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, path)

	opened := make(chan error, 1)
	go func() {
		c, err := Open(t.Context(), o)
		if err == nil {
			closeNow(c)
		}
		opened <- err
	}()
	eventually(t, func() bool { return hasLine(logs, "etcd cannot be reached") }, "says so")
	require.Equal(t, []any{o.Endpoints[0]}, logs.FilterMessageSnippet("cannot be reached").All()[0].ContextMap()["endpoints"])
	p := &proxy{target: s.endpoint[len("unix://"):], conns: map[net.Conn]bool{}}
	p.listen(t, path)
	require.NoError(t, <-opened)
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{
		{}, {Dir: "d", NodeID: -1}, {Dir: "d", LeaseTTL: time.Second}, {Dir: "d", LeaseTTL: 2500 * time.Millisecond}, {Dir: "d", Password: "p"},
	} {
		_, err := Open(t.Context(), o)
		require.Error(t, err)
	}
}
