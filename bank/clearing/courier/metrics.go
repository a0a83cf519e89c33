package courier

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/candor-grid/candor/bank/clearing"
)

// metrics are one courier's.
type metrics struct {
	refused    *prometheus.CounterVec
	messages   *prometheus.CounterVec
	repeats    prometheus.Counter
	registry   prometheus.Registerer
	registered []prometheus.Collector
}

func newMetrics() *metrics {
	return &metrics{
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "candor_bank_clearing_refusals_total", Help: "What peers and users sent and was refused, by reason; ordinary is what the books do not cover."}, []string{"reason"}),
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "candor_bank_clearing_messages_total", Help: "Messages sent to the banks of peers, by what came of them: answered, or to be sent again."}, []string{"outcome"}),
		repeats: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "candor_bank_clearing_repeats_total", Help: "Messages of the banks of peers that came again, and were answered without the log."}),
	}
}

// register announces the metrics, and a gauge that reads the state.
func (m *metrics) register(registry prometheus.Registerer, host Host) error {
	if registry == nil {
		return nil
	}
	m.registry = registry
	outstanding := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "candor_bank_clearing_outstanding_instructions", Help: "Instructions that the banks of peers have not answered."},
		func() (n float64) {
			host.Read(func(s *clearing.State) { n = float64(s.Outstanding()) })
			return n
		})
	for _, c := range []prometheus.Collector{m.refused, m.messages, m.repeats, outstanding} {
		if err := registry.Register(c); err != nil {
			return errors.Join(err, m.unregister())
		}
		m.registered = append(m.registered, c)
	}
	return nil
}

func (m *metrics) unregister() error {
	var errs []error
	for _, c := range m.registered {
		if !m.registry.Unregister(c) {
			errs = append(errs, errors.New("courier: a metric was not registered any more"))
		}
	}
	m.registered = nil
	return errors.Join(errs...)
}
