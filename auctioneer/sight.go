package auctioneer

import (
	"errors"
	"time"
)

// If the bank does not answer a leader, the leader can accept no job and settle no job. This happens if only the link
// between their two hosts is broken, even if a third host reaches both. So each replica sends requests to the bank at
// intervals. A leader that gets no answer hands leadership over to a replica that gets answers (see [mailbox.Machine]).

const (
	askBankEvery  = 500 * time.Millisecond
	askBankWithin = time.Second
	// If the bank does not answer a leader for this time, the leader hands its leadership over to another replica. If
	// the bank itself is down, the other replicas notice it too, and no replica hands leadership over.
	bankAway = 2 * time.Second
	// bankSteady is how long the bank must have answered a replica before the replica takes the lead. The delay
	// prevents the lead from changing again and again.
	bankSteady = 3 * time.Second
)

// bankSight tells whether the bank answers a replica.
type bankSight struct {
	failing time.Time // when the first request after the last answer was sent; zero if the last request was answered
	failed  time.Time // when the latest request failed; zero if none failed
}

// The method `after` returns what a replica knows about the bank after one more request. The request was sent at the
// time `sent`. It was answered, or given up, at the time `now`.
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

var errBankAway = errors.New("the bank does not answer this replica, or did not answer until recently")

// weak returns an error if the bank has not answered this replica for too long. Then a leader should give up its
// leadership, and a follower should not become the leader.
func (s bankSight) weak(now time.Time, leads bool) error {
	if leads && !s.failing.IsZero() && now.Sub(s.failing) >= bankAway || !leads && !s.failed.IsZero() && now.Sub(s.failed) < bankSteady {
		return errBankAway
	}
	return nil
}
