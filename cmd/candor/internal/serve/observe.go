package serve

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/deploy/console"
	"github.com/candor-grid/candor/deploy/embedded"
)

// observe serves three things: metrics, /healthz (the process answers) and /readyz (the error that `ready` returns). At
// a socket, it also serves pprof. At each request for metrics, it calls `gather`. Without an address there are no
// metrics, and without a socket there is no pprof. The returned function stops everything.
func observe(d embedded.MetricsDoor, socket string, gather func() prometheus.Gatherer, ready func() error, log *zap.Logger) (stop func() error, err error) {
	var stops []func() error
	stop = func() (err error) {
		for _, one := range stops {
			err = errors.Join(err, one())
		}
		return err
	}
	if d.Address != "" {
		at, one, err := observeMetrics(d, gather, ready)
		if err != nil {
			return nil, err
		}
		stops = append(stops, one)
		log.Info("serving metrics", zap.Stringer("address", at))
	}
	if socket != "" {
		one, err := observeProfile(socket)
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		stops = append(stops, one)
		log.Info("serving pprof", zap.String("socket", socket))
	}
	return stop, nil
}

func observeMetrics(d embedded.MetricsDoor, gather func() prometheus.Gatherer, ready func() error) (net.Addr, func() error, error) {
	listener, err := net.Listen("tcp", d.Address)
	if err != nil {
		return nil, nil, fmt.Errorf("metrics: %w; name another address with --metrics", err)
	}
	at := listener.Addr()
	if d.TLS != nil {
		listener = tls.NewListener(listener, d.TLS)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, r *http.Request) {
		if !bears(r, d.Token) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the metrics of this site need its token (Authorization: Bearer TOKEN)", http.StatusUnauthorized)
			return
		}
		promhttp.HandlerFor(gather(), promhttp.HandlerOpts{}).ServeHTTP(w, r)
	})
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { answerHealth(w, nil) })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) { answerHealth(w, ready()) })
	return at, serveHTTP(listener, console.Server(mux, nil)), nil
}

// answerHealth answers that everything is in order, or with the problem. It needs no token.
func answerHealth(w http.ResponseWriter, problem error) {
	if problem != nil {
		http.Error(w, problem.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// bears reports whether a request has the token. If token is "", no token is needed, and bears returns true.
func bears(r *http.Request, token string) bool {
	if token == "" {
		return true
	}
	shown, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	// Comparing hashes takes a time that reveals neither the text nor the length.
	a, b := sha256.Sum256([]byte(shown)), sha256.Sum256([]byte(token))
	return ok && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// profileSocket returns the socket for pprof, or "". Actors that run alone may share a state directory, so the name
// contains the actor.
func profileSocket(c *embedded.Config, actor string) string {
	switch {
	case !c.Profile:
		return ""
	case actor != "":
		return filepath.Join(c.State, "pprof-"+actor+".sock")
	}
	return filepath.Join(c.State, "pprof.sock")
}

// observeProfile serves pprof at a socket that only its owner can use. A port would be unsafe: every task on this
// machine could connect to it, and the site's memory contains the site's keys.
func observeProfile(socket string) (func() error, error) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		return nil, fmt.Errorf("pprof: %w", err)
	}
	_ = os.Remove(socket) // a process that was killed may have left the socket
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("pprof: %w", err)
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("pprof: %w", err), listener.Close())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return serveHTTP(listener, &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}), nil
}

func serveHTTP(listener net.Listener, s *http.Server) (stop func() error) {
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(listener) }()
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err := s.Shutdown(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			err = s.Close() // cut connections that are still open
		}
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			return errors.Join(err, served)
		}
		return err
	}
}
