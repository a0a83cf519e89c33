package auctioneer

import (
	"errors"
	"time"
)

// A leader that the bank does not answer takes no job and settles none. One broken link between
// two hosts is enough for that, while a third host sees both. So each replica asks the bank
// again and again, and a leader without an answer hands its lead to a replica that is answered
// (see [mailbox.Machine]).

const (
	askBankEvery  = 500 * time.Millisecond
	askBankWithin = time.Second
	// bankAway is how long a leader goes without an answer before it hands over. Until then
	// the other replicas have missed the bank too if it is away: nobody hands over for that.
	bankAway = 2 * time.Second
	// bankSteady is how long the bank must have answered each request of a replica that takes
	// the lead over, so that the lead does not come and go.
	bankSteady = 3 * time.Second
)

// bankSight is whether the bank answers a replica.
type bankSight struct {
	failing time.Time // when the first request after the last answer was sent; zero: all were answered
	failed  time.Time // when the latest request failed; zero: none did
}

// after returns the state after one more request.
func (s bankSight) after(sent, now time.Time, err error) bankSight {
	if err == nil {
		return bankSight{failed: s.failed}
	}
	if s.failing.IsZero() {
		s.failing = sent
	}
	s.failed = now
	return s
}

var errBankAway = errors.New("the bank does not answer it, or did not lately")

// weak returns an error if a leader should give up the lead, or if a follower should not take it.
func (s bankSight) weak(now time.Time, leads bool) error {
	if leads && !s.failing.IsZero() && now.Sub(s.failing) >= bankAway || !leads && !s.failed.IsZero() && now.Sub(s.failed) < bankSteady {
		return errBankAway
	}
	return nil
}
