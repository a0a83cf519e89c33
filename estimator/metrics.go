package estimator

import "github.com/prometheus/client_golang/prometheus"

// metrics are one estimator's.
type metrics struct {
	observations              *prometheus.CounterVec
	kept, repeated, malformed prometheus.Counter
	kinds                     prometheus.Collector
	seconds                   *prometheus.HistogramVec
	snapshots                 *prometheus.CounterVec

	registry   prometheus.Registerer
	registered []prometheus.Collector
}

func newMetrics(e *Estimator) *metrics {
	m := &metrics{
		observations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "candor_estimator_observations_total", Help: "Observations read since the start: kept, repeated or malformed."}, []string{"fate"}),
		kinds: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "candor_estimator_kinds", Help: "Kinds of job remembered."}, func() float64 { return float64(e.Kinds()) }),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "candor_estimator_answer_seconds", Help: "Time to answer a request, by verb.",
			Buckets: prometheus.ExponentialBuckets(0.000001, 10, 7)}, []string{"verb"}),
		snapshots: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "candor_estimator_snapshots_total", Help: "Snapshots: written, failed to be written, read or refused."}, []string{"fate"}),
	}
	m.kept = m.observations.WithLabelValues("kept")
	m.repeated = m.observations.WithLabelValues("repeated")
	m.malformed = m.observations.WithLabelValues("malformed")
	return m
}

func (m *metrics) register(registry prometheus.Registerer) error {
	m.registry = registry
	if registry == nil {
		return nil
	}
	for _, c := range []prometheus.Collector{m.observations, m.kinds, m.seconds, m.snapshots} {
		if err := registry.Register(c); err != nil {
			m.unregister()
			return err
		}
		m.registered = append(m.registered, c)
	}
	return nil
}

func (m *metrics) unregister() {
	for _, c := range m.registered {
		m.registry.Unregister(c)
	}
	m.registered = nil
}
