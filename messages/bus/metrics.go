package bus

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/candor-grid/candor/messages"
)

// metrics count what goes wrong between a connection and NATS. The connections
// of one process that share a registry share the counters.
type metrics struct {
	reconnects, slow, denied, misdirected, errors prometheus.Counter
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := new(metrics)
	for _, c := range []struct {
		counter    *prometheus.Counter
		name, help string
	}{
		{&m.reconnects, "candor_bus_reconnects_total", "Connections to NATS that were restored."},
		{&m.slow, "candor_bus_slow_subscriptions_total", "Times a subscription was too slow and began to lose messages."},
		{&m.denied, "candor_bus_denied_total", "Messages and subscriptions that NATS permissions refused."},
		{&m.misdirected, "candor_bus_misdirected_total", "Requests that were not carried out, because their reply subject is not in their caller's inbox."},
		{&m.errors, "candor_bus_errors_total", "Other errors of connections to NATS."},
	} {
		counter := prometheus.NewCounter(prometheus.CounterOpts{Name: c.name, Help: c.help})
		*c.counter = counter
		if r == nil {
			continue
		}
		var already prometheus.AlreadyRegisteredError
		switch err := r.Register(counter); {
		case errors.As(err, &already):
			*c.counter = already.ExistingCollector.(prometheus.Counter)
		case err != nil:
			return nil, messages.Errorf(messages.Internal, "bus: metrics: %v", err)
		}
	}
	return m, nil
}
