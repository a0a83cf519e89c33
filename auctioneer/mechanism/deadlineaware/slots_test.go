package deadlineaware

import (
	"cmp"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// oneByOne takes the jobs in the given order. It gives each task to a slot that is open and free for the task's whole
// time, and takes the slot where the task can start first. For each job it returns the start of the first task and the
// end of the last task. If a task does not fit before a slot closes, the time before the closing stays free, and a
// shorter task of a later job may use it.
func oneByOne(p *Problem, order []int) (start, finish []float64) {
	free, shut := make([]float64, p.Slots), closed(p)
	start, finish = make([]float64, len(p.Jobs)), make([]float64, len(p.Jobs))
	for _, i := range order {
		job := &p.Jobs[i]
		start[i] = math.Inf(1)
		for range job.Tasks {
			open := slices.Clone(free)
			for k := range shut {
				for _, c := range shut[k] {
					if open[k] < c.To && open[k]+max(job.each(), job.Limit) > c.From {
						open[k] = c.To
					}
				}
			}
			soonest := slices.Index(open, slices.Min(open))
			start[i] = min(start[i], open[soonest])
			free[soonest] = open[soonest] + job.each()
			finish[i] = max(finish[i], free[soonest])
		}
	}
	return start, finish
}

// Some slots close and open again at given times. The tasks that the mechanism puts on the slots must be the same as in
// a simple computation that places one task after another.
func TestSlotsOpenAndClose(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 7))
	for round := range 500 {
		p := randomProblem(t, r, 1+r.IntN(30), anyValuation)
		if round%2 == 0 {
			p.Jobs[0].Tasks *= 1 + r.IntN(200)
		}
		for range 1 + r.IntN(4) {
			from := 10 * r.Float64()
			p.Closings = append(p.Closings, Closing{From: from, To: from + 5*r.Float64(), Slots: 1 + r.IntN(p.Slots)})
		}
		slices.SortFunc(p.Closings, func(a, b Closing) int { return cmp.Compare(a.From, b.From) })
		for i := range p.Jobs {
			p.Jobs[i].Limit = []float64{0, 3 * r.Float64(), math.Inf(1)}[r.IntN(3)]
		}
		s := schedule(t, p)
		start, finish := oneByOne(p, s.Order)
		if !same(s.Start, start, 1e-9) || !same(s.Completion, finish, 1e-9) {
			t.Fatalf("%+v\n%v\n%v, one by one\n%v\n%v", p, s.Start, s.Completion, start, finish)
		}
	}
}

// Closings that overlap in time must take different slots. A slot may close several times, one closing after another.
func TestClosingsTakeTheirSlots(t *testing.T) {
	a, b, c := Closing{0, 10, 2}, Closing{5, 15, 1}, Closing{10, 20, 9}
	want := [][]Closing{{c}, {b}, {a, c}, {a, c}}
	if got := closed(&Problem{Slots: 4, Closings: []Closing{a, b, c}}); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
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

// run says when a group of a job's tasks uses a slot: from Start to Finish.
type run struct {
	Job, Slot, Tasks int
	Start, Finish    float64
}

// runs returns the run of each group of tasks on a slot. It takes the jobs in the order of the schedule.
func runs(s *Schedule, p *Problem) (out []run) {
	m := newMachine(p)
	m.given = func(job, tasks int, s slot, end float64) {
		out = append(out, run{job, int(s.id), tasks, s.free, end})
	}
	for _, j := range s.Order {
		m.place(j, &p.Jobs[j])
	}
	return out
}

// A run is a group of tasks of one job that run one after another on a slot. The runs must contain all tasks, must not
// overlap on a slot, and must start and end as the schedule says.
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

// In two cases, a job's completion must equal the target that the mechanism computed for the job. In the first case,
// each job can use all slots. In the second case, there is only one job.
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

// A billion tasks are so short that a slot's time in float64 does not change when such a task is added. All of them
// must still be in the schedule.
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
