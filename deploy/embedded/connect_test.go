package embedded

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// starved is a server in this process that does not answer the first connections.
type starved struct {
	*server.Server
	refuses, asked atomic.Int32
}

func (s *starved) InProcessConn() (net.Conn, error) {
	if s.asked.Add(1) <= s.refuses.Load() {
		return nil, errors.New("no time")
	}
	return s.Server.InProcessConn()
}

// waiting returns a share (the part of a site that runs in this process) whose server runs, and whose actors have not
// been started.
func waiting(t *testing.T, o *server.Options) *share {
	t.Helper()
	o.Host, o.Port, o.NoSigs = "127.0.0.1", server.RANDOM_PORT, true
	s := &share{log: zap.NewNop()}
	s.patience, s.giveUp = context.WithCancel(t.Context())
	var err error
	if s.server, err = startServer(o, s.log, prometheus.NewRegistry()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.server.Shutdown(); s.server.WaitForShutdown() })
	return s
}

// A part of the site connects to the site's server while this server is too busy to accept. The part must wait until
// the server accepts, the server ends, or the start of the site is cancelled.
func TestAStartWaitsForItsServer(t *testing.T) {
	t.Parallel()
	s := waiting(t, &server.Options{})
	busy := &starved{Server: s.server}
	busy.refuses.Store(9)
	c := bus.Config{Name: "$bank", InProcess: busy}
	b, err := s.connect(c)
	if err != nil || busy.asked.Load() != 10 {
		t.Fatalf("after %d tries: %v", busy.asked.Load(), err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	busy.refuses.Store(1 << 30)
	s.giveUp()
	if _, err := s.connect(c); messages.KindOf(err) != messages.Unavailable {
		t.Errorf("the start is given up: %v", err)
	}
	s = waiting(t, &server.Options{})
	s.server.Shutdown()
	if _, err := s.connect(c); messages.KindOf(err) != messages.Unavailable {
		t.Errorf("the server has ended: %v", err)
	}
}

// The server shows a certificate that this process does not trust. Then connect must return an error at once, and not
// try again.
func TestAStartDoesNotWaitForACertificate(t *testing.T) {
	t.Parallel()
	authority := httptest.NewTLSServer(nil)
	defer authority.Close()
	s := waiting(t, &server.Options{TLSConfig: authority.TLS, TLSTimeout: 60})
	c := bus.Config{URL: s.server.ClientURL(), Name: "$bank", TLS: &tls.Config{}}
	_, err := s.connect(c)
	if _, unproven := errors.AsType[*tls.CertificateVerificationError](err); !unproven || messages.KindOf(err) != messages.Unavailable {
		t.Errorf("%v", err)
	}
}
