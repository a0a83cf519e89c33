package core

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/candor-grid/candor/auctioneer/mechanism/deadline"
	"github.com/candor-grid/candor/messages"
)

// runDeadline simulates the tasks of all jobs. Its time runs in whole units of Market.Slot.
func runDeadline(p *Problem) (*Outcome, error) {
	o := NewOutcome(p)
	p = p.withSlot()
	o.Notes = append(o.Notes, fmt.Sprintf("time is counted in units of %v", p.Market.Slot))
	problem, owner, err := tasksOf(p, o)
	if err != nil {
		return nil, err
	}
	if p.Payers != nil {
		problem.Asked = func(task int) bool { return p.Payers[owner[task]] }
	}
	var stop int
	if stop, problem.Past = p.past(); p.stop != nil {
		p.stop.deadline, p.stop.slot, err = deadline.Until(problem, stop), p.Market.Slot, problem.Check()
		return o, err
	}
	completed, payments, units, err := allot(p, problem)
	if err != nil {
		return nil, err
	}
	for k, i := range owner {
		job, j := &o.Jobs[i], &p.Work.Jobs[i]
		had := units(k)
		if len(had) == 0 {
			job.Fate = Expired
			continue
		}
		start, finish := span(p.Market.Slot.Seconds(), had, j.Runtime)
		if math.IsNaN(job.Start) || start < job.Start {
			job.Start = start
		}
		job.Finish = max(job.Finish, finish)
		o.gaps(p, i, had)
		job.Paid += Money(payments[k])
		if !completed[k] || tooShort(p, i) {
			job.Fate = Expired
			job.Used += float64(len(had)) * p.Market.Slot.Seconds()
			continue
		}
		job.Used += j.Runtime
		job.InTime += 1 / float64(j.Width)
	}
	o.order()
	for i := range o.Jobs {
		if job := &o.Jobs[i]; job.Fate != Completed {
			job.Finish = max(p.Work.Jobs[i].Submit, p.Bids[i].Deadline)
		}
		o.Jobs[i].InTime = min(1, o.Jobs[i].InTime)
	}
	return o, nil
}

// gaps records each suspension of a task: a gap between two of its units.
func (o *Outcome) gaps(p *Problem, job int, units []int) {
	slot := p.Market.Slot.Seconds()
	for k := 1; k < len(units); k++ {
		if units[k] > units[k-1]+1 {
			o.Preemptions++
			o.Note(p, Change{float64(units[k-1]+1) * slot, job, Suspended, 1})
			o.Note(p, Change{float64(units[k]) * slot, job, Resumed, 1})
		}
	}
}

// withSlot returns a copy of the problem. If the market sets no unit of time, the copy's market gets the unit that the
// study uses.
func (p *Problem) withSlot() *Problem {
	market, q := *p.Market, *p
	market.Slot = p.Slot()
	q.Market = &market
	return &q
}

// Slot returns the unit of time for mechanism deadline. If the market has no unit, it is the smallest suitable multiple
// of ten seconds. Suitable means that the study has at most mostSpan units, and that its tasks need at most mostWork
// units: all needed units are kept in memory.
func (p *Problem) Slot() messages.Duration {
	const unit, mostSpan, mostWork = 10, 900_000, 25_000_000 // unit is in seconds, mostSpan and mostWork are in units
	if p.Market.Slot > 0 {
		return p.Market.Slot
	}
	from, to := p.Work.Span()
	work := 0.0
	for i := range p.Bids {
		if d := p.Bids[i].Deadline; !math.IsInf(d, 1) {
			to = max(to, d)
		}
		work += p.Bids[i].Length * float64(p.Work.Jobs[i].Width)
	}
	return messages.Duration(unit * 1e9 * math.Ceil(max(1, (to-from)/unit/mostSpan, work/unit/mostWork)))
}

// tooShort reports whether a job declared fewer units than its run time needs. Such a job gets only the units that it
// declared, and does not complete.
func tooShort(p *Problem, i int) bool {
	slot := p.Market.Slot.Seconds()
	return unitsOf(p.Bids[i].Length, slot)*slot < p.Work.Jobs[i].Runtime
}

func unitsOf(length, slot float64) float64 { return max(1, math.Ceil(length/slot)) }

// tasksOf makes the tasks, and returns the job of each. It refuses jobs that cannot meet their deadlines. Jobs without
// run time complete at once.
func tasksOf(p *Problem, o *Outcome) (*deadline.Problem, []int, error) {
	slot := p.Market.Slot.Seconds()
	problem := &deadline.Problem{Capacity: p.Slots(), Lambda: *p.Market.Lambda, Rule: deadline.Monotone, Scale: p.Market.Scale}
	if p.Market.Rule == "paper" {
		problem.Rule = deadline.Paper
	}
	if _, tasks := p.Work.Widest(); tasks > mostTasks {
		return nil, nil, messages.Errorf(messages.TooLarge, "the jobs are split into %d tasks; the mechanism \"deadline\" takes at most %d: study a shorter time, or skip parallel jobs", tasks, mostTasks)
	}
	var owner []int
	for i := range p.Work.Jobs {
		j, b := &p.Work.Jobs[i], &p.Bids[i]
		if j.Runtime == 0 {
			p.complete(o, i, j.Submit, j.Submit, 0)
			continue
		}
		task := deadline.Task{Arrival: int(math.Ceil(j.Submit / slot)), Length: int(unitsOf(b.Length, slot)), Value: b.Rate * b.Length}
		if math.IsInf(b.Deadline, 1) {
			return nil, nil, messages.Errorf(messages.Invalid, "bids.deadline.slack: is \"none\", but in the mechanism \"deadline\" each job needs a deadline: give a slack")
		}
		task.Deadline = int(math.Floor(b.Deadline/slot)) - 1
		if task.Deadline < task.Arrival || task.Impossible() {
			p.refuse(o, i, TooLong)
			continue
		}
		for range j.Width {
			problem.Tasks = append(problem.Tasks, task)
			owner = append(owner, i)
		}
	}
	return problem, owner, nil
}

func allot(p *Problem, problem *deadline.Problem) (completed []bool, payments []float64, units func(int) []int, err error) {
	if groups := p.Market.Groups; groups > problem.Capacity {
		return nil, nil, nil, messages.Errorf(messages.Invalid, "groups: each of the %d groups needs a slot, but there are only %d slots: use fewer groups", groups, problem.Capacity)
	}
	if p.Market.Groups > 1 {
		g := &deadline.Groups{Of: make([]int, len(problem.Tasks))}
		rng := rand.New(rand.NewPCG(p.Seed, 0x67726f757073))
		for i := range g.Of {
			g.Of[i] = rng.IntN(p.Market.Groups)
		}
		for k := range p.Market.Groups {
			g.Capacities = append(g.Capacities, (problem.Capacity+k)/p.Market.Groups)
		}
		out, err := deadline.RunGroups(problem, g)
		if err != nil {
			return nil, nil, nil, err
		}
		return out.Completed, out.Payments, out.Units, nil
	}
	out, err := deadline.Run(problem)
	if err != nil {
		return nil, nil, nil, err
	}
	return out.Completed, out.Payments(), out.Units, nil
}

// span returns when a task starts and ends. It starts with its first unit. It may end before the end of its last unit.
func span(slot float64, units []int, runtime float64) (start, finish float64) {
	start = float64(units[0]) * slot
	last := float64(units[len(units)-1]) * slot
	rest := runtime - float64(len(units)-1)*slot
	return start, last + max(0, min(rest, slot))
}
