package embedded

import (
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/candor-grid/candor/messages/bus"
)

// metrics keeps one registry for each started part, and drops it with the part: a replica that is
// started again in the same process registers again.
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

// add makes the registry of a part. Without metrics it is one that nobody
// gathers.
func (m *metrics) add() *prometheus.Registry {
	r := prometheus.NewRegistry()
	if m.on {
		m.mu.Lock()
		m.parts[r] = struct{}{}
		m.mu.Unlock()
	}
	return r
}

// remove forgets a part that has stopped.
func (m *metrics) remove(r *prometheus.Registry) {
	m.mu.Lock()
	delete(m.parts, r)
	m.mu.Unlock()
}

// gatherer collects from the parts there are now.
func (m *metrics) gatherer() prometheus.Gatherer {
	all := prometheus.Gatherers{m.shared}
	m.mu.Lock()
	defer m.mu.Unlock()
	for r := range m.parts {
		all = append(all, r)
	}
	return all
}

// counter returns the counter of the shared registry with a name.
func (m *metrics) counter(name, help string) (bus.Counter, error) {
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	err := m.shared.Register(counter)
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		return already.ExistingCollector.(prometheus.Counter), nil
	}
	return counter, err
}

// labelled adds a label to everything that is registered.
func labelled(r prometheus.Registerer, name, value string) prometheus.Registerer {
	return prometheus.WrapRegistererWith(prometheus.Labels{name: value}, r)
}

// Gatherer collects the metrics of the parts that run in this process at the
// time of the call; it has none unless Options.Metrics was set.
func (s *share) Gatherer() prometheus.Gatherer { return s.metrics.gatherer() }
