package nodeagent

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
)

// metrics counts what agents do. Agents that share a registry share its metrics.
type metrics struct {
	exchanges, claims, grants, starts   prometheus.Counter
	vectors, fetches, refused, sessions prometheus.Counter
	finishes, failures                  *prometheus.CounterVec
	startSeconds, exchangeSeconds       prometheus.Histogram
}

// unread are the metrics of agents that have no registry; nobody reads them.
var unread = sync.OnceValue(func() *metrics { return makeMetrics(prometheus.NewRegistry()) })

func newMetrics(r prometheus.Registerer) *metrics {
	if r == nil {
		return unread()
	}
	return makeMetrics(r)
}

func makeMetrics(r prometheus.Registerer) *metrics {
	opts := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: "candor", Subsystem: "nodeagent", Name: name, Help: help}
	}
	counter := func(name, help string) prometheus.Counter {
		return register(r, prometheus.NewCounter(opts(name, help)))
	}
	counters := func(name, help, label string) *prometheus.CounterVec {
		return register(r, prometheus.NewCounterVec(opts(name, help), []string{label}))
	}
	seconds := func(name, help string, buckets int) prometheus.Histogram {
		return register(r, prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "candor", Subsystem: "nodeagent",
			Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.0001, 2, buckets)}))
	}
	m := &metrics{
		exchanges:       counter("exchanges_total", "Exchanges sent to the leader, repetitions included."),
		claims:          counter("claims_total", "Slots for which work was claimed, repetitions included."),
		grants:          counter("grants_total", "Tasks granted."),
		starts:          counter("starts_total", "Tasks started."),
		finishes:        counters("finishes_total", "Tasks ended, by outcome.", "outcome"),
		failures:        counters("request_failures_total", "Requests to the leader that failed, by kind of error.", "kind"),
		vectors:         counter("vectors_total", "Allocation vectors received."),
		fetches:         counter("vector_fetches_total", "Requests for a complete allocation vector."),
		refused:         counter("refused_messages_total", "Messages of the leader that this agent refused as invalid."),
		sessions:        counter("lost_sessions_total", "Sessions that ended because the lease was lost or the leader fenced the node."),
		startSeconds:    seconds("start_seconds", "Time from the arrival of a grant to the started process.", 16),
		exchangeSeconds: seconds("request_seconds", "Time from a request to the leader to its answer.", 18),
	}
	for _, outcome := range agent.Outcomes() {
		m.finishes.WithLabelValues(outcome.String())
	}
	for _, kind := range messages.Kinds() {
		m.failures.WithLabelValues(kind.String())
	}
	return m
}

// register registers a collector and returns it. If another agent of this process has registered the same collector,
// register returns the collector that is registered already.
func register[C prometheus.Collector](r prometheus.Registerer, c C) C {
	var there prometheus.AlreadyRegisteredError
	if err := r.Register(c); errors.As(err, &there) {
		if known, ok := there.ExistingCollector.(C); ok {
			return known
		}
	}
	return c
}

func (m *metrics) exchange(e *agent.Exchange) {
	m.exchanges.Inc()
	for _, c := range e.Claims {
		m.claims.Add(float64(c.Slots))
	}
}

// finish counts an ended task and, if it was started, the time from its grant to its start.
func (m *metrics) finish(f *agent.Finished, granted time.Time) {
	m.finishes.WithLabelValues(f.Outcome.String()).Inc()
	if f.Outcome != agent.Unstartable {
		took := f.Started.Std().Sub(granted)
		m.startSeconds.Observe(max(0, took.Seconds()))
	}
}
