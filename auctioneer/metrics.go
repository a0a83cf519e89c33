package auctioneer

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
)

// metrics are the metrics of one replica. The metric `leading` shows whether the replica leads. All other metrics
// change only while the replica leads.
type metrics struct {
	leading     prometheus.Gauge
	allocation  prometheus.Histogram
	submissions prometheus.Counter
	exchanges   prometheus.Counter
	claims      prometheus.Counter
	grants      prometheus.Counter
	finishes    prometheus.Counter
	vectors     prometheus.Counter
	vectorBytes prometheus.Counter
	nodesLost   prometheus.Counter
	refused     prometheus.Counter
	unlearned   prometheus.Counter
	decisions   prometheus.Counter
	suspensions prometheus.Counter
	resumptions prometheus.Counter
	discards    prometheus.Counter
	limited     *prometheus.CounterVec
	departures  prometheus.Counter
	arrivals    prometheus.Counter
	errands     *prometheus.CounterVec
	quarantines prometheus.Counter
	quarantined prometheus.Gauge
	unserved    prometheus.Gauge
	notices     *prometheus.CounterVec
	contracts   *prometheus.GaugeVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	make := promauto.With(r)
	counter := func(name, help string) prometheus.Counter {
		return make.NewCounter(prometheus.CounterOpts{Name: "candor_auctioneer_" + name, Help: help})
	}
	m := &metrics{
		leading: make.NewGauge(prometheus.GaugeOpts{Name: "candor_auctioneer_leading", Help: "1 while this replica leads its group."}),
		allocation: make.NewHistogram(prometheus.HistogramOpts{Name: "candor_auctioneer_allocation_seconds",
			Help: "Time a mechanism took for one allocation.", Buckets: prometheus.ExponentialBuckets(1e-6, 4, 12)}),
		submissions: counter("submissions_total", "Jobs committed."),
		exchanges:   counter("exchanges_total", "Exchanges received from node agents."),
		claims:      counter("claims_total", "Claims received from node agents."),
		grants:      counter("grants_total", "Tasks granted to node agents."),
		finishes:    counter("finishes_total", "Ends of attempts reported by node agents."),
		vectors:     counter("vectors_total", "Allocation vectors published."),
		vectorBytes: counter("vector_bytes_total", "Bytes of allocation vectors published. A vector counts once, however many nodes read it."),
		nodesLost:   counter("nodes_lost_total", "Nodes whose claims were taken back."),
		refused:     counter("charges_refused_total", "Charges that the bank refused."),
		unlearned:   counter("observations_dropped_total", "Ended jobs from which the estimator does not learn, because its stream was out of service for too long or for too many jobs."),
		decisions:   counter("decisions_total", "Decisions of markets committed: suspensions, starts, discards, tariffs."),
		suspensions: counter("suspensions_total", "Tasks that had to leave their slots."),
		resumptions: counter("resumptions_total", "Suspended tasks that were resumed."),
		discards:    counter("discards_total", "Jobs that their markets refused to run."),
		departures:  counter("departures_total", "Jobs accepted here that another site will run."),
		quarantines: counter("quarantines_total", "Nodes that were put in quarantine, because tasks fail there but not on other nodes."),
		quarantined: make.NewGauge(prometheus.GaugeOpts{Name: "candor_auctioneer_nodes_quarantined", Help: "Nodes in quarantine, which take no work until a probe ends well there."}),
		unserved:    make.NewGauge(prometheus.GaugeOpts{Name: "candor_auctioneer_classes_quarantined", Help: "Classes of slots for which all nodes that are up are in quarantine."}),
		arrivals:    counter("arrivals_total", "Submissions of jobs from other sites that were accepted, including repeated requests."),
	}
	m.limited = make.NewCounterVec(prometheus.CounterOpts{Name: "candor_auctioneer_limited_total",
		Help: "Requests refused because an account, or another site (site), was over its limit."}, []string{"limit"})
	m.errands = make.NewCounterVec(prometheus.CounterOpts{Name: "candor_auctioneer_errands_total",
		Help: "Requests to the bank and to other sites about jobs that other sites run, by whether they were answered or must be repeated."}, []string{"outcome"})
	m.contracts = make.NewGaugeVec(prometheus.GaugeOpts{Name: "candor_auctioneer_contracts",
		Help: "Contracts of all markets whose jobs completed as promised (kept) or later (broken)."}, []string{"outcome"})
	m.notices = make.NewCounterVec(prometheus.CounterOpts{Name: "candor_auctioneer_notices_total",
		Help: "Tries to send a notification about a job: sent, failed (it is tried again), or refused."}, []string{"outcome"})
	for vector, values := range map[*prometheus.CounterVec][]string{
		m.limited: {"rate", "pending", "site"}, m.errands: {"answered", "again"}, m.notices: {"sent", "failed", "refused"},
	} {
		for _, value := range values { // all series start at 0, so that a monitor sees the first event as an increase
			vector.WithLabelValues(value)
		}
	}
	m.setContracts(0, 0)
	return m
}

func (m *metrics) countContracts(b *book.Book) {
	var kept, broken uint64
	for _, p := range b.Promises() {
		kept, broken = kept+p.Kept, broken+p.Broken
	}
	m.setContracts(kept, broken)
}

func (m *metrics) setContracts(kept, broken uint64) {
	m.contracts.WithLabelValues("kept").Set(float64(kept))
	m.contracts.WithLabelValues("broken").Set(float64(broken))
}

// countQuarantined updates two metrics: the number of nodes in quarantine, and the number of classes that are offered
// only by nodes in quarantine. Nodes that are down do not count.
func (m *metrics) countQuarantined(b *book.Book) {
	in, healthy := map[messages.Name]bool{}, map[messages.Name]bool{}
	nodes, classes := 0, 0
	for _, n := range b.Nodes() {
		if n.Health.Quarantined != 0 && n.Up {
			nodes++
		}
		for _, s := range n.Slots {
			in[s.Class] = in[s.Class] || n.Up && n.Health.Quarantined != 0
			healthy[s.Class] = healthy[s.Class] || n.Up && n.Health.Quarantined == 0
		}
	}
	for class := range in {
		if in[class] && !healthy[class] {
			classes++
		}
	}
	m.quarantined.Set(float64(nodes))
	m.unserved.Set(float64(classes))
}
