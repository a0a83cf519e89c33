package faults

import (
	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/federation"
	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/messages"
)

// roamFor is how long a remote job can be charged: longer than any run.
const roamFor = 24 * 3600 * second

// depart takes a remote job. It may be asked again.
func (d *desk) depart(u *user, answer func(any)) {
	c := &book.Depart{Account: u.name, Key: u.key, Digest: []byte(u.key), Payer: u.name, Spec: u.spec, Peer: u.peer.name}
	if known, _ := federation.Submitted(d.book(), c); known != nil {
		answer(known.Job)
		return
	}
	d.propose(&book.Command{Depart: c}, func(result any) {
		if passage, ok := result.(book.Passage); ok {
			answer(passage.Job)
		}
	})
}

// mono is the desk's monotonic clock.
func (d *desk) mono() messages.Duration { return d.now.Sub(epoch) }

// runErrands asks what is due about remote jobs, and commits the answers.
func (d *desk) runErrands() {
	for _, q := range d.errands.Due(d.mono(), d.book()) {
		done := false
		over := func() bool { return done || d.gone() }
		answered := func(reply any) {
			if over() {
				return
			}
			done = true
			err, _ := reply.(error)
			if c := d.errands.Answered(d.mono(), d.book(), q.ID, reply, err); c != nil {
				d.propose(c, func(any) { d.errands.Committed(d.mono(), d.book(), q.ID, nil) })
			}
			d.applied()
		}
		d.after(&d.r.host.host, q.Within, func() { answered(messages.Errorf(messages.Unavailable, "no answer")) })
		if q.Peer == "" {
			d.askBank(&q, over, answered)
			continue
		}
		d.call(d.r.host.name, d.World.site(q.Peer).books, over, func(to *replica, answer func(any)) {
			to.shell.(*desk).serve(d.name, &q, answer)
		}, answered)
	}
}

// ask has the site's own bank do something.
func (d *desk) ask(c clearing.Command, answered func(clearing.Result)) {
	d.site.bank(d.r.host.name, d.gone, auctioneer, c, answered)
}

func (d *desk) askBank(q *federation.Request, over func() bool, answered func(any)) {
	var c clearing.Command
	switch body := q.Body.(type) {
	case *messages.AuthoriseRequest:
		c.Authorise = body
	case *messages.RevokeRequest:
		c.Revoke = body
	}
	d.site.bank(d.r.host.name, over, auctioneer, c, func(came clearing.Result) {
		switch {
		case came.Error != nil:
			answered(came.Error)
		case came.Authorisation == nil:
			answered(&messages.ClearingReply{})
		default:
			signed, err := clearing.SignAuthorisation(sealer(d.name), *came.Authorisation)
			if err != nil {
				d.violate("an authorisation cannot be signed: %v", err)
			}
			answered(&signed)
		}
	})
}

// serve answers another site's auctioneer.
func (d *desk) serve(home messages.Name, q *federation.Request, answer func(any)) {
	switch body := q.Body.(type) {
	case *messages.PeerSubmitRequest:
		d.welcome(home, body, answer)
	case *messages.PeerJobsRequest:
		d.tell(home, body, answer)
	case *messages.JobRequest:
		switch j := d.book().Visitor(messages.Visit{Home: home, Job: body.Job}); {
		case j == nil:
			answer(messages.Errorf(messages.NotFound, "there is no such job"))
		case q.Verb == messages.VerbPeerJob:
			answer(&messages.JobDetail{JobSummary: outward(j)})
		default:
			d.propose(&book.Command{Cancel: &book.Cancel{Job: j.ID, By: j.Account}}, answer)
		}
	}
}

// tell answers which of a site's jobs have changed, as soon as any has.
func (d *desk) tell(home messages.Name, r *messages.PeerJobsRequest, answer func(any)) {
	if err := d.visits.Poll(home); err != nil {
		answer(err)
		return
	}
	told := false
	tell := func(late bool) bool {
		ids, reply, ready := d.visits.Since(home, *r)
		if told || !late && !ready || d.gone() {
			return told
		}
		for _, id := range ids {
			reply.Jobs = append(reply.Jobs, outward(d.book().Job(id)))
		}
		told = true
		d.visits.Polled(home)
		answer(&reply)
		return true
	}
	if !tell(false) {
		d.polls = append(d.polls, tell)
		d.after(&d.r.host.host, r.Wait, func() { tell(true) })
	}
}

// outward is a visiting job as its home site is told of it.
func outward(j *book.Job) messages.JobSummary {
	total, running, done := j.Count()
	return federation.Outward(messages.JobSummary{Visit: &j.Visit.Visit, Account: j.Account, State: j.State, Reason: j.Reason, Charged: j.Charged, Tasks: total, Running: running, Done: done})
}

// welcome takes a visiting job, which its home site's bank vouches for. It may be
// asked again.
func (d *desk) welcome(home messages.Name, r *messages.PeerSubmitRequest, answer func(any)) {
	v := messages.Visit{Home: home, Job: r.Job}
	if err := d.visits.Take(v); err != nil {
		answer(err)
		return
	}
	over := func(reply any) {
		d.visits.Taken(v)
		answer(reply)
	}
	known, err := federation.Known(d.book(), home, r, []byte(v.Job.String()))
	if known != nil {
		over(&messages.PeerSubmitReply{Job: outward(known)})
		return
	}
	a, wrong := federation.Arrive(d.name, home, r)
	if err != nil || wrong != nil {
		d.violate("an honest site sends what is wrong: %v, %v", err, wrong)
		return
	}
	account, now := messages.VisitorName(r.Account, home), d.r.clock()
	err = a.Timely(now, &d.site.market, &r.Spec)
	if err == nil {
		err = d.market.Admit(now, d.market.Bid(0, account, now, &r.Spec, nil))
	}
	if err != nil {
		d.decline(a, err, over)
		return
	}
	d.ask(clearing.Command{Accept: a.Accept()}, func(came clearing.Result) {
		if came.Error != nil {
			a.Accepted(came.Error)
			d.decline(a, came.Error, over)
			return
		}
		key := v.Job.String()
		s := &book.Submit{Account: account, Key: key, Digest: []byte(key), Payer: account, Spec: &r.Spec, Held: r.Spec.Budget, Visit: &a.Visit}
		d.propose(&book.Command{Submit: s}, func(any) {
			if j := d.book().Visitor(v); j != nil {
				over(&messages.PeerSubmitReply{Job: outward(j)})
			}
		})
	})
}

// decline refuses a visiting job, and gives back its authorisation if that may have
// been accepted.
func (d *desk) decline(a *federation.Arrival, why error, answer func(any)) {
	charge, due := a.Decline(d.book(), why)
	if !due {
		answer(why)
		return
	}
	d.ask(clearing.Command{Charge: charge}, func(clearing.Result) { answer(why) })
}

// collect has the bank charge what a visiting job owes.
func (d *desk) collect(e *book.Effect, j *book.Job) {
	owed := j.Owed
	charge := &messages.ChargeRequest{Issuer: j.Visit.Home, ID: j.Visit.Authorisation, Amount: owed, Job: j.ID}
	d.ask(clearing.Command{Charge: charge}, func(came clearing.Result) {
		c := book.Confirmation{Effect: e.ID, Amount: owed}
		if came.Error != nil {
			c.Amount, c.Refused = 0, came.Error.Message
		}
		d.confirm(c)
	})
}
