package book

import (
	"fmt"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

type endings struct {
	archive      *archive
	notices      *notices
	jobs         *jobs
	index        *index
	visitors     *visitors
	dependencies *dependencies
	claims       *claims
	meters       *meters
	effects      *effects
	changes      *changes
	markets      *markets
	watch        *watch
	clock        *clock
}

// cancel ends a job on behalf of its owner or an operator. It returns the job's state before the command.
func (s *endings) cancel(c *Cancel) (job.State, error) {
	j := s.jobs.own(c.Job)
	if p := s.jobs.past[c.Job]; p != nil {
		return 0, messages.Errorf(messages.Ended, "job %d is %v already", p.ID, p.Outcome)
	}
	if j == nil {
		return 0, messages.Errorf(messages.NotFound, "there is no job %d", c.Job)
	}
	if !j.Active() {
		return 0, messages.Errorf(messages.Ended, "job %d is %v already", j.ID, j.Outcome)
	}
	was := j.State
	s.forfeit(j, c)
	who := by(c.By, j.Account)
	s.end(j, job.Cancelled, "CancelledBy"+who, fmt.Sprintf("cancelled by %s, %s", c.By, cancellers[who]))
	return was, nil
}

func (s *endings) cancelJobs(c *CancelJobs) []CancelledJob {
	out := make([]CancelledJob, len(c.Jobs))
	for i, id := range c.Jobs {
		was, err := s.cancel(&Cancel{Job: id, By: c.By, Window: c.Window})
		if out[i].State = was; err != nil {
			out[i].Err = messages.AsError(messages.VerbCancel, err)
		}
	}
	return out
}

func (s *endings) discard(d *Discarding) {
	j := s.jobs.own(d.Job)
	if j == nil || !j.Active() {
		return
	}
	j.Message, j.Change = d.Message, d.Change
	s.effects.round(j, d.Legs)
	s.effects.keepPromises(j)
	s.end(j, job.Discarded, d.Reason, d.Message)
}

// end ends a job. Its running tasks are stopped, and its charge is decided. Jobs that wait for this job start, or end
// with it.
func (s *endings) end(j *Job, outcome job.State, reason, cause string) {
	s.endAlone(j, outcome, reason, cause)
	for ended := []*Job{j}; len(ended) > 0; ended = ended[1:] {
		for _, waiter := range s.dependencies.release(ended[0]) {
			was := "complete"
			if ended[0].Outcome == job.Completed {
				was = "fail"
			}
			switch {
			case waiter.Failures() > 0:
				s.endAlone(waiter, job.Failed, waiter.Reason, waiter.Cause)
			case waiter.Spec.AfterEach != 0 && waiter.Stages[0].over():
				s.endAlone(waiter, job.Cancelled, waiter.Reason, waiter.Cause)
			default:
				s.endAlone(waiter, job.Cancelled, "DependencyFailed", fmt.Sprintf("job %d, which was to %s first, is %v", ended[0].ID, was, ended[0].Outcome))
			}
			ended = append(ended, waiter)
		}
	}
}

// endAlone ends a job without telling the jobs that wait for it.
func (s *endings) endAlone(j *Job, outcome job.State, reason, cause string) {
	s.meters.stop(j)
	if outcome != job.Discarded {
		s.claims.completeAll(j)
	}
	j.Doubts = nil
	s.effects.dropPromises(j)
	delete(s.jobs.ordered, j.ID)
	s.dependencies.forget(j)
	j.State, j.Outcome, j.Reason, j.Cause, j.Ended = job.Settling, outcome, reason, cause, s.clock.now
	s.watch.touch(j.ID)
	s.claims.stopAll(j)
}

// The owner of a job may cancel it soon after its submission. If none of its tasks has started then, forfeit lets the
// site keep the job's deposit.
func (s *endings) forfeit(j *Job, c *Cancel) {
	if c.By == j.Account && j.Started == 0 && s.clock.now.Sub(j.Submitted) < c.Window && j.Deposit.Amount > 0 {
		j.Deposit.Kept = true
	}
}

func (s *endings) settle(c *Settle) error {
	j := s.jobs.own(c.Job)
	switch {
	case j == nil:
		return messages.Errorf(messages.NotFound, "there is no job %d", c.Job)
	case j.Settled:
		return nil
	case j.State != job.Settling:
		return messages.Errorf(messages.Invalid, "job %d has not ended", j.ID)
	case c.Charge < 0 || c.Charge > j.Left():
		return messages.Errorf(messages.Invalid, "a charge of %v for job %d is not between 0 and what is left of its budget, %v", c.Charge, j.ID, j.Left())
	}
	j.owe(c)
	s.markets.promised(j.Spec.Market, c.Promise)
	s.effects.effect(Charge, j.ID)
	s.watch.touch(j.ID)
	return nil
}

// owe records what a job owes: the charge of its market, the payments of a visiting job, and the deposit if the site
// keeps it. The texts are part of the replicated state, so they are the same in all releases.
func (j *Job) owe(c *Settle) {
	j.Settled, j.Owed, j.Why, j.Shares = true, c.Charge, c.Reason, c.Shares
	if j.Visit != nil && j.Paid > 0 {
		j.Owed, j.Why, j.Paid = j.Owed+j.Paid, fmt.Sprintf("%s by decisions of its market; %s", j.Paid.Words(), c.Reason), 0
	}
	if j.Deposit.Kept {
		j.Owed += j.Deposit.Amount
		j.Why = fmt.Sprintf("deposit of %v kept: cancelled by its owner before it was started", j.Deposit.Amount)
		if c.Charge > 0 {
			j.Why += "; " + c.Reason
		}
	}
}

// An effect is a request that the auctioneer must send to the bank. The method `confirm` records the bank's answers to
// effects, and adds the further effects that these answers make necessary. It ignores answers for jobs that have left
// the book.
func (s *endings) confirm(c *Confirm) {
	outcome := make(map[uint64]*Confirmation, len(c.Effects))
	for i := range c.Effects {
		outcome[c.Effects[i].Effect] = &c.Effects[i]
	}
	over := s.effects.remove(outcome)
	for i := range over {
		switch e, o := &over[i], outcome[over[i].ID]; {
		case e.Kind == Charge && s.jobs.own(e.Job) != nil:
			s.charged(s.jobs.own(e.Job), o)
		case e.Kind == RaiseBudget:
			s.changes.raised(e, o)
		case e.Kind == Round:
			s.effects.rounded(e, o)
		case e.Kind == Refund && o.Refused != "" && s.jobs.own(e.Job) != nil:
			j := s.jobs.own(e.Job)
			j.Gained, j.Back = j.Gained-e.Legs[0].Amount, j.Back-e.Legs[0].Amount
			s.watch.touch(e.Job)
		}
	}
	s.forget()
}

// charged is called when the bank has answered the charge for an ended job. It completes the end of the job in the
// book.
func (s *endings) charged(j *Job, o *Confirmation) {
	j.State = j.Outcome
	j.Charged = o.Amount
	j.Refused = o.Refused
	s.jobs.ended = append(s.jobs.ended, j.ID)
	s.jobs.live(j.Spec.Market, -1)
	s.index.count(j.Account, -1)
	s.visitors.countGuest(j, -1, 0)
	s.effects.effect(Observe, j.ID)
	if j.State == job.Failed || j.State == job.Discarded {
		s.notices.event(j, job.NotifyFailure, job.NotifyEnd)
	} else {
		s.notices.event(j, job.NotifyEnd)
	}
	s.watch.touch(j.ID)
}

// forget removes the oldest ended jobs of the book if it has more than retainEnded of them. It stops at a job whose
// effects are not confirmed yet, and at a job that still has claims.
func (s *endings) forget() {
	for len(s.jobs.ended) > retainEnded {
		id := s.jobs.ended[0]
		// the claims of the job still count for its owners and use licences
		if j := s.jobs.own(id); s.effects.speaks(id) || j != nil && j.claimed() {
			return
		}
		s.jobs.ended, s.jobs.handed = s.jobs.ended[1:], max(0, s.jobs.handed-1)
		if p := s.jobs.past[id]; p != nil {
			delete(s.jobs.past, id)
			s.index.drop(p.Account, p.Key)
			continue
		}
		j := s.jobs.own(id)
		s.archive.add(Ended{Job: j})
		if j.Visit != nil {
			delete(s.visitors.byVisit, j.Visit.Visit)
			s.visitors.countGuest(j, 0, -1)
		}
		s.jobs.byID.remove(id)
		s.index.remove(j.Account, j.Key, id)
		s.watch.touch(id)
	}
}

// archiveOldest moves the records of the oldest ended jobs to the archive. It stops at the first job that an effect
// refers to, or that has a task on a node. Jobs of other sites stay, because their sites ask for them.
//
// Which jobs are moved follows only from the jobs in the book, and not from earlier calls. So all replicas archive the
// same jobs, whichever image they started from.
func (s *endings) archiveOldest() {
	most := len(s.jobs.ended) - s.archive.whole
	for ; s.jobs.handed < most; s.jobs.handed++ {
		j := s.jobs.get(s.jobs.ended[s.jobs.handed])
		if j == nil || j.Visit != nil {
			continue
		}
		if s.effects.speaks(j.ID) || j.claimed() {
			return
		}
		s.archive.add(Ended{Job: j})
		s.jobs.past[j.ID] = j.brief()
		s.jobs.byID.remove(j.ID)
		s.index.drop(j.Account, j.Key) // otherwise the key could keep the bytes of the packed job in memory
		s.index.recall(j.Account, j.Key, j.ID)
		s.index.unlist(j.Account, j.ID)
		s.watch.touch(j.ID)
	}
}
