package faults

import (
	"fmt"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/market"
)

// duties checks that a leader does all its duties in time, and none twice.
type duties struct {
	*site
	r         *replica
	began     messages.Time // time when the checks began, in simulated time
	gathering map[messages.JobID]gathered
	spent     map[messages.JobID]messages.Time // time when each budget was used up, in simulated time
	emptied   map[messages.Name]gathered       // end of the drain, for each node that must become empty
	deciding  int                              // number of decisions that are being committed
	refused   messages.Time                    // time when the log was last full, in simulated time
	undecided messages.Time                    // time when the log was last full for a decision
}

// The type `gathered` describes a wait that must not take too long. The field `book` has a time from the book: the
// beginning of a gang's wait for its slots, or the end of the time to drain a node. The field `since` is when the
// checker first saw this time in the book.
type gathered struct{ book, since messages.Time }

// A leader has several duties. For example, if a gang waits too long for slots, the leader must end this wait. Each
// duty has a time limit; a leader may exceed the limit by the constant `grace`. mostGathering is the limit for gangs.
const (
	mostGathering = 3 * second / 2
	grace         = 2 * second
	// If the log has no room for a decision, the desk (the decision logic) repeats the decision after a pause.
	// mostRetry is the longest pause of the desk, 5 s, plus up to half of it at random.
	mostRetry = 5*second + 5*second/2
)

func newDuties(r *replica) *duties {
	return &duties{site: r.site, r: r, began: r.now, gathering: map[messages.JobID]gathered{},
		spent: map[messages.JobID]messages.Time{}, emptied: map[messages.Name]gathered{}}
}

// This method checks a proposal of a leader. A market may make only one decision at a time. A node may be declared lost
// only after its agent had time to end its tasks. If the leader was replaced and does not know it yet, its proposal is
// not checked, because the proposal is not committed.
func (d *duties) proposes(c *book.Command) error {
	switch {
	case c.Decide != nil:
		if d.deciding++; d.deciding > 1 {
			return fmt.Errorf("invariant 9: market %s makes a decision while its last decision is still being committed", c.Decide.Market)
		}
	case c.Lost != nil:
		if silent := d.now.Sub(d.heard[c.Lost.Node]); silent < lease+lease/4 && !d.r.succeeded() {
			return fmt.Errorf("invariant 9: the claims of node %s are taken back too early, after a silence of %v", c.Lost.Node, silent)
		}
	}
	return nil
}

// refuses records the time at which the log had no room for a command. The desk (the decision logic) tries again at
// intervals, because nobody tells it when there is room.
func (d *duties) refuses(c *book.Command) {
	if d.refused = d.now; c.Decide != nil {
		d.undecided = d.now
	}
}

func (d *duties) decided(c *book.Command) {
	if c.Decide != nil {
		d.deciding--
	}
}

// A site's vectors are numbered. published checks that the numbers only increase, even when the leader changes. A
// leader that was replaced and does not know this yet is not checked.
func (d *duties) published(v *agentmsg.Vector) error {
	last := d.vector
	if d.r.term < last.leader {
		return nil
	}
	d.vector = lastVector{d.r.term, v.Term, v.Seq}
	if v.Term < last.term || v.Term == last.term && v.Seq <= last.seq {
		return fmt.Errorf("invariant 9: vector %d of term %d is published after vector %d of term %d", v.Seq, v.Term, last.seq, last.term)
	}
	return nil
}

type lastVector struct{ leader, term, seq uint64 }

// This method returns an error if a leader has not done one of its duties in time, such as to end a job whose budget is
// spent. If the leader waits for its log, nothing is checked.
func (d *duties) undone() error {
	b := d.r.state.(*bookState)
	for _, n := range b.Nodes() {
		if err := d.undoneAt(b, n); err != nil {
			return err
		}
	}
	for _, j := range jobs(b.Book) {
		if err := d.overdrawn(b, j); err != nil {
			return err
		}
		at, known := d.gathering[j.ID], j.Active() && j.Stages[0].Gathered != 0
		switch {
		case !known:
			delete(d.gathering, j.ID)
		case at.book != j.Stages[0].Gathered:
			d.gathering[j.ID] = gathered{j.Stages[0].Gathered, d.now}
		case d.refused < at.since && d.waits(at.since, mostGathering+d.apart()): // the log was full, so the decision comes again
			return fmt.Errorf("invariant 9: the gang of job %d has been gathering for %v, which is too long", j.ID, d.now.Sub(at.since))
		}
	}
	return nil
}

// overdrawn returns an error if a job still runs some time after its budget was spent.
func (d *duties) overdrawn(b *bookState, j *book.Job) error {
	if d.market.Mechanism != market.HighestBid || !j.Active() {
		delete(d.spent, j.ID)
		return nil
	}
	since, known := d.spent[j.ID]
	switch cost, _ := b.Used(j, d.r.clock()); {
	case cost < j.Spec.Budget:
		delete(d.spent, j.ID)
	case !known:
		d.spent[j.ID] = d.now
	case d.waits(max(since, d.undecided.Add(mostRetry)), d.apart()):
		return fmt.Errorf("invariant 9: job %d spent its whole budget of %v already %v ago, but still runs", j.ID, j.Spec.Budget, d.now.Sub(since))
	}
	return nil
}

// waits reports whether a duty of the leader is overdue: whether more than `most` plus grace has passed since the time
// `since`. It returns false while an entry is being committed.
func (d *duties) waits(since messages.Time, most messages.Duration) bool {
	return d.r.applied == d.r.last() && d.now.Sub(max(since, d.began, d.refused)) > most+grace
}

// An answer can tell a node that a task must end. The node need not obey the first such answer: the leader may have
// sent it before the leader's decision, and a market may change its decision between two answers. The node must obey
// the second such answer.
const (
	mostUnheeded = 1
	soon         = 3 * second
)

// heeds checks that a node does what the book says, once it has an answer from the leader. Each answer says which tasks
// must end and which must be suspended. So a lost directive does no lasting harm.
func (a *agent) heeds(l *leader) error {
	n := l.book().Node(a.name)
	for _, at := range a.attempts() {
		t := a.tasks[at]
		if n == nil || at.Task.Job == 0 || l.gone() {
			return nil
		}
		h, claimed := n.Claims[at.Task]
		goes := claimed && h.Attempt == at.Number && !slices.Contains(n.Stop, at)
		if goes && slices.Contains(n.Halted(), at) == (t.since == 0) {
			t.unheeded = 0
			continue
		}
		if t.unheeded++; t.unheeded == 1 {
			t.defies = a.now
		}
		if t.unheeded > mostUnheeded && a.now.Sub(t.defies) > soon {
			return fmt.Errorf("invariant 9: %s got %d answers from the leader, but does not obey them for attempt %d of task %v", a.name, t.unheeded, at.Number, at.Task)
		}
	}
	return nil
}

// A leader has two duties for a node. It must take back the claims of a silent node. It must end the tasks that remain
// when the node's time to drain is over. undoneAt returns an error if the leader has not done one of them in time.
func (d *duties) undoneAt(b *bookState, n *book.Node) error {
	if heard := d.heard[n.Name]; n.Up && d.waits(heard, lease+lease/2) {
		return fmt.Errorf("invariant 9: node %s has been silent for %v, but its claims were not taken back", n.Name, d.now.Sub(heard))
	}
	at := d.emptied[n.Name]
	switch over := n.Up && n.Drain != 0 && n.Drain <= d.r.clock(); {
	case !over:
		delete(d.emptied, n.Name)
		return nil
	case at.book != n.Drain: // in the time of a clock that may have been behind at the time of the order
		d.emptied[n.Name] = gathered{n.Drain, d.now}
		return nil
	case !d.waits(at.since, d.apart()):
		return nil
	}
	for _, r := range refs(n.Claims) {
		if j := b.Job(r.Job); j != nil && j.Active() && !n.Claims[r].Leaving {
			return fmt.Errorf("invariant 9: the time to drain node %s is over, but task %v there was not told to end", n.Name, r)
		}
	}
	return nil
}
