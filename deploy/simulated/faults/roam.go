package faults

import (
	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/messages"
)

// roamFor is how long a job at another site can be charged: longer than any run.
const roamFor = 24 * 3600 * second

// depart takes a job that another site is to run. It may be asked again.
func (d *desk) depart(u *user, answer func(any)) {
	if r := d.book().RoamByKey(u.name, u.key); r != nil {
		answer(r.ID)
		return
	}
	c := &book.Depart{Account: u.name, Key: u.key, Digest: []byte(u.key), Payer: u.name, Spec: u.spec, Peer: u.peer.name}
	d.propose(&book.Command{Depart: c}, func(result any) {
		if passage, ok := result.(book.Passage); ok {
			answer(passage.Job)
		}
	})
}

// noteRoam has the escort look at a job that has come to another phase.
func (d *desk) noteRoam(r *book.Roam) {
	delete(d.roams, r.ID)
	if r.Phase != book.Over {
		d.roams[r.ID] = d.now
	}
}

// escort carries the jobs that other sites run from phase to phase, each by an
// answer that can be asked for again: whichever leader does it, and however often.
func (d *desk) escort() {
	for _, id := range sorted(d.roams) {
		r := d.book().Roam(id)
		if r == nil || d.roams[id] > d.now {
			continue
		}
		d.roams[id] = 1 << 62 // until it is answered
		switch copied := *r; {
		case r.Phase == book.Authorising:
			d.authorise(&copied)
		case r.Phase == book.Sending:
			d.dispatch(&copied)
		case r.Phase == book.Releasing:
			d.release(&copied)
		case r.Cancelled && !r.Told:
			d.recall(&copied)
		default:
			d.follow(&copied)
		}
	}
}

// travel commits what became known about a job, if it is another thing than what
// was known.
func (d *desk) travel(r *book.Roam, s book.Step) {
	s.Job = r.ID
	d.propose(&book.Command{Travel: &book.Travel{Steps: []book.Step{s}}}, nil)
}

// ask has the site's own bank do something for a job.
func (d *desk) ask(c clearing.Command, answered func(clearing.Result)) {
	d.site.bank(d.r.host.name, d.gone, auctioneer, c, answered)
}

func (d *desk) authorise(r *book.Roam) {
	d.ask(authorisation(r), func(came clearing.Result) {
		if came.Error != nil {
			d.travel(r, book.Step{Refused: came.Error})
			return
		}
		signed, err := clearing.SignAuthorisation(sealer(d.name), *came.Authorisation)
		if err != nil {
			d.violate("an authorisation cannot be signed: %v", err)
			return
		}
		d.travel(r, book.Step{Authorised: &signed})
	})
}

func authorisation(r *book.Roam) clearing.Command {
	return clearing.Command{Authorise: &messages.AuthoriseRequest{Key: messages.RoamingKey(r.ID), Account: r.Payer, Member: r.Account,
		Peer: r.Peer, Amount: r.Spec.Budget, Interval: roamFor, Job: r.ID}}
}

// release gives back what was authorised for a job that is not run. If that is
// not known here, it may have been given nevertheless: to ask once more finds out.
func (d *desk) release(r *book.Roam) {
	revoke := func(clearing.Result) {
		d.ask(clearing.Command{Revoke: &messages.RevokeRequest{ID: messages.RoamingAuthorisation(r.ID)}}, func(clearing.Result) {
			d.travel(r, book.Step{Released: true})
		})
	}
	if r.Authorisation == nil {
		d.ask(authorisation(r), revoke)
		return
	}
	revoke(clearing.Result{})
}

// asksPeer asks the auctioneer of the site where a job is, until it answers.
func (d *desk) asksPeer(r *book.Roam, ask func(peer *desk, answer func(any)), answered func(any)) {
	d.call(d.r.host.name, d.World.site(r.Peer).books, d.gone, func(to *replica, answer func(any)) {
		ask(to.shell.(*desk), answer)
	}, answered)
}

// dispatch asks the other site to run a job.
func (d *desk) dispatch(r *book.Roam) {
	d.asksPeer(r, func(peer *desk, answer func(any)) { peer.welcome(d.name, r, answer) }, func(reply any) {
		switch came := reply.(type) {
		case messages.JobSummary:
			d.travel(r, book.Step{Arrived: &came})
		case error:
			d.travel(r, book.Step{Refused: messages.AsError("", came)})
		}
	})
}

// recall has the other site end a job.
func (d *desk) recall(r *book.Roam) {
	d.asksPeer(r, func(peer *desk, answer func(any)) {
		j := peer.visitor(d.name, r)
		if j == nil {
			answer(nil)
			return
		}
		peer.propose(&book.Command{Cancel: &book.Cancel{Job: j.ID, By: j.Account}}, answer)
	}, func(any) { d.travel(r, book.Step{Told: true}) })
}

// follow asks how a job fares, and again some time later.
func (d *desk) follow(r *book.Roam) {
	d.asksPeer(r, func(peer *desk, answer func(any)) {
		if j := peer.visitor(d.name, r); j != nil {
			answer(outward(j))
		}
	}, func(reply any) {
		d.roams[r.ID] = d.now.Add(second)
		if came := reply.(messages.JobSummary); came != r.Status {
			d.travel(r, book.Step{Status: &came})
		}
	})
}

// visitor is the job here that another site asks about.
func (d *desk) visitor(home messages.Name, r *book.Roam) *book.Job {
	return d.book().Visitor(messages.Visit{Home: home, Job: r.ID})
}

// outward is a job of another site as that site is told of it.
func outward(j *book.Job) messages.JobSummary {
	total, running, done := j.Count()
	return messages.JobSummary{Job: j.Visit.Job, State: j.State, Reason: j.Reason, Charged: j.Charged, Tasks: total, Running: running, Done: done}
}

// welcome takes a job of another site, which that site's bank vouches for. It may
// be asked again; while it is under way, it is not begun anew.
func (d *desk) welcome(home messages.Name, r *book.Roam, answer func(any)) {
	v := messages.Visit{Home: home, Job: r.ID}
	if j := d.visitor(home, r); j != nil {
		answer(outward(j))
		return
	}
	if d.guests[v] {
		return
	}
	d.guests[v] = true
	over := func(reply any) {
		delete(d.guests, v)
		answer(reply)
	}
	spec := *r.Spec
	spec.Market = d.site.market.Name
	if err := d.admit(messages.VisitorName(r.Account, home), &spec); err != nil {
		d.decline(v, r, err, over)
		return
	}
	accept := &messages.AcceptRequest{Purpose: v.String(), Authorisation: *r.Authorisation, Firm: true}
	d.ask(clearing.Command{Accept: accept}, func(came clearing.Result) {
		if came.Error != nil { // nothing is accepted: what was before would be again
			over(came.Error)
			return
		}
		d.enter(v, r, &spec, over)
	})
}

// admit says whether the market takes a job of another site. In some markets jobs
// pay one another on the way, and an authorisation is charged once, at the end.
func (d *desk) admit(account messages.Name, spec *messages.JobSpec) error {
	if d.site.market.Mechanism == messages.BatchQueue {
		return messages.Errorf(messages.Invalid, "market: moves credits between the jobs that wait")
	}
	now := d.r.clock()
	return d.market.Admit(now, d.market.Bid(0, account, now, spec, nil))
}

// enter commits a job of another site whose authorisation was accepted.
func (d *desk) enter(v messages.Visit, r *book.Roam, spec *messages.JobSpec, answer func(any)) {
	account, key, a := messages.VisitorName(r.Account, v.Home), v.Job.String(), &r.Authorisation.Authorisation
	s := &book.Submit{Account: account, Key: key, Digest: []byte(key), Payer: account, Spec: spec, Held: spec.Budget,
		Visit: &book.Visit{Visit: v, Authorisation: a.ID, Until: a.Ends()}}
	d.propose(&book.Command{Submit: s}, func(any) {
		if j := d.visitor(v.Home, r); j != nil {
			answer(outward(j))
		}
	})
}

// decline gives back the authorisation of a job that is refused, if it was
// accepted.
func (d *desk) decline(v messages.Visit, r *book.Roam, why error, answer func(any)) {
	release := &messages.ChargeRequest{Issuer: v.Home, ID: r.Authorisation.Authorisation.ID, Reason: "the job was refused"}
	d.ask(clearing.Command{Charge: release}, func(clearing.Result) { answer(why) })
}

// collect has the bank charge what a job of another site owes.
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
