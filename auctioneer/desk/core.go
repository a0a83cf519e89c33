package desk

import (
	"math/rand/v2"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/backoff"
)

// Config is fixed for the life of a desk.
type Config struct {
	Site    messages.Name
	Term    uint64
	Markets []messages.Market // markets of the configuration; applied markets replace them
	// Lease is how long an agent may run tasks without an answered exchange.
	Lease messages.Duration
	// HoldFor is how long the bank keeps a hold without a word; 0: for ever.
	HoldFor messages.Duration
	// RemoteFor is how long the bank is asked to authorise a remote job for.
	RemoteFor messages.Duration
	// Idle is the longest wait between two steps, because the wall clock may be set in between; 0:
	// the wall clock is never set.
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

// core has what all parts of a desk use: the time, the book, and the list of requests.
type core struct {
	Config
	book   Book
	now    Instant
	rng    *rand.Rand
	out    Actions
	last   uint64 // ID that was given out
	asked  map[uint64]func(result any, err error)
	inform bool              // the markets differ from the configuration
	end    messages.Duration // when a job last ended
	stream bool              // the one before had ended shortly before
}

// propose commits a command; then is called with its outcome when that is known.
func (c *core) propose(command *book.Command, then func(result any, err error)) {
	c.proposeWithin(0, command, then)
}

// proposeWithin does what propose does, for a command that may wait up to patience for other commands.
func (c *core) proposeWithin(patience messages.Duration, command *book.Command, then func(result any, err error)) {
	c.out.Propose = append(c.out.Propose, Proposal{c.await(then), command, patience})
}

// ask asks another actor. The answer is read into the value that r.Reply points to.
func (c *core) ask(r Request, then func(reply any, err error)) {
	r.ID = c.await(then)
	c.out.Ask = append(c.out.Ask, r)
}

// ask asks another actor for an answer of a type; with an error there may be no answer.
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

// wakeAt plans the next step at a wall time or earlier; 0: never.
func (c *core) wakeAt(at messages.Time) {
	if at != 0 {
		c.wakeIn(at.Sub(c.now.Wall))
	}
}

// wakeIn plans the next step after a while or earlier.
func (c *core) wakeIn(wait messages.Duration) {
	if wait = max(0, wait); c.out.Next < 0 || wait < c.out.Next {
		c.out.Next = wait
	}
}

// soon is when a proposal that was not committed, and is due by the wall clock, is made again.
const soon = messages.Duration(time.Second)

// refused reports whether an error is a refusal that the same request would have again.
func refused(err error) bool {
	switch messages.KindOf(err) {
	case messages.Invalid, messages.TooLarge, messages.NotFound:
		return true
	}
	return false
}

// retries spaces repeated requests to the bank, the log and other actors.
var retries = backoff.Backoff{First: 50e6, Last: 5e9}

// retryAt returns when to try again after a number of failures.
func (c *core) retryAt(fails int) messages.Duration {
	return c.now.Mono + messages.Duration(retries.Wait(fails, c.rng.Float64()))
}

// ended notes that a job has ended, now.
func (c *core) ended() {
	if c.end != c.now.Mono { // otherwise another job ended in the same step
		c.stream, c.end = c.end != 0 && c.now.Mono-c.end <= SharedWithin, c.now.Mono
	}
}

// patience returns how long the command that follows the end of a job may wait for other commands.
func (c *core) patience() messages.Duration {
	if c.stream {
		return SharedWithin
	}
	return 0
}

// SharedWithin is the longest time that a command waits for others to share a log entry with: each
// entry costs each replica a write to its disk. Commands that follow the end of a job wait only if
// jobs end one soon after another, because the job's user waits for them.
const SharedWithin = messages.Duration(10e6)
