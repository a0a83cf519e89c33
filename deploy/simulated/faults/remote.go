package faults

import (
	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/auctioneer/federation"
	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/messages"
)

// roamFor is how long a remote job can be charged: longer than any run.
const roamFor = 24 * 3600 * second

// depart takes a remote job. It may be asked again.
func (l *leader) depart(u *user, answer func(any)) {
	c := &book.EnterRemote{Account: u.name, Key: u.key, Digest: []byte(u.key), Payer: u.name, Spec: u.spec, Peer: u.peer.name}
	if known, _ := l.book().KnownRemote(c); known != nil {
		answer(known.Job)
		return
	}
	l.propose(&book.Command{EnterRemote: c}, func(result any) {
		if passage, ok := result.(book.RemoteReceipt); ok {
			answer(passage.Job)
		}
	})
}

// askPeer asks another site's auctioneer for the desk.
func (l *leader) askPeer(q *desk.Request, over func() bool, answer func(any, error)) {
	l.call(l.r.host.name, l.World.site(q.Peer).books, over, func(to *replica, answer func(any)) {
		to.shell.(*leader).serve(l.name, q, answer)
	}, func(reply any) {
		err, _ := reply.(error)
		answer(reply, err)
	})
}

// askBank asks the site's own bank to authorise a remote job, to revoke that, or to
// charge a visiting job.
func (l *leader) askBank(c clearing.Command, over func() bool, answer func(any, error)) {
	l.bank(l.r.host.name, over, auctioneer, c, func(came clearing.Result) {
		switch {
		case came.Error != nil:
			answer(nil, came.Error)
		case came.Authorisation == nil:
			answer(&messages.ClearingReply{}, nil)
		default:
			signed, err := clearing.SignAuthorisation(sealer(l.name), *came.Authorisation)
			answer(&signed, err)
		}
	})
}

// serve answers another site's auctioneer. What is read here is told only when a majority
// says that this leader still leads.
func (l *leader) serve(home messages.Name, q *desk.Request, answer func(any)) {
	switch body := q.Body.(type) {
	case *messages.PeerSubmitRequest:
		l.welcome(home, body, answer)
	case *messages.PeerJobsRequest:
		l.changes(home, body, func(reply any) { l.r.verify(func() { answer(reply) }) })
	case *messages.JobRequest:
		l.r.verify(func() { l.serveJob(home, q.Verb, body, answer) })
	}
}

// serveJob answers what is asked about one visiting job.
func (l *leader) serveJob(home messages.Name, verb string, r *messages.JobRequest, answer func(any)) {
	switch j := l.book().Visitor(messages.Visit{Home: home, Job: r.Job}); {
	case j == nil:
		answer(messages.Errorf(messages.NotFound, "there is no such job"))
	case verb == messages.VerbPeerJob:
		answer(&messages.JobDetail{JobSummary: outward(j)})
	default:
		l.propose(&book.Command{Cancel: &book.Cancel{Job: j.ID, By: j.Account}}, answer)
	}
}

// changes answers which of a site's jobs have changed, as soon as any has.
func (l *leader) changes(home messages.Name, r *messages.PeerJobsRequest, answer func(any)) {
	if err := l.visits.Poll(home); err != nil {
		answer(err)
		return
	}
	told := false
	tell := func(late bool) bool {
		ids, reply, ready := l.visits.Since(home, *r)
		if told || !late && !ready || l.gone() {
			return told
		}
		for _, id := range ids {
			reply.Jobs = append(reply.Jobs, outward(l.book().Job(id)))
		}
		told = true
		l.visits.Polled(home)
		answer(&reply)
		return true
	}
	if !tell(false) {
		l.polls = append(l.polls, tell)
		l.after(&l.r.host.host, r.Wait, func() { tell(true) })
	}
}

// outward is a visiting job as its home site is told of it.
func outward(j *book.Job) messages.JobSummary {
	total, running, done := j.Count()
	return federation.Outward(messages.JobSummary{Visit: &j.Visit.Visit, Account: j.Account, State: j.State, Reason: j.Reason, Charged: j.Charged, Tasks: total, Running: running, Done: done})
}

// welcome takes a visiting job, which its home site's bank vouches for. It may be
// asked again.
func (l *leader) welcome(home messages.Name, r *messages.PeerSubmitRequest, answer func(any)) {
	v := messages.Visit{Home: home, Job: r.Job}
	if err := l.visits.Take(v); err != nil {
		answer(err)
		return
	}
	over := func(reply any) {
		l.visits.Taken(v)
		answer(reply)
	}
	known, err := federation.Known(l.book(), home, r, []byte(v.Job.String()))
	if known != nil {
		over(&messages.PeerSubmitReply{Job: outward(known)})
		return
	}
	a, wrong := federation.Arrive(l.name, home, r)
	if err != nil || wrong != nil {
		l.violate("an honest site sends what is wrong: %v, %v", err, wrong)
		return
	}
	account := messages.VisitorName(r.Account, home)
	if err = a.Timely(l.r.clock(), &l.site.market, &r.Spec); err == nil {
		err = l.admit(account, &r.Spec)
	}
	if err != nil {
		l.decline(a, err, over)
		return
	}
	l.bank(l.r.host.name, l.gone, auctioneer, clearing.Command{Accept: a.Accept()}, func(came clearing.Result) {
		if came.Error != nil {
			a.Accepted(came.Error)
			l.decline(a, came.Error, over)
			return
		}
		key := v.Job.String()
		s := &book.Submit{Account: account, Key: key, Digest: []byte(key), Payer: account, Spec: &r.Spec, Held: r.Spec.Budget, Visit: &a.Visit}
		l.propose(&book.Command{Submit: s}, func(any) {
			if j := l.book().Visitor(v); j != nil {
				over(&messages.PeerSubmitReply{Job: outward(j)})
			}
		})
	})
}

// decline refuses a visiting job, and gives back its authorisation if that may have
// been accepted.
func (l *leader) decline(a *federation.Arrival, why error, answer func(any)) {
	charge, due := a.Decline(l.book(), why)
	if !due {
		answer(why)
		return
	}
	l.bank(l.r.host.name, l.gone, auctioneer, clearing.Command{Charge: charge}, func(clearing.Result) { answer(why) })
}
