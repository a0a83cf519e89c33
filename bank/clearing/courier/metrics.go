package courier

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/candor-grid/candor/bank/clearing"
)

type metrics struct {
	refused  *prometheus.CounterVec
	messages *prometheus.CounterVec
	repeats  prometheus.Counter
	all      *prometheus.Registry // the registry of the metrics above
}

func newMetrics(host Host) *metrics {
	all := prometheus.NewRegistry()
	make := promauto.With(all)
	make.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "candor_bank_clearing_outstanding_instructions", Help: "Instructions that the banks of peers have not answered."},
		func() (n float64) {
			host.Read(func(s *clearing.State) { n = float64(s.Outstanding()) })
			return n
		})
	m := &metrics{all: all,
		refused: make.NewCounterVec(prometheus.CounterOpts{
			Name: "candor_bank_clearing_refusals_total", Help: "Requests of peers and users that were refused, by reason; ordinary: the books do not cover the request."}, []string{"reason"}),
		messages: make.NewCounterVec(prometheus.CounterOpts{
			Name: "candor_bank_clearing_messages_total", Help: "Messages sent to the banks of peers, by what came of them: answered, or to be sent again."}, []string{"outcome"}),
		repeats: make.NewCounter(prometheus.CounterOpts{
			Name: "candor_bank_clearing_repeats_total", Help: "Messages of the banks of peers that came again, and were answered without the log."}),
	}
	for reason := clearing.Ordinary; reason < clearing.Reasons; reason++ {
		m.refused.WithLabelValues(reason.String())
	}
	for _, outcome := range []string{"answered", "again"} {
		m.messages.WithLabelValues(outcome)
	}
	return m
}
