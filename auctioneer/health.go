package auctioneer

import (
	"sync"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
)

// health is what the leader has said of nodes in quarantine.
type health struct {
	mu    sync.Mutex
	since map[messages.Name]messages.Time // by node in quarantine
}

// note says in the log and counts when a node goes into quarantine, and when it
// takes work again.
func (h *health) note(a *Auctioneer, n *book.Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was, is := h.since[n.Name], n.Health.Quarantined
	if was == is {
		return
	}
	if is == 0 {
		delete(h.since, n.Name)
		a.Log.Info("node takes work again", zap.String("node", n.Name))
		return
	}
	if h.since == nil {
		h.since = map[messages.Name]messages.Time{}
	}
	h.since[n.Name] = is
	a.metrics.quarantines.Inc()
	a.Log.Warn("node in quarantine", zap.String("node", n.Name), zap.String("reason", n.Health.Reason), zap.Stringer("probe", n.Health.Retry))
}

// examines reports whether the next exchange of a node is to be committed though
// it carries nothing.
func (l *leader) examines(node messages.Name) (is bool) {
	now := l.Clock()
	l.replica.read(func(b *book.Book) {
		n := b.Node(node)
		is = n != nil && n.Examines(now)
	})
	return is
}

// countQuarantined counts the nodes in quarantine, and the classes of which no other
// node is left.
func (l *leader) countQuarantined(b *book.Book) {
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
	l.metrics.quarantined.Set(float64(nodes))
	l.metrics.unserved.Set(float64(classes))
}
