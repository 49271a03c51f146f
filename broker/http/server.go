package http

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	nethttp "net/http"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
)

// DefaultListener is where the server listens unless it is told otherwise.
const DefaultListener = "127.0.0.1:9644"

// Time limits on clients. A scrape of many series takes well under a second.
const (
	readTimeout  = 10 * time.Second
	writeTimeout = 30 * time.Second
	idleTimeout  = 2 * time.Minute
	maxHeader    = 16 << 10
	maxBody      = 4 << 10
)

// Options are given to Listen.
type Options struct {
	// Listener is host:port; port 0 lets the system choose.
	Listener string
	// MayMove takes a free port of the same host when the port is in use. It is
	// meant for the default, which nobody asked for.
	MayMove bool

	// Live and Ready return nil, or why not. Nil functions mean always.
	Live, Ready func() error
	// Gatherer is served as /metrics.
	Gatherer prometheus.Gatherer
	// Clients is served as /clients, in JSON; nil is not served.
	Clients func(context.Context) (any, error)
	// Level is served as /loglevel; zap.AtomicLevel is such a handler.
	Level nethttp.Handler
	// Logger takes what net/http says of misbehaving clients, at debug level.
	Logger *zap.Logger
}

// Server is a listening HTTP server. Serve must be called once.
type Server struct {
	http     *nethttp.Server
	listener net.Listener
	moved    bool
}

// Listen binds the address. An address in use gives an error that is
// syscall.EADDRINUSE.
func Listen(o Options) (*Server, error) {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	complaints, err := zap.NewStdLogAt(o.Logger, zap.DebugLevel)
	if err != nil {
		return nil, fmt.Errorf("log for HTTP: %w", err)
	}
	l, moved, err := listen(o.Listener, o.MayMove)
	if err != nil {
		return nil, fmt.Errorf("listen on %s for HTTP: %w", o.Listener, err)
	}
	return &Server{
		listener: l,
		moved:    moved,
		http: &nethttp.Server{
			Handler:           handler(o),
			ReadHeaderTimeout: readTimeout,
			ReadTimeout:       readTimeout,
			WriteTimeout:      writeTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeader,
			ErrorLog:          complaints,
		},
	}, nil
}

func listen(address string, mayMove bool) (l net.Listener, moved bool, err error) {
	l, err = net.Listen("tcp", address)
	if err == nil || !mayMove || !errors.Is(err, syscall.EADDRINUSE) {
		return l, false, err
	}
	host, _, splitErr := net.SplitHostPort(address)
	if splitErr != nil {
		return nil, false, err
	}
	l, err = net.Listen("tcp", net.JoinHostPort(host, "0"))
	return l, err == nil, err
}

// Addr is the bound address.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Moved tells whether another port than the configured one was taken.
func (s *Server) Moved() bool { return s.moved }

// Serve answers requests until Close; then it returns nil.
func (s *Server) Serve() error {
	if err := s.http.Serve(s.listener); !errors.Is(err, nethttp.ErrServerClosed) {
		return fmt.Errorf("serve HTTP: %w", err)
	}
	return nil
}

// Close lets running requests end until ctx does, then cuts them.
func (s *Server) Close(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err == nil {
		return nil
	}
	return errors.Join(fmt.Errorf("shut down HTTP: %w", err), s.http.Close())
}

func handler(o Options) nethttp.Handler {
	mux := nethttp.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		say(w, nethttp.StatusOK, "Mainstem: /live /ready /metrics /clients /loglevel")
	})
	mux.HandleFunc("GET /live", health(o.Live))
	mux.HandleFunc("GET /ready", health(o.Ready))
	if o.Gatherer != nil {
		mux.Handle("GET /metrics", promhttp.HandlerFor(o.Gatherer, promhttp.HandlerOpts{
			ErrorHandling: promhttp.ContinueOnError,
		}))
	}
	if o.Clients != nil {
		mux.HandleFunc("GET /clients", view(o.Clients))
	}
	if o.Level != nil {
		level := nethttp.MaxBytesHandler(o.Level, maxBody)
		mux.Handle("GET /loglevel", level)
		mux.Handle("PUT /loglevel", level)
	}
	return mux
}

func health(ask func() error) nethttp.HandlerFunc {
	return func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		if ask != nil {
			if err := ask(); err != nil {
				say(w, nethttp.StatusServiceUnavailable, err.Error())
				return
			}
		}
		say(w, nethttp.StatusOK, "ok")
	}
}

// view serves what is asked for as JSON.
func view(ask func(context.Context) (any, error)) nethttp.HandlerFunc {
	return func(w nethttp.ResponseWriter, r *nethttp.Request) {
		what, err := ask(r.Context())
		if err == nil {
			var text []byte
			if text, err = json.MarshalIndent(what, "", "  "); err == nil {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Cache-Control", "no-store")
				_, _ = w.Write(append(text, '\n')) // The client is gone: nobody to tell.
				return
			}
		}
		say(w, nethttp.StatusServiceUnavailable, err.Error())
	}
}

func say(w nethttp.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // The client is gone: nobody to tell.
}
