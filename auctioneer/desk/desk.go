package desk

import (
	"math/rand/v2"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/federation"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/messages"
)

// Config is what a desk is told once.
type Config struct {
	Site    messages.Name
	Term    uint64
	Markets []messages.Market // of the configuration; those that were applied replace them
	// Lease is how long an agent may run tasks without an answered exchange.
	Lease messages.Duration
	// HoldFor is how long the bank keeps a hold without a word; 0: for ever.
	HoldFor messages.Duration
	// RemoteFor is how long the bank is asked to authorise a remote job for.
	RemoteFor messages.Duration
	// Idle is the longest wait between two steps, because the wall clock may be set
	// meanwhile; 0: the wall clock is never set.
	Idle messages.Duration
	// Estimator says that there is an estimator to learn from.
	Estimator bool
	Seed      uint64
	// Open opens a market; nil: [market.Open].
	Open func(messages.Market) (*market.Market, error)
}

// Book is how a desk reads the replicated state.
type Book interface {
	// Read calls f with the book, which f must not change or keep.
	Read(f func(*book.Book))
	// Changes calls f with the book and the changes since the last call.
	Changes(f func(*book.Book, book.Changes))
}

// Desk is what a leader knows beside the book.
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
	spare        book.Spare // for the jobs that are followed
}

// core is what the parts of a desk share: the time, the book, and a way to ask.
type core struct {
	Config
	book   Book
	now    Instant
	rng    *rand.Rand
	out    Actions
	last   uint64 // ID that was given out
	asked  map[uint64]func(result any, err error)
	inform bool              // the markets are not those of the configuration
	end    messages.Duration // when a job ended last
	stream bool              // the one before had ended shortly before
}

// New makes the desk of a leader. Faults are of markets that cannot be run: jobs
// there wait.
func New(c Config, b Book, now Instant) (d *Desk, faults []error) {
	d = &Desk{core: &core{Config: c, book: b, now: now, rng: rand.New(rand.NewPCG(c.Term, c.Seed)), asked: map[uint64]func(any, error){}}}
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
	d.lessons = lessons{core: d.core, trading: &d.trading}
	return d, faults
}

// reconfigure takes the markets of the book into force. Vectors follow the earlier ones, and each node is
// told its markets anew. The new markets know nothing yet of jobs and nodes.
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

// Step handles the inputs and returns the actions. If other markets were applied, they are in force after
// the step, which says [Reconfigured].
func (d *Desk) Step(now Instant, in ...Input) Actions {
	d.now, d.out = now, Actions{Next: -1}
	for _, i := range in {
		switch i := i.(type) {
		case Heard:
			d.nodes.hear(i.Node, i.At)
		case Done:
			if then := d.asked[i.ID]; then != nil {
				delete(d.asked, i.ID)
				then(i.Result, i.Err)
			}
		}
	}
	if now.Leap > 0 { // the time that jobs have had counts by the book, which does not know of the leap yet
		d.delays.leap()
		d.wakeIn(soon)
		return d.take()
	}
	effects, notices := d.follow()
	d.settlements.step()
	d.trading.step()
	d.nodes.step()
	d.payments.step(effects)
	d.observations.step(effects)
	d.notices.step(notices)
	d.holds.step()
	d.errands.step()
	d.delays.step()
	if d.Estimator {
		d.lessons.step()
	}
	if d.Idle > 0 {
		d.wakeIn(d.Idle)
	}
	return d.take()
}

// take is the actions of a step.
func (d *Desk) take() Actions {
	out := d.out
	d.out = Actions{}
	return out
}

// soon is when a proposal that was not committed, and is due by the wall clock, is made again.
const soon = messages.Duration(time.Second)

// propose has a command committed; then is called once it is known how that went.
func (c *core) propose(command *book.Command, then func(result any, err error)) {
	c.proposeWithin(0, command, then)
}

// proposeWithin is propose for a command that may wait for others so long.
func (c *core) proposeWithin(patience messages.Duration, command *book.Command, then func(result any, err error)) {
	c.out.Propose = append(c.out.Propose, Proposal{c.await(then), command, patience})
}

// ask has another actor asked, whose answer is read into what r.Reply points to.
func (c *core) ask(r Request, then func(reply any, err error)) {
	r.ID = c.await(then)
	c.out.Ask = append(c.out.Ask, r)
}

// ask has another actor asked for an answer of a type; with an error there may be none.
func ask[Reply any](c *core, r Request, then func(*Reply, error)) {
	r.Reply = new(Reply)
	c.ask(r, func(reply any, err error) {
		said, is := reply.(*Reply)
		if err == nil && !is {
			err = messages.Errorf(messages.Internal, "the answer is of another kind: %T", reply)
		}
		then(said, err)
	})
}

func (c *core) await(then func(any, error)) uint64 {
	c.last++
	c.asked[c.last] = then
	return c.last
}

func (c *core) tell(event any) { c.out.Events = append(c.out.Events, event) }

// wakeAt has the next step made at a wall time at the latest; 0: never.
func (c *core) wakeAt(at messages.Time) {
	if at != 0 {
		c.wakeIn(at.Sub(c.now.Wall))
	}
}

// wakeIn has the next step made after a while at the latest.
func (c *core) wakeIn(wait messages.Duration) {
	if wait = max(0, wait); c.out.Next < 0 || wait < c.out.Next {
		c.out.Next = wait
	}
}

// refused reports whether an error is a refusal that the same request would have again.
func refused(err error) bool {
	switch messages.KindOf(err) {
	case messages.Invalid, messages.TooLarge, messages.NotFound:
		return true
	}
	return false
}
