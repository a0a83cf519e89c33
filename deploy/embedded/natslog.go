package embedded

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// natsLog passes on the server's log lines. The server's notices are logged as details. Each
// refusal of a client's attempt is a separate line, so the lines in a second are bounded: a client
// must not fill the disk by being refused.
type natsLog struct {
	log     *zap.SugaredLogger
	refused *prometheus.CounterVec // counts refused attempts of clients; nil: they are not counted
	fatal   chan string            // why the server cannot go on; one at most is kept
	quiet   time.Time              // until then the cluster is starting, and its warnings are logged as details

	noSpace atomic.Bool // a write found the disk full; its stream accepts nothing more

	mu      sync.Mutex
	second  time.Time
	lines   int // lines in this second
	dropped int
}

// maxLines bounds the warnings and errors of one second.
const maxLines = 10

// admit reports whether another line may be written, and how many were dropped since the last
// written one.
func (l *natsLog) admit(now time.Time) (ok bool, dropped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.second) >= time.Second {
		l.second, l.lines = now, 0
	}
	if l.lines++; l.lines > maxLines {
		l.dropped++
		return false, 0
	}
	dropped, l.dropped = l.dropped, 0
	return true, dropped
}

// comingTogether begin the warnings of each server whose cluster starts: one of the hosts is the
// first.
var comingTogether = []string{"Error trying to connect to route", "Waiting for routing to be established", "JetStream has not established contact"}

// settleWithin is how long such warnings are details; a warning that goes on comes again.
const settleWithin = 30 * time.Second

// settles reports whether a warning is a detail of a start.
func (l *natsLog) settles(now time.Time, format string, v []any) bool {
	text := fmt.Sprintf(format, v...)
	return now.Before(l.quiet) && slices.ContainsFunc(comingTogether, func(start string) bool { return strings.HasPrefix(text, start) })
}

func (l *natsLog) bounded(write func(string, ...any), format string, v []any) {
	now := time.Now()
	if l.settles(now, format, v) {
		l.log.Infof(format, v...)
		return
	}
	ok, dropped := l.admit(now)
	if dropped > 0 {
		l.log.Warnf("%d lines of the server were left out", dropped)
	}
	if ok {
		write(format, v...)
	}
}

func (l *natsLog) Noticef(format string, v ...any) { l.log.Debugf(format, v...) }
func (l *natsLog) Debugf(format string, v ...any)  { l.log.Debugf(format, v...) }
func (l *natsLog) Tracef(format string, v ...any)  { l.log.Debugf(format, v...) }

// plainPages begins the warning of a WebSocket listener without TLS. A configuration has such a
// listener on loopback alone.
const plainPages = "Websocket not configured with TLS"

func (l *natsLog) Warnf(format string, v ...any) {
	if !strings.HasPrefix(format, plainPages) {
		l.bounded(l.log.Warnf, format, v)
	}
}

// Errorf logs a warning: what the server calls an error is usually a client's error. A refusal is
// counted, whether its line is written or not.
func (l *natsLog) Errorf(format string, v ...any) {
	l.count(format, v)
	l.bounded(l.log.Warnf, format, v)
}

// count finds out from the words of a line what the server refused, because the server has no
// counters for it, and whether a write found no space.
func (l *natsLog) count(format string, v []any) {
	what := ""
	switch {
	case strings.Contains(format, "ritical write error") && strings.Contains(fmt.Sprint(v...), unix.ENOSPC.Error()):
		l.noSpace.Store(true)
	case strings.Contains(format, "Publish Violation"):
		what = "publish"
	case strings.Contains(format, "Subscription Violation"):
		what = "subscribe"
	case strings.Contains(format, server.ErrAuthentication.Error()), len(v) > 0 && v[0] == server.ErrAuthentication:
		what = "connect"
	}
	if what != "" && l.refused != nil {
		l.refused.WithLabelValues(what).Inc()
	}
}

// newRefusals counts what clients of the server tried and were refused, from 0: of a
// series that begins with the first refusal nobody sees that it grew.
func newRefusals(r prometheus.Registerer) *prometheus.CounterVec {
	c := promauto.With(r).NewCounterVec(prometheus.CounterOpts{Name: "candor_nats_refused_total",
		Help: "Connections, messages and subscriptions that the NATS server of this process refused its clients."}, []string{"what"})
	for _, what := range []string{"publish", "subscribe", "connect"} {
		c.WithLabelValues(what)
	}
	return c
}

// Fatalf does not end the process: the server that cannot go on shuts down.
func (l *natsLog) Fatalf(format string, v ...any) {
	l.log.Errorf(format, v...)
	select {
	case l.fatal <- fmt.Sprintf(format, v...):
	default:
	}
}
