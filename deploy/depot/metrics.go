package depot

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// metrics counts what a depot receives and sends.
type metrics struct {
	received, sent prometheus.Counter // bytes of the received and the sent pieces
	files          prometheus.Counter // files that were received completely
	full           prometheus.Counter // pieces refused because the account's bucket was full
	audited        prometheus.Counter // operators' requests for files of other accounts

	all      *prometheus.Registry  // the metrics above
	registry prometheus.Registerer // registry for all metrics; nil: none
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	all := prometheus.NewRegistry()
	counter := func(name, help string) prometheus.Counter {
		return promauto.With(all).NewCounter(prometheus.CounterOpts{Name: "candor_depot_" + name, Help: help})
	}
	m := &metrics{all: all, registry: registry,
		received: counter("received_bytes_total", "Bytes of files received from users and nodes."),
		sent:     counter("sent_bytes_total", "Bytes of files sent to users and nodes."),
		files:    counter("files_total", "Files received completely."),
		full:     counter("quota_refusals_total", "Pieces refused because their account has reached its limit."),
		audited:  counter("operator_reads_total", "Requests of operators for files of other accounts; each is in the log."),
	}
	if registry == nil {
		return m, nil
	}
	return m, registry.Register(all)
}

func (m *metrics) took(r *jobmsg.PutRequest, reply *jobmsg.PutReply, err error) {
	switch {
	case err == nil && len(r.Data) > 0:
		m.received.Add(float64(len(r.Data)))
		if reply.Done {
			m.files.Inc()
		}
	case err != nil && messages.KindOf(err) == messages.Exhausted:
		m.full.Inc()
	}
}

func (m *metrics) close() {
	if m.registry != nil {
		m.registry.Unregister(m.all)
	}
}
