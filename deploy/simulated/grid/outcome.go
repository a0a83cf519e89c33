package grid

import (
	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

func (l *leader) refuse(i int, why string) {
	l.out.Refuse(&l.Work.Jobs[i], why)
	l.refused[i]++
	l.over(i, l.now)
}

// over counts a part of a job as ended.
func (l *leader) over(i int, at messages.Time) {
	r := &l.out.Jobs[i]
	r.Finish = max(r.Finish, l.seconds(at))
	if l.parts[i]--; l.parts[i] > 0 {
		return
	}
	switch n := l.refused[i]; {
	case n == l.partsOf(i):
		r.Fate = core.Refused
	case n > 0:
		r.Fate = core.Expired
	}
	r.InTime = min(1, r.InTime)
	if l.ended++; l.Payers != nil && l.Payers[i] {
		l.wanted--
	}
}

func (l *leader) conclude(j *book.Job) {
	i := int(l.of[j.ID])
	w, r := &l.Work.Jobs[i], &l.out.Jobs[i]
	l.costs[j.ID] = j.Cost()
	if j.Started != 0 && !(r.Start <= l.seconds(j.Started)) {
		r.Start = l.seconds(j.Started)
	}
	_, had := l.book.Used(j, j.Ended)
	switch j.State {
	case job.Completed:
		r.Used += w.Runtime * float64(l.slots(i))
	case job.Discarded:
		r.Fate = core.Discarded
		if l.Market.Mechanism == rules.Deadline { // the job was too late
			r.Fate = core.Expired
		}
		r.Used += had.Seconds()
	default:
		r.Fate = core.Expired
		r.Used += had.Seconds()
	}
	for k := range j.Stages[0].Tasks {
		if t := &j.Stages[0].Tasks[k]; t.Phase == book.Done && l.seconds(t.Ended) <= l.Bids[i].Deadline {
			r.InTime += 1 / float64(l.width(i)*l.partsOf(i))
		}
	}
	delete(l.retried, j.ID)
	if o := l.owners[i]; o != nil {
		o.settled = l.now
	}
	l.over(i, j.Ended)
}

// note counts an event of the desk. It also records what a decision does to claimed tasks, at the time of the decision.
// It does not wait for the nodes, because a task that must run again may complete before its node learns of the
// decision.
func (l *leader) note(event any) {
	switch e := event.(type) {
	case desk.Decided:
		l.traffic.Decisions++
	case desk.Committed:
		l.out.Preemptions += len(e.Decision.Suspend)
		l.noteAttempts(core.Suspended, e.Decision.Suspend)
		l.noteAttempts(core.Resumed, e.Decision.Resume)
	case desk.Disbanded:
		l.traffic.Disbanded++
	case desk.Lost:
		l.traffic.Evicted++
	case desk.Undecided:
		if l.config.Full == (Span{}) {
			l.fail("%+v", e)
		}
	default:
		l.fail("%T: %+v", e, e)
	}
}

// noteAttempts records one change for each job that has some of the attempts. The change has the number of these
// attempts.
func (l *leader) noteAttempts(what core.What, attempts []messages.Attempt) {
	for from := 0; from < len(attempts); {
		id, until := attempts[from].Task.Job, from
		for until < len(attempts) && attempts[until].Task.Job == id {
			until++
		}
		l.out.Note(l.Problem, core.Change{At: l.seconds(l.now), Job: int(l.of[id]), What: what, Slots: until - from})
		from = until
	}
}

// noteRetries records the tasks of changed jobs that must run again, because they lost their slots or their node.
func (l *leader) noteRetries(touched []messages.JobID) {
	for _, id := range touched {
		j := l.book.Job(id)
		if j == nil || !j.Active() || j.Stages[0].Retried <= l.retried[id] {
			continue
		}
		n := j.Stages[0].Retried - l.retried[id]
		l.retried[id] += n
		if l.Market.Preemption == market.PreemptRequeue {
			l.out.Preemptions += n
		}
		l.out.Note(l.Problem, core.Change{At: l.seconds(l.now), Job: int(l.of[id]), What: core.Requeued, Slots: n})
	}
}

func (g *Grid) noteSold() {
	g.out.Sold = make([]float64, len(g.out.Jobs))
	for id := 1; id < len(g.leader.of); id++ {
		i := g.leader.of[id]
		if j := g.leader.book.Job(messages.JobID(id)); j != nil && j.Active() {
			_, had := g.leader.book.Used(j, g.now)
			g.out.Sold[i] += had.Seconds()
		}
	}
	for i := range g.out.Jobs {
		g.out.Sold[i] += g.out.Jobs[i].Used
	}
}
