package embedded

import (
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/candor-grid/candor/messages/bus"
)

// metrics has one registry for each running part. A replica that is started again gets a new one.
type metrics struct {
	on     bool
	shared *prometheus.Registry

	mu    sync.Mutex
	parts map[*prometheus.Registry]struct{}
}

func newMetrics(on bool) *metrics {
	m := &metrics{on: on, shared: prometheus.NewRegistry(), parts: map[*prometheus.Registry]struct{}{}}
	if on {
		m.shared.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	return m
}

func (m *metrics) add() *prometheus.Registry {
	r := prometheus.NewRegistry()
	if m.on {
		m.mu.Lock()
		m.parts[r] = struct{}{}
		m.mu.Unlock()
	}
	return r
}

func (m *metrics) remove(r *prometheus.Registry) {
	m.mu.Lock()
	delete(m.parts, r)
	m.mu.Unlock()
}

// gatherer returns a gatherer for the metrics of all parts of the site that run at the moment of the call.
func (m *metrics) gatherer() prometheus.Gatherer {
	all := prometheus.Gatherers{m.shared}
	m.mu.Lock()
	defer m.mu.Unlock()
	for r := range m.parts {
		all = append(all, r)
	}
	return all
}

func (m *metrics) counter(name, help string) (bus.Counter, error) {
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	err := m.shared.Register(counter)
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		return already.ExistingCollector.(prometheus.Counter), nil
	}
	return counter, err
}

func labelled(r prometheus.Registerer, name, value string) prometheus.Registerer {
	return prometheus.WrapRegistererWith(prometheus.Labels{name: value}, r)
}

// Gatherer collects the metrics of the parts that run in this process when the metrics are collected. It collects
// nothing unless Options.Metrics was set.
func (s *share) Gatherer() prometheus.Gatherer { return s.metrics.gatherer() }
