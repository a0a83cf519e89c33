package faults

import (
	"fmt"
	"strings"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

// steer lets a user change a job that has not ended: hold and release it, raise its budget, requeue its tasks, or
// cancel some.
func (u *user) steer() {
	if u.peer != nil {
		return
	}
	switch u.does {
	case 1:
		u.park(false, func(any) {
			for k := range 3 { // the command to hold may arrive again, late
				u.queue.Push(u.now.Add(messages.Duration(4+20*k)*second), func() { u.park(true, func(any) {}) })
			}
		})
	case 2:
		u.raise()
	case 3:
		u.word(&book.Command{Requeue: &book.Requeue{Job: u.job}}, func(any) {})
	case 0:
		u.drop()
	case 4:
		u.drop()
		u.rerun()
	}
}

func (u *user) drop() {
	last := int64(u.spec.Stages[0].Tasks - 1)
	u.word(&book.Command{CancelTasks: &book.CancelTasks{Job: u.job, By: u.name, Tasks: job.Array{{First: last, Last: last, Step: 1}}}}, func(any) {})
}

// beg gives a small budget to some jobs that pay for each second. The budget is used up while they run.
func (u *user) beg() {
	to := u.site
	if u.peer != nil {
		to = u.peer
	}
	if u.does == 5 && !u.asks && to.market.Mechanism == market.HighestBid {
		u.spec.Budget = messages.Credit / 4
	}
}

// rerun lets a user run the failed tasks of an ended job again, if enough time is left.
func (u *user) rerun() {
	late := func() bool { return u.now > epoch.Add(u.plan.Duration+40*second) }
	u.call(u.clients, u.books, late, func(r *replica, answer func(any)) {
		if j := r.shell.(*leader).book().Job(u.job); j != nil && !j.Active() && j.Stages[0].Running == 0 { // no task of the job can still end well
			answer(u.again(j))
		}
	}, func(reply any) {
		if spec := reply.(*job.JobSpec); spec != nil {
			again := &user{site: u.site, name: u.name, key: u.key + "-again", spec: spec, does: -1}
			u.users = append(u.users, again)
			again.submit()
		}
	})
}

// The method `again` returns a new job with the tasks of an ended job that did not succeed. It returns nil if all tasks
// have succeeded.
func (u *user) again(j *book.Job) *job.JobSpec {
	spec, all := *u.spec, u.spec.Stages[0].Tasks
	stage := spec.Stages[0]
	var left []uint32
	for k := range uint32(all) {
		if stage.Gang || !done(j, int(k)) {
			left = append(left, k)
		}
	}
	if len(left) == 0 || j.Outcome == job.Completed {
		return nil
	}
	if err := stage.Narrow(left, all); err != nil {
		u.violate("job %d cannot be submitted again: %v", j.ID, err)
		return nil
	}
	spec.RerunOf, spec.Stages = j.ID, []job.Stage{stage}
	return &spec
}

func done(j *book.Job, k int) bool {
	tasks := j.Stages[0].Tasks
	return k < len(tasks) && tasks[k].Phase == book.Done
}

// repeats checks a task of a job that reruns an earlier job: this task must not have ended well in the earlier job.
func (a *agent) repeats(g *agentmsg.Grant) error {
	b := a.books.reference.(*bookState)
	j := b.Job(g.Attempt.Task.Job)
	if j == nil || j.Spec.RerunOf == 0 || j.Spec.Stages[0].Gang {
		return nil
	}
	position := int(g.Attempt.Task.Index)
	if g.Position != 0 {
		position = int(g.Position) - 1
	}
	if first := b.Job(j.Spec.RerunOf); first != nil && done(first, position) {
		return fmt.Errorf("invariant 2: job %d runs task %d of job %d again, although this task ended well", j.ID, position, first.ID)
	}
	return nil
}

func (u *user) park(release bool, then func(any)) {
	u.word(&book.Command{Park: &book.Park{Job: u.job, By: u.name, Release: release}}, then)
}

// raise raises the budget of the user's job by one credit, if the market allows it.
func (u *user) raise() {
	if registry.Of(&u.site.market).Raises.Budget {
		u.word(&book.Command{Change: &book.Change{Job: u.job, Key: u.key, Budget: u.spec.Budget + messages.Credit}}, func(any) {})
	}
}

// word sends a command to the leader of the book, repeatedly until a leader answers. Then it passes the answer to the
// function `then`.
func (u *user) word(c *book.Command, then func(any)) {
	u.call(u.clients, u.books, never, func(r *replica, answer func(any)) {
		own := *c
		r.shell.(*leader).propose(&own, answer)
	}, then)
}

// short is an inserted bug: after an owner has raised a budget, the bank holds one microcredit less than the new
// budget.
func (l *leader) short(list []money.Transfer) {
	if t := &list[len(list)-1]; l.Bug == RaiseShort && strings.HasPrefix(t.Reason, "raised budget") {
		t.Amount--
	}
}

// secured returns an error if the hold of an active job differs from the job's budget. It leaves out two kinds of jobs:
// jobs whose raise waits for the bank, and jobs of markets in which jobs pay each other. For these jobs, hold and
// budget may differ.
func (s *site) secured() error {
	if !registry.Of(&s.market).Raises.Budget {
		return nil
	}
	for _, j := range jobs(s.books.reference.(*bookState).Book) {
		if !j.Active() || j.Visit != nil || j.Raise.Pending() {
			continue
		}
		h, known := s.tally.holds[j.HoldID()]
		if !known || s.tally.resolved[j.HoldID()] || h.Amount != j.Spec.Budget || j.Held != j.Spec.Budget {
			return fmt.Errorf("invariant 1: job %d has a budget of %v, but the bank holds %v (hold resolved: %v)", j.ID, j.Spec.Budget, h.Amount, s.tally.resolved[j.HoldID()])
		}
	}
	return nil
}
