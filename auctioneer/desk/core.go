package desk

import (
	"math/rand/v2"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/backoff"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

// Config is the configuration of a desk. It never changes.
type Config struct {
	Site    messages.Name
	Term    uint64
	Markets []marketmsg.Market // markets of the configuration, until other markets are applied
	// Lease is how long an agent may run tasks without an answered exchange.
	Lease messages.Duration
	// HoldFor is how long the bank keeps a job's hold (reserved credits) that is not extended. 0 means for ever.
	HoldFor messages.Duration
	// RemoteFor is how long a remote job is authorised by the bank.
	RemoteFor messages.Duration
	// Idle is the longest time between two steps of the desk. The desk waits no longer, because an operator may set the
	// wall clock during the wait. 0 means no limit, for a clock that is never set.
	Idle      messages.Duration
	Estimator bool
	Seed      uint64
	// Level is the level that the replicas agreed on; see [messages.Level].
	Level int
	// Open creates a market. The default is [market.Open].
	Open func(marketmsg.Market) (*market.Market, error)
}

// Book gives a desk access to the replicated state.
type Book interface {
	// Read calls f with the book, which f must not change or keep.
	Read(f func(*book.Book))
	// Changes calls f with the book and the changes since the last call.
	Changes(f func(*book.Book, book.Changes))
}

// core has what all parts of a desk share: the time, the book, and the list of requests.
type core struct {
	Config
	book   Book
	now    Instant
	rng    *rand.Rand
	out    Actions
	last   uint64 // the last ID that was given to a request or a proposal
	asked  map[uint64]func(result any, err error)
	inform bool              // the markets differ from the configuration
	end    messages.Duration // when a job last ended
	stream bool              // the last two jobs ended shortly after one another
}

// propose asks for the commit of a command, and later calls `then` with the outcome.
func (c *core) propose(command *book.Command, then func(result any, err error)) {
	c.proposeWithin(0, command, then)
}

// proposeWithin proposes a command, as the method propose does. It lets the command wait, at most for the time
// `patience`, so that further commands can be written in the same log entry.
func (c *core) proposeWithin(patience messages.Duration, command *book.Command, then func(result any, err error)) {
	c.out.Propose = append(c.out.Propose, Proposal{c.await(then), command, patience})
}

// ask sends a request to another actor. The answer is decoded into the value that r.Reply points to.
func (c *core) ask(r Request, then func(reply any, err error)) {
	r.ID = c.await(then)
	c.out.Ask = append(c.out.Ask, r)
}

// ask sends a request whose answer has the type Reply. When the answer comes, ask calls `then`. If `then` gets an
// error, its first argument may be nil.
func ask[Reply any](c *core, r Request, then func(*Reply, error)) {
	r.Reply = new(Reply)
	c.ask(r, func(reply any, err error) {
		said, is := reply.(*Reply)
		if err == nil && !is {
			err = messages.Errorf(messages.Internal, "the answer has an unexpected type: %T", reply)
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

// wakeAt asks for a step at the latest when the wall clock shows the given time. 0 asks for none.
func (c *core) wakeAt(at messages.Time) {
	if at != 0 {
		c.wakeIn(at.Sub(c.now.Wall))
	}
}

// wakeIn asks the caller of the desk to make the next step after the given time at the latest.
func (c *core) wakeIn(wait messages.Duration) {
	if wait = max(0, wait); c.out.Next < 0 || wait < c.out.Next {
		c.out.Next = wait
	}
}

// Some proposals become due by the wall clock. The constant `soon` is the pause before such a proposal is repeated
// after a failure.
const soon = messages.Duration(time.Second)

// refused reports whether an error is a refusal that the same request would get again.
func refused(err error) bool {
	switch messages.KindOf(err) {
	case messages.Invalid, messages.TooLarge, messages.NotFound:
		return true
	}
	return false
}

// retries are the waiting times between repeated requests to the bank, the log and other actors.
var retries = backoff.Backoff{First: 50e6, Last: 5e9}

// retryAt returns the time of the next try, after a number of failures.
func (c *core) retryAt(fails int) messages.Duration {
	return c.now.Mono + messages.Duration(retries.Wait(fails, c.rng.Float64()))
}

func (c *core) ended() {
	if c.end != c.now.Mono { // compare only the ends of jobs in different steps
		c.stream, c.end = c.end != 0 && c.now.Mono-c.end <= SharedWithin, c.now.Mono
	}
}

// patience returns how long a command that records the end of a job may wait for other commands. All commands that
// waited are written as one log entry.
func (c *core) patience() messages.Duration {
	if c.stream {
		return SharedWithin
	}
	return 0
}

// SharedWithin is the longest time that the command about an ended job waits for other commands, so that they share a
// log entry. Each entry costs each replica a write to its disk. Users wait for the command. So the command waits only
// if another job ended shortly before, within the same time.
const SharedWithin = messages.Duration(10e6)
