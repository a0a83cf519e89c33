package state

import (
	"math/rand/v2"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/backoff"
)

// session is the agent's registration with the leader, the lease it holds under that,
// and the one request under way.
type session struct {
	rng *rand.Rand

	number  uint64
	phase   phase
	term    uint64 // the highest in which a leader spoke to this node
	lease   messages.Duration
	renewed messages.Time // the lease runs from here
	beat    messages.Time // when to send an exchange even without news
	joinAt  messages.Time // when to register

	request   *Request      // the current request, sent or waiting to be sent again; nil: none
	seq       uint64        // number of the last exchange
	firstSent messages.Time // when the request's content was first sent
	waiting   bool          // true: it waits for an answer; false: for retryAt
	retryAt   messages.Time // when to send the request again
	failures  int           // failed requests since the last answer
	trip      time.Duration // average time that an exchange takes
	ids       uint64
}

// phase is how far the session has come.
type phase uint8

const (
	joining phase = iota // registers, or is about to
	joined               // holds a lease
	leaving              // it lost its lease: it waits until its tasks have ended, then registers again
)

// repeats bounds the time between a request and its repetition.
var repeats = backoff.Backoff{First: 20 * time.Millisecond, Last: time.Second}

// Further bounds of that time, and of the wait for one answer.
const (
	// refusedBackoff is the least wait after an error that will hardly pass by
	// itself.
	refusedBackoff = time.Second
	registerWithin = 5 * time.Second
	leastWithin    = 100 * time.Millisecond
)

// begin begins to register under a new number.
func (s *session) begin() {
	for s.number = 0; s.number == 0; {
		s.number = s.rng.Uint64()
	}
	s.phase, s.seq, s.failures = joining, 0, 0
	s.drop()
}

// drop forgets the request under way; its answer will be ignored.
func (s *session) drop() { s.request, s.waiting, s.retryAt = nil, false, 0 }

// expects reports whether a request waits for its answer.
func (s *session) expects(id uint64) bool { return s.request != nil && s.waiting && s.request.ID == id }

// expiry returns when the lease ends.
func (s *session) expiry() messages.Time { return s.renewed.Add(s.lease) }

// renew starts the lease at the moment at which the answered request was first
// sent, and sets the next heartbeat to a random moment shortly before a quarter of the
// lease has passed.
func (s *session) renew() {
	s.failures, s.renewed = 0, s.firstSent
	s.beat = s.renewed.Add(messages.Duration(float64(s.lease) / 4 * (0.8 + 0.2*s.rng.Float64())))
}

// took notes how long the exchange took that is answered now, with its repetitions.
func (s *session) took(now messages.Time) {
	d := now.Sub(s.firstSent).Std()
	if s.trip == 0 {
		s.trip = d
	}
	s.trip += (d - s.trip) / 8
}

// registered begins the lease of a new session.
func (s *session) registered(r *messages.RegisterReply) {
	s.phase, s.lease, s.term = joined, r.Lease, max(s.term, r.Term)
	s.renew()
	s.drop()
}

// put makes a request the one under way.
func (s *session) put(now messages.Time, r *Request) { s.request, s.firstSent = r, now }

// exchange numbers an exchange, and bounds the wait for its answer.
func (s *session) exchange(e *messages.Exchange) *Request {
	s.seq++
	e.Session, e.Seq = s.number, s.seq
	return &Request{Within: s.within(), Exchange: e}
}

// within bounds the wait for one answer while the node holds a lease.
func (s *session) within() messages.Duration {
	return messages.Duration(max(leastWithin, min(s.lease.Std()/4, registerWithin)))
}

// transmit returns one more transmission of the request under way.
func (s *session) transmit(now messages.Time) *Request {
	s.ids++
	s.waiting = true
	again := *s.request
	again.ID = s.ids
	if again.Exchange != nil {
		e := *again.Exchange
		e.Sent = now
		again.Exchange = &e
	}
	s.request = &again
	return &again
}

// failed notes that the request under way got no answer or an error of a kind, and
// returns how long to wait before it is repeated.
func (s *session) failed(kind messages.Kind) messages.Duration {
	s.waiting = false
	s.failures++
	return s.backoff(kind)
}

// backoff returns how long to wait before a request is repeated: doubling with each failure, by
// chance half as long or half as long again.
func (s *session) backoff(k messages.Kind) messages.Duration {
	wait := repeats.Bound(s.failures)
	if !k.Retriable() {
		wait = refusedBackoff
	}
	if s.phase == joined {
		wait = min(wait, s.lease.Std()/8)
	}
	return messages.Duration(backoff.Spread(wait, s.rng.Float64()))
}
