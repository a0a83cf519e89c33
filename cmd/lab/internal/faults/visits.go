package faults

import (
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/auctioneer/federation"
	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/messages"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
)

// visits serves the auctioneers of other sites whose jobs run at this leader's site.
type visits struct {
	*federation.Visits
	leader *leader
	polls  []func(late bool) bool // requests of peers that wait for a change
}

func (v *visits) changed(b *book.Book, c book.Changes) {
	if v.Changed(b, c.Jobs) {
		v.polls = slices.DeleteFunc(v.polls, func(tell func(bool) bool) bool { return tell(false) })
	}
}

// serve answers another site's auctioneer. It answers from the book only after a majority has confirmed that this
// leader still leads.
func (v *visits) serve(home messages.Name, q *desk.Request, answer func(any)) {
	l := v.leader
	switch body := q.Body.(type) {
	case *clearingmsg.PeerSubmitRequest:
		v.welcome(home, body, answer)
	case *clearingmsg.PeerJobsRequest:
		v.changes(home, body, func(reply any) { l.r.verify(func() { answer(reply) }) })
	case *job.JobRequest:
		l.r.verify(func() { v.serveJob(home, q.Verb, body, answer) })
	}
}

func (v *visits) serveJob(home messages.Name, verb string, r *job.JobRequest, answer func(any)) {
	l := v.leader
	switch j := l.book().Visitor(job.Visit{Home: home, Job: r.Job}); {
	case j == nil:
		answer(messages.Errorf(messages.NotFound, "there is no such job"))
	case verb == clearingmsg.VerbPeerJob:
		answer(&job.JobDetail{JobSummary: outward(j)})
	default:
		l.propose(&book.Command{Cancel: &book.Cancel{Job: j.ID, By: j.Account}}, answer)
	}
}

// changes answers a home site with its jobs that have changed here. If none has changed, changes waits until one does,
// or until the request's time is over.
func (v *visits) changes(home messages.Name, r *clearingmsg.PeerJobsRequest, answer func(any)) {
	l := v.leader
	if err := v.Poll(home); err != nil {
		answer(err)
		return
	}
	told := false
	tell := func(late bool) bool {
		ids, reply, ready := v.Since(home, *r)
		if told || !late && !ready || l.gone() {
			return told
		}
		for _, id := range ids {
			reply.Jobs = append(reply.Jobs, outward(l.book().Job(id)))
		}
		told = true
		v.Polled(home)
		answer(&reply)
		return true
	}
	if !tell(false) {
		v.polls = append(v.polls, tell)
		l.after(&l.r.host.host, r.Wait, func() { tell(true) })
	}
}

// outward returns the summary of a visiting job that its home site may see.
func outward(j *book.Job) job.JobSummary {
	total, running, done := j.Count()
	return federation.Outward(job.JobSummary{Visit: &j.Visit.Visit, Account: j.Account, State: j.State, Reason: j.Reason, Charged: j.Charged, Tasks: total, Running: running, Done: done})
}

// welcome accepts a visiting job for which the home site's bank has issued an authorisation. The request may be
// repeated.
func (v *visits) welcome(home messages.Name, r *clearingmsg.PeerSubmitRequest, answer func(any)) {
	l := v.leader
	visit := job.Visit{Home: home, Job: r.Job}
	if err := v.Begin(visit); err != nil {
		answer(err)
		return
	}
	over := func(reply any) {
		v.End(visit)
		answer(reply)
	}
	known, err := federation.Known(l.book(), home, r, []byte(visit.Job.String()))
	if known != nil {
		over(&clearingmsg.PeerSubmitReply{Job: outward(known)})
		return
	}
	a, wrong := federation.Arrive(l.name, home, r)
	if err != nil || wrong != nil {
		l.violate("an honest site sends a wrong request: %v, %v", err, wrong)
		return
	}
	account, version := messages.VisitorName(r.Account, home), l.desk.Version+1
	if err = a.Timely(l.r.clock(), &l.site.market, &r.Spec); err == nil {
		err = l.admit(account, &r.Spec)
	}
	if err != nil {
		v.decline(a, err, over)
		return
	}
	l.bank(l.r.host.name, l.gone, auctioneer, clearing.Command{Accept: a.Accept()}, func(came clearing.Result) {
		if came.Error != nil {
			a.Accepted(came.Error)
			v.decline(a, came.Error, over)
			return
		}
		key := visit.Job.String()
		s := &book.Submit{MarketsVersion: version, Account: account, Key: key, Digest: []byte(key), Payer: account, Spec: &r.Spec, Held: r.Spec.Budget, Visit: &a.Visit}
		l.propose(&book.Command{Submit: s}, func(result any) {
			if err, refused := result.(error); refused { // the markets have changed since then: try again
				over(err)
			} else if j := l.book().Visitor(visit); j != nil {
				over(&clearingmsg.PeerSubmitReply{Job: outward(j)})
			}
		})
	})
}

// decline refuses a visiting job. If the bank may have accepted the job's authorisation, decline first gives the
// authorisation back.
func (v *visits) decline(a *federation.Arrival, why error, answer func(any)) {
	l := v.leader
	charge, due := a.Decline(l.book(), why)
	if !due {
		answer(why)
		return
	}
	l.bank(l.r.host.name, l.gone, auctioneer, clearing.Command{Charge: charge}, func(clearing.Result) { answer(why) })
}
