package bank

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/candor-grid/candor/bank/history"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

type metrics struct {
	commands  prometheus.Counter
	transfers prometheus.Counter
	refused   *prometheus.CounterVec
	turned    *prometheus.CounterVec
	lapsed    prometheus.Counter
	requests  *prometheus.HistogramVec
	settling  prometheus.Counter
	serving   prometheus.Gauge
	stopped   prometheus.Gauge

	all *prometheus.Registry // the registry of the metrics above
}

func newMetrics() *metrics {
	all := prometheus.NewRegistry()
	make := promauto.With(all)
	m := &metrics{all: all,
		commands: make.NewCounter(prometheus.CounterOpts{
			Name: "candor_bank_commands_total", Help: "Commands applied since this replica started, including those replayed from its log."}),
		transfers: make.NewCounter(prometheus.CounterOpts{
			Name: "candor_bank_transfers_total", Help: "Transfers answered as done, including repeated requests."}),
		refused: make.NewCounterVec(prometheus.CounterOpts{
			Name: "candor_bank_refusals_total", Help: "Transfers, grants and changes of membership that were refused, by kind of error."}, []string{"kind"}),
		turned: make.NewCounterVec(prometheus.CounterOpts{
			Name: "candor_bank_turned_down_total", Help: "Requests that this replica refused as the leader, by verb and kind of error; each transfer of a request counts."}, []string{"verb", "kind"}),
		lapsed: make.NewCounter(prometheus.CounterOpts{
			Name: "candor_bank_holds_lapsed_total", Help: "Holds that expired."}),
		requests: make.NewHistogramVec(prometheus.HistogramOpts{
			Name: "candor_bank_request_seconds", Help: "Time from a request's arrival in the handler to its answer, by verb.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 8)}, []string{"verb"}),
		settling: make.NewCounter(prometheus.CounterOpts{
			Name: "candor_bank_clearing_commands_total", Help: "Commands of the settlement with other sites applied since this replica started, including those replayed from its log."}),
		serving: make.NewGauge(prometheus.GaugeOpts{
			Name: "candor_bank_serving_replicas", Help: "1 while this replica leads its group and serves, 0 otherwise."}),
		stopped: make.NewGauge(prometheus.GaugeOpts{
			Name: "candor_bank_stopped_replicas", Help: "1 while this replica leads but moves no credits, because the books differ from the books that the site signed; 0 otherwise."}),
	}
	for _, kind := range messages.Kinds() {
		m.refused.WithLabelValues(kind.String())
	}
	return m
}

// damages adds a counter to the metrics. It counts how often a store has found one of its files damaged or missing.
func (m *metrics) damages(s *history.Store) {
	m.all.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "candor_bank_history_damaged_total", Help: "Number of times that a file of the bank's history was found damaged or missing."},
		func() float64 { return float64(s.Damaged()) }))
}

// serve creates the counters of a verb: one counter of its requests, and one counter for each kind of error. All of
// them begin at 0.
func (m *metrics) serve(verb string) (seconds prometheus.Observer) {
	for _, kind := range messages.Kinds() {
		m.turned.WithLabelValues(verb, kind.String())
	}
	return m.requests.WithLabelValues(verb)
}

// watch adds gauges. Their values are read from the ledger of the argument `machine`.
func (m *metrics) watch(machine *machine) {
	gauge := func(name, help string, value func(ledger.Totals) float64) {
		promauto.With(m.all).NewGaugeFunc(prometheus.GaugeOpts{Name: "candor_bank_" + name, Help: help}, func() float64 {
			return value(read(machine, (*ledger.Ledger).Totals))
		})
	}
	gauge("open_accounts", "Accounts, including the bank's own.", func(t ledger.Totals) float64 { return float64(t.Accounts) })
	gauge("pending_holds", "Holds that are pending.", func(t ledger.Totals) float64 { return float64(t.Holds) })
	gauge("held_credits", "Credits that pending holds set aside.", func(t ledger.Totals) float64 { return t.Held.Float() })
	gauge("issued_credits", "Credits that were ever issued.", func(t ledger.Totals) float64 { return t.Issued.Float() })
	gauge("journal_records", "Records of the ledger's journal.", func(t ledger.Totals) float64 { return float64(t.Records) })
}

// told is a collector of metrics. When a monitor asks, it reports the credits of those accounts that were granted the
// most credits.
type told struct {
	machine *machine
	most    int
}

var (
	accountAvailable = prometheus.NewDesc("candor_bank_account_available_credits", "Credits of an account that no hold sets aside. Only with metrics_accounts, for the accounts that were granted the most.", []string{"account"}, nil)
	accountSpent     = prometheus.NewDesc("candor_bank_account_spent_credits", "Credits that an account was charged for jobs since the beginning. Only with metrics_accounts.", []string{"account"}, nil)
)

// tell adds metrics of the accounts that were granted the most credits, at most `most` of them.
func (m *metrics) tell(machine *machine, most int) {
	if most > 0 {
		m.all.MustRegister(told{machine, most})
	}
}

// Describe implements [prometheus.Collector].
func (t told) Describe(out chan<- *prometheus.Desc) {
	out <- accountAvailable
	out <- accountSpent
}

// Collect implements [prometheus.Collector].
func (t told) Collect(out chan<- prometheus.Metric) {
	for _, a := range read(t.machine, func(l *ledger.Ledger) []money.AccountReply { return l.MostGranted(t.most) }) {
		out <- prometheus.MustNewConstMetric(accountAvailable, prometheus.GaugeValue, a.Available.Float(), a.Account)
		out <- prometheus.MustNewConstMetric(accountSpent, prometheus.GaugeValue, a.Spent.Float(), a.Account)
	}
}

func (m *metrics) count(r *ledger.Result) {
	m.commands.Inc()
	m.lapsed.Add(float64(r.Lapsed))
	m.refuse(r.Error)
	done := 0
	for i := range r.Transfers {
		if r.Transfers[i].Error == nil {
			done++
		} else {
			m.refuse(r.Transfers[i].Error)
		}
	}
	m.transfers.Add(float64(done))
}

func (m *metrics) refuse(err *messages.Error) {
	if err != nil {
		m.refused.WithLabelValues(err.Kind.String()).Inc()
	}
}

// refuseRequest counts a refused request. Any part of the bank may have refused it. A high count shows that somebody
// tries to do something forbidden.
func (m *metrics) refuseRequest(verb string, err error) {
	if err == nil {
		return
	}
	m.turned.WithLabelValues(verb, messages.KindOf(err).String()).Inc()
}
