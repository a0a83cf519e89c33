package deadlineaware

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// oneByOne gives each task of the jobs, in an order, to the slot that is free first. It returns when each job's first
// task starts and its last task ends.
func oneByOne(p *Problem, order []int) (start, finish []float64) {
	free := make([]float64, p.Slots)
	start, finish = make([]float64, len(p.Jobs)), make([]float64, len(p.Jobs))
	for _, i := range order {
		start[i] = slices.Min(free)
		for range p.Jobs[i].Tasks {
			soonest := slices.Index(free, slices.Min(free))
			free[soonest] += p.Jobs[i].Demand / float64(p.Jobs[i].Tasks)
			finish[i] = max(finish[i], free[soonest])
		}
	}
	return start, finish
}

func TestSlotsAreFilledOneByOne(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	for round := range 500 {
		p := randomProblem(t, r, 1+r.IntN(30), anyValuation)
		if round%2 == 0 {
			p.Jobs[0].Tasks *= 1 + r.IntN(200)
		}
		s := schedule(t, p)
		start, finish := oneByOne(p, s.Order)
		if !same(s.Start, start, 1e-9) || !same(s.Completion, finish, 1e-9) {
			t.Fatalf("%+v\n%v\n%v, one by one\n%v\n%v", p, s.Start, s.Completion, start, finish)
		}
		for i := range p.Jobs {
			job := &p.Jobs[i]
			late := job.each()*(1-1/float64(p.Slots)) - (job.span(p.Slots) - job.Demand/float64(p.Slots))
			if s.Completion[i] > s.Target[i]+late+1e-9 {
				t.Fatalf("job %d completes at %v, its target is %v", i, s.Completion[i], s.Target[i])
			}
		}
	}
}

// run is a job's stay on a slot, from Start to Finish.
type run struct {
	Job, Slot, Tasks int
	Start, Finish    float64
}

// runs returns all runs on all slots, in the order of the schedule.
func runs(s *Schedule, p *Problem) (out []run) {
	m := newMachine(p.Slots)
	m.given = func(job, tasks int, s slot, end float64) {
		out = append(out, run{job, int(s.id), tasks, s.free, end})
	}
	for _, j := range s.Order {
		m.place(j, &p.Jobs[j])
	}
	return out
}

// TestRunsAreTheSchedule checks that the runs contain all tasks, do not overlap on a slot, and start and end as the
// schedule says.
func TestRunsAreTheSchedule(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	for range 200 {
		p := randomProblem(t, r, 1+r.IntN(20), anyValuation)
		p.Jobs[0].Tasks *= 40
		s := schedule(t, p)
		free, tasks := make([]float64, p.Slots), make([]int, len(p.Jobs))
		finish := make([]float64, len(p.Jobs))
		for _, run := range runs(s, p) {
			if run.Start != free[run.Slot] || !near(run.Finish-run.Start, float64(run.Tasks)*p.Jobs[run.Job].each(), 1e-9) {
				t.Fatalf("%+v on a slot free at %v", run, free[run.Slot])
			}
			free[run.Slot] = run.Finish
			tasks[run.Job] += run.Tasks
			finish[run.Job] = max(finish[run.Job], run.Finish)
		}
		for i := range p.Jobs {
			if tasks[i] != p.Jobs[i].Tasks || finish[i] != s.Completion[i] {
				t.Fatalf("job %d: %d of %d tasks, complete at %v, not %v", i, tasks[i], p.Jobs[i].Tasks, finish[i], s.Completion[i])
			}
		}
	}
}

// TestTargetsAreExactWhereSlotsComeFreeTogether: completion must equal the target for jobs that use all slots, and
// for any job that is alone.
func TestTargetsAreExactWhereSlotsComeFreeTogether(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 3))
	for range 100 {
		p := randomProblem(t, r, 8, falling)
		for i := range p.Jobs {
			p.Jobs[i].Tasks = p.Slots * (1 + r.IntN(3))
		}
		if s := schedule(t, p); !same(s.Target, s.Completion, 1e-9) {
			t.Fatalf("targets %v, completion %v", s.Target, s.Completion)
		}
		alone := randomProblem(t, r, 1, falling)
		if s := schedule(t, alone); !same(s.Target, s.Completion, 1e-9) {
			t.Fatalf("alone: target %v, completion %v", s.Target, s.Completion)
		}
	}
}

// TestTasksLostInRounding has a billion tasks that are so short that adding them does not change the time.
func TestTasksLostInRounding(t *testing.T) {
	p := &Problem{Slots: 3, Jobs: []Job{{Tasks: 3, Demand: Largest, Valuation: hard(t, 1, 1e12)}, {Tasks: MostTasks, Demand: 1e-3}}}
	p.Jobs[1].Valuation = p.Jobs[0].Valuation
	s := schedule(t, p)
	tasks := 0
	for _, run := range runs(s, p) {
		if run.Job == 1 {
			tasks += run.Tasks
		}
	}
	if tasks != MostTasks || s.Completion[0] < Largest/3 || s.Completion[1] < s.Start[1] {
		t.Errorf("%d tasks, %+v", tasks, s)
	}
}
