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

// natsLog writes the server's log lines to the site's log. The number of lines in a second is limited: a client that is
// refused again and again must not fill the disk.
type natsLog struct {
	log     *zap.SugaredLogger
	refused *prometheus.CounterVec // counts refused attempts of clients; nil: they are not counted
	fatal   chan string            // why the server cannot continue; the channel holds at most one reason
	quiet   time.Time              // until this time the cluster starts, and its warnings have the level info

	noSpace atomic.Bool // a stream refuses more data, because a write found the disk full

	mu      sync.Mutex
	second  time.Time
	lines   int // number of lines in this second
	dropped int
}

// maxLines is the maximum number of warnings and errors that are written to the log in one second.
const maxLines = 10

// admit reports whether another line may be written, and how many lines were dropped since the last one.
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

// While a cluster starts, one host is always the first and cannot reach the others yet. So each server writes warnings
// that begin with these texts.
var comingTogether = []string{"Error trying to connect to route", "Waiting for routing to be established", "JetStream has not established contact"}

// NATS servers that start together log warnings until they have connected. In the first 30 s after the server's start,
// these warnings are logged with the level info. If a problem remains, NATS logs its warning again later.
const settleWithin = 30 * time.Second

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
		l.log.Warnf("%d log lines of the NATS server were left out", dropped)
	}
	if ok {
		write(format, v...)
	}
}

func (l *natsLog) Noticef(format string, v ...any) { l.log.Debugf(format, v...) }
func (l *natsLog) Debugf(format string, v ...any)  { l.log.Debugf(format, v...) }
func (l *natsLog) Tracef(format string, v ...any)  { l.log.Debugf(format, v...) }

// plainPages is the beginning of the warning about a WebSocket listener without TLS. A valid configuration has such a
// listener only on loopback.
const plainPages = "Websocket not configured with TLS"

func (l *natsLog) Warnf(format string, v ...any) {
	if !strings.HasPrefix(format, plainPages) {
		l.bounded(l.log.Warnf, format, v)
	}
}

// Errorf logs an error of the server as a warning, because it is usually a client's error. It counts refusals even if
// their lines are dropped.
func (l *natsLog) Errorf(format string, v ...any) {
	l.count(format, v)
	l.bounded(l.log.Warnf, format, v)
}

// count looks for texts in a line of the server's log. Some texts show that the server has refused something, and count
// counts these refusals. Another text shows that a write found no space on the disk. The server has no counters of its
// own for these events.
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

// newRefusals starts all series at 0, so that the first refusal shows as an increase.
func newRefusals(r prometheus.Registerer) *prometheus.CounterVec {
	c := promauto.With(r).NewCounterVec(prometheus.CounterOpts{Name: "candor_nats_refused_total",
		Help: "Connections, messages and subscriptions that the NATS server of this process refused its clients."}, []string{"what"})
	for _, what := range []string{"publish", "subscribe", "connect"} {
		c.WithLabelValues(what)
	}
	return c
}

// Fatalf logs a fatal error. It does not end the process: the server shuts down by itself.
func (l *natsLog) Fatalf(format string, v ...any) {
	l.log.Errorf(format, v...)
	select {
	case l.fatal <- fmt.Sprintf(format, v...):
	default:
	}
}
