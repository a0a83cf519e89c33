package faults

import (
	"fmt"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// user submits one job, and repeats the request until it is answered. Later, the user may submit the job again or
// cancel it.
type user struct {
	*site
	name messages.Name
	key  string
	peer *site // the site that must run the job; nil means the user's own site
	spec *job.JobSpec
	job  messages.JobID // 0 means that there is no answer yet
	over bool           // the job was refused
	asks bool           // the user asks for offers first, and then names a site
	does int            // what the user does after the job was accepted
}

func newUser(s *site, i int) *user {
	u := &user{site: s, name: userName(i), key: fmt.Sprint("j", i), spec: s.spec(), does: s.rng.IntN(6)}
	if s.rng.IntN(3) == 0 {
		u.to(s.sites[(s.index+1+s.rng.IntN(2))%3])
		u.asks = s.rng.IntN(3) == 0
	}
	u.beg()
	within := func() messages.Duration { return messages.Duration(s.rng.Int64N(int64(20 * second))) }
	at := 8*second + messages.Duration(s.rng.Int64N(int64(s.plan.Duration)))
	s.queue.Push(s.now.Add(at), u.submit)
	if s.rng.IntN(2) == 0 {
		s.queue.Push(s.now.Add(at+within()), u.submit)
	}
	if s.rng.IntN(5) == 0 {
		s.queue.Push(s.now.Add(at+within()), u.cancel)
	}
	return u
}

// spec returns a job for the site's market: some tasks, or a gang of two in a market with gangs.
func (s *site) spec() *job.JobSpec {
	stage := job.Stage{Name: "main", Class: class, Tasks: 1 + s.rng.IntN(4), Attempts: 3, Command: []string{"run"}}
	rate := messages.Credit/20 + messages.Credits(s.rng.Int64N(int64(messages.Credit/4)))
	if s.market.Mechanism == market.BatchQueue && s.rng.IntN(2) == 0 {
		stage.Tasks, stage.Gang = 2, true
	}
	return &job.JobSpec{Market: s.market.Name, Budget: 4 * messages.Credit, Rate: rate,
		Value: messages.Credit + messages.Credits(s.rng.Int64N(int64(3*messages.Credit))), Delay: rate / 2, Length: 10 * second,
		Utility: &job.Utility{Form: job.Linear, Weights: job.Weights{{Class: class, Weight: 1}}},
		Stages:  []job.Stage{stage}}
}

func (u *user) submit() {
	if u.peer != nil && !u.introduced() {
		u.queue.Push(u.now.Add(second), u.submit)
		return
	}
	if u.asks {
		u.choose()
		return
	}
	u.call(u.clients, u.books, func() bool { return u.over }, func(r *replica, answer func(any)) {
		if u.peer != nil {
			r.shell.(*leader).depart(u, answer)
			return
		}
		r.shell.(*leader).submit(u.name, u.key, u.spec, answer)
	}, func(reply any) {
		u.note(u.site.name, false, "user", u.name, "is answered", reply)
		id, accepted := reply.(messages.JobID)
		switch {
		case accepted && u.job != 0 && u.job != id:
			u.violate("invariant 3: job %s/%s was acknowledged as job %d, but is now job %d, at %s", u.name, u.key, u.job, id, u.site.name)
		case accepted && u.job == 0:
			u.job = id
			u.queue.Push(u.now.Add(messages.Duration(u.rng.Int64N(int64(4*second)))), u.steer)
		case accepted:
		case u.job != 0:
			u.violate("invariant 3: job %d was acknowledged, but is now refused: %v, at %s", u.job, reply, u.site.name)
		default:
			u.over = true
		}
	})
}

func (u *user) to(s *site) {
	u.peer, u.spec.Market, u.spec.Stages[0].Gang = s, s.market.Name, false
	if s == u.site {
		u.peer = nil
	}
}

func (u *user) choose() {
	asked := *u.spec
	switch u.rng.IntN(4) {
	case 0: // cancel as early as possible
		asked.Value = 0
	case 1:
		asked.Valuation = &job.Valuation{Class: job.Hard, Max: 4, Deadline: 30}
	case 2:
		asked.Length, asked.Deadline = 0, u.now.Add(20*second)
	}
	u.call(u.clients, u.books, func() bool { return !u.asks }, func(r *replica, answer func(any)) {
		r.shell.(*leader).offers(&asked, answer)
	}, func(reply any) {
		u.asks = false
		u.to(reply.(*site))
		u.submit()
	})
}

// introduced reports whether the user's site and the job's site are peers of each other, according to the banks of both
// sites.
func (u *user) introduced() bool {
	_, ours := u.site.peer(u.peer.name)
	_, theirs := u.peer.peer(u.site.name)
	return ours && theirs
}

func (u *user) cancel() {
	if u.job == 0 {
		return
	}
	u.call(u.clients, u.books, never, func(r *replica, answer func(any)) {
		c := &book.Command{Cancel: &book.Cancel{Job: u.job, By: u.name}}
		if u.peer != nil {
			c = &book.Command{Advance: &book.Advance{Steps: []book.Step{{Job: u.job, Cancel: u.name}}}}
		}
		r.shell.(*leader).propose(c, answer)
	}, func(any) {})
}
