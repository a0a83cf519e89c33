package faults

import (
	"fmt"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/federation"
	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
)

var mistakes = []struct {
	what    string
	node    messages.Name
	mistake func(*agentmsg.RegisterRequest)
}{
	{"a node without a name", "no name", func(*agentmsg.RegisterRequest) {}},
	{"a node without a session", "n0", func(q *agentmsg.RegisterRequest) { q.Session = 0 }},
	{"a node without slots", "n0", func(q *agentmsg.RegisterRequest) { q.Slots = nil }},
	{"a class named twice", "n0", func(q *agentmsg.RegisterRequest) { q.Slots = append(q.Slots, q.Slots...) }},
	{"an ability that is no name", "n0", func(q *agentmsg.RegisterRequest) { q.Abilities = []messages.Name{"no name"} }},
	{"fewer suspended tasks than 0", "n0", func(q *agentmsg.RegisterRequest) { q.MostSuspended = -1 }},
}

// refuses sends a leader invalid messages, as agents or other sites could send them. It returns an error if the leader
// accepts one of these messages.
func (l *leader) refuses() error {
	for _, m := range mistakes {
		q := agentmsg.RegisterRequest{Session: 1, Slots: []job.ClassSlots{{Class: class, Slots: slots}}}
		m.mistake(&q)
		if _, err := l.desk.Register(m.node, &q); messages.KindOf(err) != messages.Invalid {
			return fmt.Errorf("invariant 9: %s must be refused, but the answer is %v", m.what, err)
		}
	}
	if _, err := l.desk.Vector("nowhere"); messages.KindOf(err) != messages.NotFound {
		return fmt.Errorf("invariant 9: a request names a market that does not exist, but the answer is %v", err)
	}
	now := l.r.clock()
	for _, a := range []clearing.Authorisation{{Issuer: south, Peer: l.name}, {Issuer: operator, Peer: south},
		{Issuer: operator, Peer: l.name, Issued: now, Interval: 1}, {Issuer: operator, Peer: l.name, Issued: now, Interval: roamFor}} {
		if err := l.site.vouched(a, now, 2*roamFor); err == nil {
			return fmt.Errorf("invariant 9: a job with a length of %v is accepted for a wrong authorisation: %+v", 2*roamFor, a)
		}
	}
	return anotherJob(l.book())
}

// vouched checks whether the times of an authorisation suit a visiting job of the given length. federation.Arrive makes
// this check, and needs the name of a home site. The name does not change the result, so vouched passes the operator's
// name.
func (s *site) vouched(a clearing.Authorisation, now messages.Time, length messages.Duration) error {
	r := &clearing.PeerSubmitRequest{Job: 1, Authorisation: clearing.SignedAuthorisation{Authorisation: a}}
	arrival, err := federation.Arrive(s.name, operator, r)
	if err != nil {
		return err
	}
	return arrival.Timely(now, &s.market, &job.JobSpec{Length: length})
}

// anotherJob takes the number of each visiting job, and asks to submit a different job with the same number. Each such
// request must be refused.
func anotherJob(b *book.Book) error {
	for _, j := range jobs(b) {
		if j.Visit == nil {
			continue
		}
		_, err := federation.Known(b, j.Visit.Home, &clearing.PeerSubmitRequest{Job: j.Visit.Job, Account: "eve"}, j.Digest)
		if messages.KindOf(err) != messages.Conflict {
			return fmt.Errorf("invariant 9: a request of another account with the number of job %d is not refused: %v", j.ID, err)
		}
	}
	return nil
}
