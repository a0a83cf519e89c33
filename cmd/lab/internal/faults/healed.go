package faults

import (
	"fmt"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/bank/clearing"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
)

// patience is how long a site without faults may take to end and charge its jobs. It is also how long all sites may
// take to agree after the faults. If their clocks differ, they may take longer by this difference.
const patience = 100 * second

// lastCycle is the number of the settlement cycle that is closed after all faults.
const lastCycle = 2

// look checks once in a simulated second whether the sites and their leaders have done their duties in time (invariants
// 5 and 9).
func (w *World) look() {
	for _, s := range w.sites {
		w.check(s, s.goesOn())
		w.check(s, s.secured())
		for _, r := range s.books.replicas {
			if r.serving() {
				l := r.shell.(*leader)
				w.check(s, l.duties.undone())
				w.check(s, l.refuses())
			}
		}
	}
}

// goesOn checks a site that has had no faults for some time: 100 s, plus the difference of the clocks. If a job was
// submitted before this time began, it must have ended and been charged, even if other sites cannot be reached.
func (s *site) goesOn() error {
	patience := patience + s.apart()
	if s.troubles > 0 || s.now.Sub(s.wellSince) < patience {
		return nil
	}
	b := s.books.reference.(*bookState)
	for _, j := range jobs(b.Book) {
		since := s.now.Sub(s.seen.entered[j.ID])
		if since < patience {
			continue
		}
		if !j.State.Final() {
			return fmt.Errorf("invariant 5: the site has no faults, but job %d is still %v after %v", j.ID, j.State, since)
		}
		if taken := s.tally.taken(j); taken != j.Charged {
			return fmt.Errorf("invariant 5: job %d paid %v according to the job book, but %v according to the bank", j.ID, j.Charged, taken)
		}
	}
	return nil
}

// When this function is called, the sites have had no faults for some time. It returns an error if they have not
// recovered completely.
func (w *World) healed() error {
	var positions []clearingmsg.Position
	for _, s := range w.sites {
		if err := s.ended(); err != nil {
			return fmt.Errorf("%w, at %s", err, s.name)
		}
		if err := s.whole(); err != nil {
			return err
		}
		for _, o := range w.sites {
			if err := s.agrees(o); err != nil {
				return err
			}
		}
		p, refused := s.clearing().Position(lastCycle)
		if refused != nil {
			return fmt.Errorf("invariant 5: %s has not closed cycle %d", s.name, lastCycle)
		}
		positions = append(positions, *honest(p))
	}
	if r := clearing.Net(lastCycle, positions); !r.Balanced {
		return fmt.Errorf("invariant 5: cycle %d does not net to zero: missing %v, faults %v", lastCycle, r.Missing, r.Faults)
	}
	return nil
}

// honest returns a position without the payments between its site and the lying site. The net amount of the position is
// changed accordingly.
func honest(p *clearingmsg.Position) *clearingmsg.Position {
	p.Legs = slices.DeleteFunc(p.Legs, func(l clearingmsg.Leg) bool {
		if l.Peer == south {
			p.Net -= l.Received - l.Paid
		}
		return l.Peer == south
	})
	return p
}

// ended returns an error in three cases: a user's job has not ended, a user's job got lost, or the charge of a job
// differs between the book and the bank.
func (s *site) ended() error {
	b := s.books.reference.(*bookState)
	for _, u := range s.users {
		if u.over {
			continue
		}
		if u.job == 0 {
			return fmt.Errorf("invariant 5: job %s/%s was never answered", u.name, u.key)
		}
		if u.peer != nil {
			if err := s.returned(u); err != nil {
				return err
			}
			continue
		}
		switch j := b.ByKey(u.name, u.key); {
		case j == nil || j.ID != u.job:
			return fmt.Errorf("invariant 3: job %d was acknowledged, but no longer exists", u.job)
		case !j.State.Final():
			return fmt.Errorf("invariant 5: job %d is still %v", j.ID, j.State)
		}
	}
	for _, j := range jobs(b.Book) {
		if taken := s.tally.taken(j); taken != j.Charged {
			return fmt.Errorf("invariant 2: job %d paid %v according to the job book, but %v according to the bank", j.ID, j.Charged, taken)
		}
	}
	return nil
}

// The method whole returns an error if the history of a replica of the bank is incomplete.
func (s *site) whole() error {
	for _, r := range s.banks.replicas {
		if r.harmed || r.out {
			return fmt.Errorf("invariant 4: the history of the bank of %s is still damaged", r.host.name)
		}
	}
	return nil
}

// returned returns an error if the user's job at another site has not ended, or if its state or charge differs between
// the sites.
func (s *site) returned(u *user) error {
	r := s.books.reference.(*bookState).RemoteByKey(u.name, u.key)
	switch {
	case r == nil || r.ID != u.job:
		return fmt.Errorf("invariant 3: job %d was acknowledged, but no longer exists", u.job)
	case r.Phase != book.Over:
		return fmt.Errorf("invariant 5: job %d for %s is still %v", r.ID, r.Peer, r.Phase)
	}
	j := u.peer.books.reference.(*bookState).Visitor(job.Visit{Home: s.name, Job: r.ID})
	switch {
	case j == nil && r.Status.Charged != 0:
		return fmt.Errorf("invariant 2: job %d was charged %v by %s, which did not run it", r.ID, r.Status.Charged, r.Peer)
	case j != nil && (r.Status.State != j.State || r.Status.Charged != j.Charged):
		return fmt.Errorf("invariant 5: job %d is %v and was charged %v here, but at %s the job is %v and was charged %v", r.ID, r.Status.State, r.Status.Charged, r.Peer, j.State, j.Charged)
	}
	return nil
}

// agrees returns an error if the banks of two sites do not agree, or still have unanswered instructions.
func (s *site) agrees(o *site) error {
	if o == s {
		return nil
	}
	ours, known := s.peer(o.name)
	theirs, too := o.peer(s.name)
	switch {
	case !known || !too:
		return fmt.Errorf("invariant 5: %s and %s are not both peers of one another", s.name, o.name)
	case ours.Outstanding > 0:
		return fmt.Errorf("invariant 5: %s has not answered %d instructions of %s", o.name, ours.Outstanding, s.name)
	case ours.Owed != -theirs.Owed:
		return fmt.Errorf("invariant 5: %s owes %s %v according to its own books, but %v according to the books of the peer", s.name, o.name, ours.Owed, -theirs.Owed)
	case ours.Sent.Number != theirs.Received.Number || ours.Sent.Owed != theirs.Received.Owed:
		return fmt.Errorf("invariant 5: the two banks have different books of the instructions from %s to %s", s.name, o.name)
	}
	return nil
}
