package estimator

import "github.com/prometheus/client_golang/prometheus"

// metrics are one estimator's.
type metrics struct {
	observations              *prometheus.CounterVec
	kept, repeated, malformed prometheus.Counter
	held                      prometheus.Collector
	seconds                   prometheus.Histogram

	registry   prometheus.Registerer
	registered []prometheus.Collector
}

func newMetrics(e *Estimator) *metrics {
	m := &metrics{
		observations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "candor_estimator_observations_total", Help: "Observations read since the start: kept, repeated or malformed."}, []string{"fate"}),
		held: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "candor_estimator_held_observations", Help: "Observations in memory."}, func() float64 { return float64(e.Held()) }),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "candor_estimator_utility_seconds", Help: "Time to answer what a job is worth.",
			Buckets: prometheus.ExponentialBuckets(0.000001, 10, 7)}),
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
	for _, c := range []prometheus.Collector{m.observations, m.held, m.seconds} {
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
