package state

import (
	"math/rand/v2"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/backoff"
)

// session is the agent's registration with the leader, its lease, and the one request under way.
type session struct {
	rng *rand.Rand

	number  uint64
	phase   phase
	term    uint64 // the highest term of a leader's message to this node
	lease   messages.Duration
	renewed messages.Time // when the lease began
	beat    messages.Time // when to send an exchange even if there is nothing to report
	joinAt  messages.Time // when to register

	request   *Request      // the current request, sent or waiting to be sent again; nil means none
	seq       uint64        // number of the last exchange
	firstSent messages.Time // when the present content of the request was first sent
	waiting   bool          // true: wait for an answer; false: wait until retryAt
	retryAt   messages.Time // when to send the request again
	failures  int           // failed requests since the last answer
	trip      time.Duration // average time from the first sending of an exchange to its answer
	ids       uint64
}

type phase uint8

const (
	joining phase = iota // the agent registers, or will soon
	joined               // the agent holds a lease
	leaving              // the lease is lost: the agent registers again when its tasks have ended
)

// repeats bounds the pause before a request is repeated.
var repeats = backoff.Backoff{First: 20 * time.Millisecond, Last: time.Second}

// Before a request is repeated, there is a pause. Its length is limited by the variable `repeats` and by
// refusedBackoff. registerWithin and leastWithin limit how long the agent waits for one answer.
const (
	// refusedBackoff is the shortest pause after an error that a repetition will probably return again.
	refusedBackoff = time.Second
	registerWithin = 5 * time.Second
	leastWithin    = 100 * time.Millisecond
)

// begin starts a registration under a new session number.
func (s *session) begin() {
	for s.number = 0; s.number == 0; {
		s.number = s.rng.Uint64()
	}
	s.phase, s.seq, s.failures = joining, 0, 0
	s.drop()
}

// drop removes the request under way. Its answer will be ignored.
func (s *session) drop() { s.request, s.waiting, s.retryAt = nil, false, 0 }

func (s *session) expects(id uint64) bool { return s.request != nil && s.waiting && s.request.ID == id }

func (s *session) expiry() messages.Time { return s.renewed.Add(s.lease) }

// renew starts the lease at the time when the answered request was first sent. It sets the next heartbeat to a random
// time shortly before a quarter of the lease.
func (s *session) renew() {
	s.failures, s.renewed = 0, s.firstSent
	s.beat = s.renewed.Add(messages.Duration(float64(s.lease) / 4 * (0.8 + 0.2*s.rng.Float64())))
}

// took updates the average time of an exchange by the exchange that was answered now. The time of an exchange begins
// when its request was first sent, so it includes repetitions.
func (s *session) took(now messages.Time) {
	d := now.Sub(s.firstSent).Std()
	if s.trip == 0 {
		s.trip = d
	}
	s.trip += (d - s.trip) / 8
}

func (s *session) registered(r *agent.RegisterReply) {
	s.phase, s.lease, s.term = joined, r.Lease, max(s.term, r.Term)
	s.renew()
	s.drop()
}

func (s *session) put(now messages.Time, r *Request) { s.request, s.firstSent = r, now }

// exchange gives an exchange the next number. It also sets how long to wait for the answer.
func (s *session) exchange(e *agent.Exchange) *Request {
	s.seq++
	e.Session, e.Seq = s.number, s.seq
	return &Request{Within: s.within(), Exchange: e}
}

// within returns how long to wait for an answer before the request is sent again: a quarter of the node's lease, within
// limits.
func (s *session) within() messages.Duration {
	return messages.Duration(max(leastWithin, min(s.lease.Std()/4, registerWithin)))
}

// transmit returns a copy of the request under way, with a new ID. The caller sends this copy.
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

// failed records that the request under way got no answer, or an error of the given kind. It returns the pause before
// the request is repeated.
func (s *session) failed(kind messages.Kind) messages.Duration {
	s.waiting = false
	s.failures++
	return s.backoff(kind)
}

// backoff returns the pause before a request is repeated. After an error that is not retriable, the pause is
// refusedBackoff. After other errors, it doubles with each failure. While the node holds a lease, the pause is at most
// an eighth of the lease. The result is multiplied by a random factor between 0.5 and 1.5.
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
