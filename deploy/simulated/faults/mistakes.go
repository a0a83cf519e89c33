package faults

import (
	"fmt"

	"github.com/candor-grid/candor/auctioneer/federation"
	"github.com/candor-grid/candor/messages"
)

// mistakes sends a leader what no agent and no site may say. All of it has to be refused.
func (l *leader) mistakes() error {
	for _, m := range []struct {
		what string
		err  error
	}{
		{"a node without a name", l.mistaken("no name", func(*messages.RegisterRequest) {})},
		{"a node without a session", l.mistaken("n0", func(q *messages.RegisterRequest) { q.Session = 0 })},
		{"a node without slots", l.mistaken("n0", func(q *messages.RegisterRequest) { q.Slots = nil })},
		{"a class named twice", l.mistaken("n0", func(q *messages.RegisterRequest) { q.Slots = append(q.Slots, q.Slots...) })},
		{"an ability that is no name", l.mistaken("n0", func(q *messages.RegisterRequest) { q.Abilities = []messages.Name{"no name"} })},
		{"fewer suspended tasks than 0", l.mistaken("n0", func(q *messages.RegisterRequest) { q.MostSuspended = -1 })},
		{"a market that is not there", l.unknownMarket()},
		{"an authorisation of another", l.stranger(messages.Authorisation{Issuer: south, Peer: l.name}, 0)},
		{"an authorisation for another", l.stranger(messages.Authorisation{Issuer: operator, Peer: south}, 0)},
		{"an authorisation that is over", l.stranger(messages.Authorisation{Issuer: operator, Peer: l.name, Issued: l.r.clock(), Interval: 1}, 0)},
		{"a job that ends too late", l.stranger(messages.Authorisation{Issuer: operator, Peer: l.name, Issued: l.r.clock(), Interval: roamFor}, 2*roamFor)},
	} {
		if kind := messages.KindOf(m.err); m.err == nil || kind == messages.Internal {
			return fmt.Errorf("invariant 9: %s is to be refused, and the answer is %v", m.what, m.err)
		}
	}
	return l.anotherJob()
}

// mistaken registers a node, but for a mistake.
func (l *leader) mistaken(node messages.Name, mistake func(*messages.RegisterRequest)) error {
	q := messages.RegisterRequest{Session: 1, Slots: []messages.ClassSlots{{Class: class, Slots: slots}}}
	mistake(&q)
	_, err := l.desk.Register(node, &q)
	return err
}

func (l *leader) unknownMarket() error {
	_, err := l.desk.Vector("nowhere")
	return err
}

// stranger submits a job of some length, of the site called as the operator is.
func (l *leader) stranger(a messages.Authorisation, length messages.Duration) error {
	r := &messages.PeerSubmitRequest{Job: 1, Authorisation: messages.SignedAuthorisation{Authorisation: a}}
	arrival, err := federation.Arrive(l.name, operator, r)
	if err != nil {
		return err
	}
	return arrival.Timely(l.r.clock(), &l.site.market, &messages.JobSpec{Length: length})
}

// anotherJob submits other jobs under the numbers of those that visit the site.
func (l *leader) anotherJob() error {
	for _, j := range jobs(l.book()) {
		if j.Visit == nil {
			continue
		}
		_, err := federation.Known(l.book(), j.Visit.Home, &messages.PeerSubmitRequest{Job: j.Visit.Job, Account: "eve"}, j.Digest)
		if messages.KindOf(err) != messages.Conflict {
			return fmt.Errorf("invariant 9: job %d is taken for that of another account: %v", j.ID, err)
		}
	}
	return nil
}
