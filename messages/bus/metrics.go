package bus

import (
	"sync/atomic"

	"github.com/candor-grid/candor/messages"
)

// Counter counts events.
type Counter interface{ Inc() }

// Metrics returns the counter with a name. Connections that use the same name share the
// counter.
type Metrics func(name, help string) (Counter, error)

// metrics counts errors of a connection to NATS.
type metrics struct {
	reconnects, slow, denied, misdirected, errors Counter
}

// tally is a counter for connections without metrics.
type tally struct{ atomic.Uint64 }

// Inc implements [Counter].
func (t *tally) Inc() { t.Add(1) }

func newMetrics(counter Metrics) (*metrics, error) {
	if counter == nil {
		counter = func(string, string) (Counter, error) { return new(tally), nil }
	}
	m := new(metrics)
	for _, c := range []struct {
		counter    *Counter
		name, help string
	}{
		{&m.reconnects, "candor_bus_reconnects_total", "Connections to NATS that were restored."},
		{&m.slow, "candor_bus_slow_subscriptions_total", "Times a subscription was too slow and began to lose messages."},
		{&m.denied, "candor_bus_denied_total", "Messages and subscriptions that NATS permissions refused."},
		{&m.misdirected, "candor_bus_misdirected_total", "Requests that were not carried out, because their reply subject is not in their caller's inbox."},
		{&m.errors, "candor_bus_errors_total", "Other errors of connections to NATS."},
	} {
		var err error
		if *c.counter, err = counter(c.name, c.help); err != nil {
			return nil, messages.Errorf(messages.Internal, "bus: metrics: %v", err)
		}
	}
	return m, nil
}
