package estimator

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	kept, repeated, malformed prometheus.Counter
	seconds                   *prometheus.HistogramVec
	snapshots                 *prometheus.CounterVec

	all *prometheus.Registry // registry of the metrics above
}

func newMetrics(e *Estimator) *metrics {
	all := prometheus.NewRegistry()
	make := promauto.With(all)
	make.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "candor_estimator_kinds", Help: "Kinds of jobs that the estimator remembers."}, func() float64 { return float64(e.Kinds()) })
	observations := make.NewCounterVec(prometheus.CounterOpts{
		Name: "candor_estimator_observations_total", Help: "Observations read since the start: kept, repeated or malformed."}, []string{"fate"})
	m := &metrics{all: all,
		kept: observations.WithLabelValues("kept"), repeated: observations.WithLabelValues("repeated"), malformed: observations.WithLabelValues("malformed"),
		seconds: make.NewHistogramVec(prometheus.HistogramOpts{
			Name: "candor_estimator_answer_seconds", Help: "Time to answer a request, by verb.",
			Buckets: prometheus.ExponentialBuckets(0.000001, 10, 7)}, []string{"verb"}),
		snapshots: make.NewCounterVec(prometheus.CounterOpts{
			Name: "candor_estimator_snapshots_total", Help: "Snapshots: written, failed to be written, read or refused."}, []string{"fate"}),
	}
	for _, fate := range []string{"written", "failed", "read", "refused"} {
		m.snapshots.WithLabelValues(fate)
	}
	return m
}
