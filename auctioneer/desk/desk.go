package desk

import (
	"math/rand/v2"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/federation"
	"github.com/candor-grid/candor/messages"
)

// Desk is the part of a leader's state that the job book does not contain.
type Desk struct {
	*core
	*Markets
	trading      trading
	settlements  settlements
	nodes        nodes
	payments     payments
	observations observations
	notices      notices
	holds        holds
	lessons      lessons
	errands      errands
	delays       delays
	warnings     warnings
	spare        book.Spare // memory for decoded jobs, used again for each read
	// limited has the active jobs whose number of running tasks is limited by licences or bounds. The number stored for
	// a job says how many of its tasks could be claimed when the desk last read the job. The field `owned` has the same
	// jobs, grouped by owner. Jobs that have ended since then may still be in both fields.
	limited map[messages.JobID]int
	owned   map[book.Owner]*owned
	choosy  map[messages.JobID]bool // jobs that have not ended and that name nodes
	takes   map[uint32]taking       // the nodes that take tasks
	closing closing
}

// taking describes a node that takes tasks. It has the node's session, and the time at which its next maintenance
// window begins.
type taking struct {
	session uint64
	free    messages.Time
}

// New returns the desk of a new leader. The result `faults` has the errors of markets that cannot run: their jobs wait.
func New(c Config, b Book, now Instant) (d *Desk, faults []error) {
	d = &Desk{limited: map[messages.JobID]int{}, owned: map[book.Owner]*owned{}, choosy: map[messages.JobID]bool{}, takes: map[uint32]taking{}, closing: closing{at: map[messages.JobID]messages.Time{}}, core: &core{Config: c, book: b, now: now, rng: rand.New(rand.NewPCG(c.Term, c.Seed)), asked: map[uint64]func(any, error){}}}
	b.Read(func(b *book.Book) { d.Markets, faults = openMarkets(&d.Config, b) })
	d.inform = d.Markets.applied
	d.trading = newTrading(d.core, d.Markets)
	d.settlements = settlements{core: d.core, pending: map[messages.JobID]bool{}}
	d.nodes = newNodes(d.core, d.Markets)
	d.payments = payments{core: d.core, effects: true}
	d.observations = observations{core: d.core, effects: true}
	d.notices = notices{core: d.core, more: true, wait: map[uint64]*attempt{}, hosts: map[string]int{}}
	d.holds = holds{core: d.core}
	d.errands = errands{core: d.core, federation: federation.NewErrands(d.RemoteFor, d.rng)}
	d.delays = delays{core: d.core}
	d.warnings = warnings{d.core, map[messages.JobID]bool{}}
	d.lessons = lessons{core: d.core, trading: &d.trading}
	return d, faults
}

// reconfigure is called after markets were applied. It replaces the desk's markets by new ones, made from the
// configuration in the book. The new markets know no jobs and nodes yet. The numbers of their vectors continue after
// the numbers of the old markets. Each node is told its markets again.
func (d *Desk) reconfigure(b *book.Book) {
	var faults []error
	d.Markets, faults = openMarkets(&d.Config, b)
	d.inform = d.Markets.applied
	trading := newTrading(d.core, d.Markets)
	trading.follow(&d.trading)
	d.trading = trading
	d.nodes.serve(d.Markets)
	d.lessons.newcomers = true
	d.tell(Reconfigured{d.Markets, faults})
}
