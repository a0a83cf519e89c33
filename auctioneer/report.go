package auctioneer

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/messages"
)

// report tells operators what the desk did in a step, in the log and by metrics. The argument `took` is its duration.
func (l *term) report(events []any, took time.Duration) {
	for _, event := range events {
		switch e := event.(type) {
		case desk.Decided:
			l.metrics.allocation.Observe(took.Seconds())
		case desk.Committed:
			l.metrics.decisions.Inc()
			l.metrics.suspensions.Add(float64(len(e.Decision.Suspend) + len(e.Decision.Requeue)))
			l.metrics.resumptions.Add(float64(len(e.Decision.Resume)))
			l.metrics.discards.Add(float64(len(e.Decision.Discard)))
		case desk.Reconfigured:
			l.takeIntoForce(e.Markets, e.Faults)
		case desk.Undecided:
			l.Log.Warn("a decision was not committed; the market decides again", zap.String("market", e.Market), zap.Error(e.Err))
		case desk.Unsettled:
			l.Log.Warn("settlement not committed", zap.Stringer("job", e.Job), zap.Error(e.Err))
		case desk.Lost:
			l.Log.Warn("node lost", zap.String("node", e.Node), zap.Any("tasks", e.Tasks), zap.Error(e.Err))
			l.metrics.nodesLost.Inc()
		case desk.Evicted:
			l.Log.Warn("node not evicted yet", zap.String("node", e.Node), zap.Error(e.Err))
		case desk.Disbanded:
			l.Log.Info("a gang did not come together in time", zap.Stringer("job", e.Job), zap.Error(e.Err))
		case desk.Refused:
			l.refused(&e)
		case desk.Ran:
			l.federated.ran(&e)
		case desk.Waiting:
			l.Log.Warn("not done yet: "+e.What, zap.Error(e.Err))
		case desk.Dropped:
			l.metrics.unlearned.Add(float64(e.Observations))
			l.Log.Warn("the estimator does not learn of jobs that ended long ago: its stream is out of service", zap.Int("jobs", e.Observations))
		case desk.Forgotten:
			l.Log.Error("the book asks for a payment or a notice about a job that it no longer has", zap.Uint64("effect", e.Effect), zap.Stringer("job", e.Job))
		case desk.Sent:
			l.metrics.notices.WithLabelValues("sent").Inc()
		case desk.Unsent:
			l.unsent(&e)
		case desk.NotExtended:
			l.Log.Warn("a hold was not extended", zap.Stringer("job", e.Job), zap.Error(e.Err))
		}
	}
}

// unsent logs that a notification was not accepted. The log does not name the receiver: if the receiver is a webhook,
// whoever knows its URL may be able to send to it.
func (l *term) unsent(e *desk.Unsent) {
	outcome := "failed"
	if e.Over {
		outcome = "refused"
	}
	l.metrics.notices.WithLabelValues(outcome).Inc()
	l.Log.Info("a notice about a job was not accepted", zap.Stringer("job", e.Job), zap.Bool("for_good", e.Over))
}

func (l *term) refused(e *desk.Refused) {
	l.metrics.refused.Inc()
	if e.Site == "" {
		l.Log.Error("charge refused", zap.String("transfer", e.Charge), zap.Error(e.Err))
		return
	}
	l.Log.Error("charge to another site refused", zap.String("site", e.Site), zap.String("authorisation", e.Charge), zap.Error(e.Err))
}

type quarantines struct {
	mu    sync.Mutex
	since map[messages.Name]messages.Time // by node: begin of the quarantine
}

// note logs and counts that a node goes into quarantine, or takes work again.
func (h *quarantines) note(a *site, n *book.Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was, is := h.since[n.Name], n.Health.Quarantined
	if was == is {
		return
	}
	if is == 0 {
		delete(h.since, n.Name)
		a.Log.Info("node accepts work again", zap.String("node", n.Name))
		return
	}
	if h.since == nil {
		h.since = map[messages.Name]messages.Time{}
	}
	h.since[n.Name] = is
	a.metrics.quarantines.Inc()
	a.Log.Warn("node in quarantine", zap.String("node", n.Name), zap.String("reason", n.Health.Reason), zap.Stringer("probe", n.Health.Retry))
}
