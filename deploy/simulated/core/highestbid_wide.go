package core

import (
	"math"

	"github.com/candor-grid/candor/auctioneer/mechanism/highestbid"
	"github.com/candor-grid/candor/messages"
)

// runWideHighestBid runs jobs of several tasks. Each task bids the same, so that of
// a job's unfinished tasks always the first run. Tasks with the same time left are
// kept as one group.
func runWideHighestBid(p *Problem) (*Outcome, error) {
	w := &wide{course: newCourse[end](p), jobs: make([]split, len(p.Bids)), rule: rule(p.Market)}
	reserve, _ := messages.RoundCredits(*p.Market.Reserve)
	var err error
	if w.market, err = highestbid.NewMarket(w.rule, reserve, p.Work.Nodes); err != nil {
		return nil, err
	}
	return w.run(w.finish, w.arrive, w.decide)
}

// wide is the state of a run.
type wide struct {
	course[end]
	rule   highestbid.Rule
	market *highestbid.Market
	jobs   []split
}

// split is a job that has not ended: its unfinished tasks, in order.
type split struct {
	groups []group // by the time left, ascending
	has    int     // how many tasks run: the first ones
	at     messages.Time
	round  int32 // of the last end that was planned; earlier ones are void
}

type group struct {
	left  messages.Time // microseconds
	tasks int
}

// end is when the first running tasks of a job will be done, if nothing changes.
type end struct {
	job, round int32
}

// duration converts seconds, at most to the longest duration.
func duration(seconds float64) messages.Duration {
	const most = 9e9
	return messages.Duration(min(seconds, most) * 1e9)
}

func (w *wide) arrive(now messages.Time, i int) error {
	j, b := &w.Work.Jobs[i], &w.Bids[i]
	rate, _ := messages.RoundCredits(b.Rate)
	length := j.Runtime
	if w.rule.Algorithm == highestbid.WSEPT {
		length = b.Length
	}
	w.jobs[i] = split{groups: []group{{micros(j.Runtime), j.Width}}, at: now}
	return w.market.Arrive(now, highestbid.Offer{Job: messages.JobID(i + 1), Rate: rate, Length: duration(length), Slots: j.Width})
}

// finish ends the tasks of a job that are done by now.
func (w *wide) finish(now messages.Time, e end) error {
	s := &w.jobs[e.job]
	if s.round != e.round {
		return nil
	}
	s.advance(now)
	done := 0
	for len(s.groups) > 0 && s.groups[0].left == 0 {
		done += s.groups[0].tasks
		s.groups = s.groups[1:]
	}
	s.has -= done
	owed, err := w.market.Finish(now, messages.JobID(e.job+1), done)
	if err != nil {
		return err
	}
	job := &w.out.Jobs[e.job]
	if seconds(now) <= w.Bids[e.job].Deadline {
		job.InTime += float64(done) / float64(w.Work.Jobs[e.job].Width)
	}
	if len(s.groups) > 0 {
		w.announce(int(e.job))
		return nil
	}
	s.groups = nil
	job.Finish, job.Paid, job.Used = seconds(now), owed, w.Work.Jobs[e.job].Work()
	return nil
}

// advance subtracts the time since the last call from what the running tasks have
// left. No group has both running and waiting tasks: cut has divided it.
func (s *split) advance(now messages.Time) {
	running := s.has
	for k := range s.groups {
		if running <= 0 {
			break
		}
		s.groups[k].left -= now - s.at
		running -= s.groups[k].tasks
	}
	s.at = now
}

// cut divides the group that the n-th task is in, so that the first n tasks are whole
// groups, and merges all other neighbours that have the same time left.
func (s *split) cut(n int) {
	var out []group
	seen := 0
	for _, g := range s.groups {
		for g.tasks > 0 {
			part := g.tasks
			if seen < n {
				part = min(part, n-seen)
			}
			if last := len(out) - 1; last >= 0 && out[last].left == g.left && seen != n {
				out[last].tasks += part
			} else {
				out = append(out, group{g.left, part})
			}
			seen += part
			g.tasks -= part
		}
	}
	s.groups = out
}

func (w *wide) decide(now messages.Time) error {
	changes, err := w.market.Decide(now)
	if err != nil {
		return err
	}
	w.out.Decisions++
	for _, c := range changes {
		i := int(c.Job) - 1
		s := &w.jobs[i]
		s.advance(now)
		w.note(now, i, c.Was, c.Has)
		s.has = c.Has
		s.cut(c.Has)
		if job := &w.out.Jobs[i]; math.IsNaN(job.Start) && c.Has > 0 {
			job.Start = seconds(now)
		}
		w.announce(i)
	}
	return nil
}

// note records that a job has more slots or fewer.
func (w *wide) note(now messages.Time, i, was, has int) {
	if lost := was - has; lost > 0 {
		w.out.Preemptions += lost
		w.out.Note(w.Problem, Change{seconds(now), i, Suspended, lost})
		return
	}
	again, seen, whole := 0, 0, micros(w.Work.Jobs[i].Runtime)
	for _, g := range w.jobs[i].groups { // of the next to run, those that ran before
		if from, to := max(seen, was), min(seen+g.tasks, has); from < to && g.left < whole {
			again += to - from
		}
		seen += g.tasks
	}
	if again > 0 {
		w.out.Note(w.Problem, Change{seconds(now), i, Resumed, again})
	}
}

// announce plans the next end of a job's tasks. The first running tasks end first,
// as they have the least time left.
func (w *wide) announce(i int) {
	s := &w.jobs[i]
	s.round++
	if s.has > 0 {
		w.ends.Push(s.at+s.groups[0].left, end{int32(i), s.round})
	}
}
