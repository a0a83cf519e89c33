package book

import (
	"maps"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Markets go from one auctioneer of a site to another with their jobs. The book of the one
// that gives them up, the source, and the book of the one that gets them, the target, each
// know how far that is:
//
//  1. [Apply] with Move: the source gives the markets' jobs no tasks any more. Tasks that
//     run go on until a time, and jobs are still submitted, changed and cancelled.
//  2. [TakeOver] without items: the target expects the markets.
//  3. [Seal]: no task of the markets is claimed, and nothing is asked of the bank for their
//     jobs. Nothing changes about them any more, so that the items to be taken over are the
//     same however often, and by whichever leader, they are listed.
//  4. [TakeOver] with items: the target takes each one once, in their order. Jobs keep their
//     numbers. The last command makes the markets the target's, in which they begin.
//  5. [Drop], and [Apply] with Moved: the source forgets the jobs, and the markets.
//
// Until the fifth step the source has all, and from the fourth on the target. A request that
// would change a job between is to be sent again.

// Moving is a move of markets from this auctioneer to another one.
type Moving struct {
	ID      uint64 // of the moves of this auctioneer, rising
	To      messages.Name
	Markets []messages.Market
	Until   messages.Time // when tasks that still run are ended, to be run again
	Sealed  bool
}

// Seal is the third step of a move. Result: nil.
type Seal struct{ Move uint64 }

// Withdraw ends the tasks of the markets that move, to be run again. Result: int, how many.
type Withdraw struct{ Move uint64 }

// transit is where markets go to and come from.
type transit struct {
	moving   *Moving
	last     uint64 // move
	arrivals []Arrival
	// endedAway are jobs that ended at another auctioneer, in the order in which they came.
	endedAway []Past
}

// Moving is the move of markets from here; nil: there is none. It must not be changed.
func (m *transit) Moving() *Moving { return m.moving }

// Moves is the move of a market from here; nil: it stays.
func (m *transit) Moves(market messages.Name) *Moving {
	if m.moving != nil && m.moving.Has(market) {
		return m.moving
	}
	return nil
}

// Has says whether a market moves.
func (m *Moving) Has(market messages.Name) bool {
	return slices.ContainsFunc(m.Markets, func(c messages.Market) bool { return c.Name == market })
}

// between refuses to change a job that is neither quite here nor quite elsewhere.
func (b *Book) between(ids ...messages.JobID) error {
	if b.moving == nil && len(b.arrivals) == 0 {
		return nil
	}
	for _, id := range ids {
		if j := b.Job(id); j != nil && j.Active() {
			if err := b.goesOver(j.Spec.Market); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *Book) goesOver(market messages.Name) error {
	if m := b.Moves(market); m != nil && m.Sealed || b.arriving(market) != nil {
		return messages.Errorf(messages.Unavailable, "market %s goes from one auctioneer to another at this moment; ask again", market)
	}
	return nil
}

// changes are the jobs that a command is to change, as their owner or an operator wants.
func (c *Command) changes() []messages.JobID {
	switch {
	case c.Cancel != nil:
		return []messages.JobID{c.Cancel.Job}
	case c.CancelJobs != nil:
		return c.CancelJobs.Jobs
	case c.CancelTasks != nil:
		return []messages.JobID{c.CancelTasks.Job}
	case c.Park != nil:
		return []messages.JobID{c.Park.Job}
	case c.Change != nil:
		return []messages.JobID{c.Change.Job}
	case c.Requeue != nil:
		return []messages.JobID{c.Requeue.Job}
	}
	return nil
}

// admitted refuses a submission to a market that goes over, and one that would have jobs
// of two auctioneers wait for one another.
func (b *Book) admitted(c *Submit) error {
	if b.moving == nil && len(b.arrivals) == 0 {
		return nil
	}
	if err := b.goesOver(c.Spec.Market); err != nil {
		return err
	}
	m := b.moving
	if m == nil {
		return nil
	}
	if c.Visit != nil && m.Has(c.Spec.Market) {
		return messages.Errorf(messages.Conflict, "market %s goes to another auctioneer, which has no jobs of other sites", c.Spec.Market)
	}
	for _, id := range slices.Concat(c.Spec.AfterJobs, c.Spec.AfterOK) {
		if j := b.Job(id); j != nil && j.Active() && m.Has(j.Spec.Market) != m.Has(c.Spec.Market) {
			return messages.Errorf(messages.Conflict, "after_jobs: job %d would be of another auctioneer than this one, as a market goes to auctioneer %s; a job waits only for jobs of its own auctioneer", id, m.To)
		}
	}
	return nil
}

// Movable refuses a move that would leave something behind.
func (b *Book) Movable(m *Moving) error {
	if b.moving != nil {
		return messages.Errorf(messages.Conflict, "market %s is on its way to auctioneer %s; one move at a time: candor markets shows how far it is", b.moving.Markets[0].Name, b.moving.To)
	}
	var stays *Job                        // the first that cannot go
	b.byID.all(false, func(j *Job) bool { // one that is packed has neither an order nor another site
		if j.Active() && m.Has(j.Spec.Market) && (j.Visit != nil || j.Order != nil || j.Contract != nil) && (stays == nil || j.ID < stays.ID) {
			stays = j
		}
		return true
	})
	switch {
	case stays == nil:
	case stays.Visit != nil:
		return messages.Errorf(messages.Conflict, "market %s has job %d of site %s, which only the first auctioneer can have; close the market and wait for the end of such jobs", stays.Spec.Market, stays.ID, stays.Visit.Visit.Home)
	default:
		return messages.Errorf(messages.Conflict, "job %d has reserved slots in market %s; close the market and wait for the end of such jobs", stays.ID, stays.Spec.Market)
	}
	for _, id := range slices.Sorted(maps.Keys(b.waiters)) {
		for _, waiter := range b.waiters[id] {
			j, o := b.Job(waiter), b.Job(id)
			if j != nil && j.Active() && o != nil && m.Has(j.Spec.Market) != m.Has(o.Spec.Market) {
				return messages.Errorf(messages.Conflict, "job %d of market %s waits for job %d of market %s, and would be of another auctioneer; let the two markets go together, or wait for the end of job %d",
					j.ID, j.Spec.Market, id, o.Spec.Market, id)
			}
		}
	}
	return nil
}

// transfer does what markets that are applied have to do with a move.
func (b *Book) transfer(c *Apply) error {
	here := func(a Arrival) bool {
		return !a.Done && slices.ContainsFunc(c.Markets, func(m messages.Market) bool { return slices.Contains(a.Markets, m.Name) })
	}
	for _, a := range b.arrivals {
		if here(a) && a.Taken > 0 {
			return messages.Errorf(messages.Conflict, "market %s is on its way here from auctioneer %s", a.Markets[0], a.From)
		}
	}
	if slices.ContainsFunc(b.arrivals, here) { // that were given up before anything came
		if b.arrivals = slices.DeleteFunc(slices.Clone(b.arrivals), here); len(b.arrivals) == 0 {
			b.arrivals = nil // as in an image
		}
	}
	switch {
	case c.Moved != 0:
		return b.handedOver(c.Moved)
	case c.Stay:
		return b.stay()
	case c.Move != nil:
		return b.beginMove(c.Move)
	}
	return nil
}

// beginMove begins a move.
func (b *Book) beginMove(m *Moving) error {
	if err := b.Movable(m); err != nil {
		return err
	}
	b.transit.last++
	move := *m
	move.ID = b.transit.last
	b.moving = &move
	for _, n := range b.inOrder {
		for _, r := range n.claimed() { // what waits for others on its slot, or for a slot, would wait for ever
			if h := n.Claims[r]; b.moved(r.Job) && (h.Halt == Suspended || h.Halt == Gathers) {
				b.requeue(messages.Attempt{Task: r, Number: h.Attempt}, ofSite, messages.EndPreempted)
			}
		}
	}
	return nil
}

// moved says whether a job is of a market that moves.
func (b *Book) moved(id messages.JobID) bool {
	j := b.Job(id)
	return j != nil && b.moving.Has(j.Spec.Market)
}

// stay gives a move up that has not been sealed.
func (b *Book) stay() error {
	if b.moving != nil && b.moving.Sealed {
		return messages.Errorf(messages.Unavailable, "market %s is being handed over to auctioneer %s; ask again when it is there", b.moving.Markets[0].Name, b.moving.To)
	}
	b.moving = nil
	return nil
}

// withdraw ends what still runs when its time is over.
func (b *Book) withdraw(w *Withdraw) (n int) {
	if b.moving == nil || b.moving.ID != w.Move {
		return 0
	}
	for _, node := range b.inOrder {
		for _, r := range node.claimed() {
			if h := node.Claims[r]; b.moved(r.Job) && !h.Leaving {
				b.requeue(messages.Attempt{Task: r, Number: h.Attempt}, ofSite, messages.EndEvicted)
				n++
			}
		}
	}
	return n
}

// Unready says what a move waits for: how many tasks of its markets are claimed, and how
// many of their jobs wait for the bank.
func (b *Book) Unready() (tasks, jobs int) {
	speaks := map[messages.JobID]bool{}
	note := func(id messages.JobID) {
		if j := b.Job(id); j != nil && b.moved(id) && (j.Active() || j.State == messages.Settling) {
			speaks[id] = true
		}
	}
	for _, n := range b.inOrder {
		for r := range n.Claims {
			if b.moved(r.Job) {
				tasks++
			}
		}
	}
	for i := range b.waiting {
		note(b.waiting[i].Job)
		for _, l := range b.waiting[i].Legs {
			note(l.From)
			note(l.To)
		}
	}
	b.byID.all(false, func(j *Job) bool {
		if j.State == messages.Settling || j.Raise.Pending() {
			note(j.ID)
		}
		return true
	})
	return tasks, len(speaks)
}

// seal has nothing change any more about what moves.
func (b *Book) seal(s *Seal) error {
	switch {
	case b.moving == nil || b.moving.ID != s.Move:
		return messages.Errorf(messages.NotFound, "there is no move %d", s.Move)
	case b.moving.Sealed:
		return nil
	}
	if tasks, jobs := b.Unready(); tasks+jobs > 0 {
		return messages.Errorf(messages.Unavailable, "%d tasks and %d jobs have not come to rest", tasks, jobs)
	}
	sealed := *b.moving
	sealed.Sealed = true
	b.moving = &sealed
	for i := range sealed.Markets {
		b.meters.catchUpAll(sealed.Markets[i].Name)
	}
	return nil
}

// Names are the names of the markets.
func (m *Moving) Names() []messages.Name {
	out := make([]messages.Name, len(m.Markets))
	for i := range m.Markets {
		out[i] = m.Markets[i].Name
	}
	return out
}

// halts says whether no tasks of a market are claimed, as it is on its way.
func (m *transit) halts(market messages.Name) bool {
	return m.Moves(market) != nil || m.expects(market)
}

// sealed says whether what is to be handed over must stay as it is.
func (m *transit) sealed() bool { return m.moving != nil && m.moving.Sealed }

// Drop has the source of a move forget jobs, once the target has all. Result: nil.
type Drop struct {
	Move uint64
	Jobs []messages.JobID
}

// drop forgets jobs that the target has.
func (b *Book) drop(d *Drop) error {
	if b.moving == nil || b.moving.ID != d.Move || !b.moving.Sealed {
		return messages.Errorf(messages.NotFound, "there is no move %d", d.Move)
	}
	gone, awaited, accounts := map[messages.JobID]bool{}, map[messages.JobID]bool{}, map[messages.Name]bool{"": true}
	for _, id := range d.Jobs {
		j := b.Job(id)
		if j == nil || !j.Active() || !b.moving.Has(j.Spec.Market) {
			continue
		}
		gone[id], accounts[j.Account] = true, true
		b.jobs.live(j.Spec.Market, -1)
		b.index.count(j.Account, -1)
		b.index.drop(j.Account, j.Key)
		for _, id := range slices.Concat(j.Spec.AfterJobs, j.Spec.AfterOK) {
			awaited[id] = true
		}
		b.meters.forget(j)
		b.byID.remove(id)
		b.touch(id)
	}
	for name := range accounts {
		b.index.omit(name, gone)
	}
	b.unwait(awaited, gone)
	b.delayed = slices.DeleteFunc(b.delayed, func(d delayed) bool { return gone[d.job] })
	return nil
}

// handedOver ends a move of which no job is here any more.
func (b *Book) handedOver(id uint64) error {
	if b.moving == nil || b.moving.ID != id || !b.moving.Sealed {
		return messages.Errorf(messages.NotFound, "there is no move %d", id)
	}
	for i := range b.moving.Markets {
		if n := b.Live(b.moving.Markets[i].Name); n > 0 {
			return messages.Errorf(messages.Conflict, "%d jobs of market %s are here still", n, b.moving.Markets[i].Name)
		}
	}
	b.quoted = slices.DeleteFunc(b.quoted, func(q *Quote) bool { return b.moving.Has(q.Market) })
	b.moving = nil
	return nil
}
