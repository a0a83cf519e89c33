package aria

import (
	"cmp"
	"math"
	"slices"

	"github.com/candor-grid/candor/messages/heap"
)

// Schedule runs an instance, task by task.
func Schedule(in *Instance) (*Result, error) {
	if err := in.Check(); err != nil {
		return nil, err
	}
	n := len(in.Jobs)
	s := &state{Instance: in, free: slices.Clone(in.Slots),
		result: &Result{Start: make([]float64, n), Finish: make([]float64, n), InTime: make([]bool, n)}}
	arrivals := make([]*progress, n)
	for i := range in.Jobs {
		arrivals[i] = &progress{Job: &in.Jobs[i], index: i, rest: slices.Clone(in.Jobs[i].Phases)}
	}
	slices.SortStableFunc(arrivals, func(a, b *progress) int { return cmp.Compare(a.Submit, b.Submit) })
	for len(arrivals) > 0 || len(s.running) > 0 {
		s.now = s.next(arrivals)
		for len(s.running) > 0 && s.running[0].at <= s.now {
			s.end(byEnd.Pop(&s.running))
		}
		for len(arrivals) > 0 && arrivals[0].Submit <= s.now {
			s.arrive(arrivals[0])
			arrivals = arrivals[1:]
		}
		s.assign()
	}
	return s.result, nil
}

type state struct {
	*Instance
	now     float64
	free    []int       // by class
	active  []*progress // in the order of deadline, submission, index
	running []event     // a heap, byEnd
	fewest  []int
	result  *Result
}

type progress struct {
	*Job
	index   int
	rest    []Phase // remaining phases; Tasks is the number of tasks that have not ended
	started int     // number of started tasks of the current phase
	running int
}

func (s *state) next(arrivals []*progress) float64 {
	next := math.Inf(1)
	if len(arrivals) > 0 {
		next = arrivals[0].Submit
	}
	if len(s.running) > 0 {
		next = min(next, s.running[0].at)
	}
	return next
}

func (s *state) arrive(job *progress) {
	s.result.Offered += job.Value
	s.result.Start[job.index] = math.NaN()
	if s.move(job) {
		s.result.Start[job.index] = s.now
		return
	}
	at, _ := slices.BinarySearchFunc(s.active, job, byDeadline)
	s.active = slices.Insert(s.active, at, job)
}

func byDeadline(a, b *progress) int {
	return cmp.Or(cmp.Compare(a.Deadline, b.Deadline), cmp.Compare(a.Submit, b.Submit), cmp.Compare(a.index, b.index))
}

// A job has a list of phases, which run one after another. move removes the phases at the front that have no tasks
// left. It returns true if no phase is left.
func (s *state) move(job *progress) bool {
	for len(job.rest) > 0 && job.rest[0].Tasks == 0 {
		job.rest = job.rest[1:]
		job.started = 0
	}
	if len(job.rest) > 0 {
		return false
	}
	s.result.Finish[job.index] = s.now
	if s.now <= job.Deadline {
		s.result.InTime[job.index] = true
		s.result.Profit += job.Value
	}
	return true
}

func (s *state) end(e event) {
	job := e.job
	s.free[job.rest[0].Class]++
	job.running--
	job.rest[0].Tasks--
	if job.rest[0].Tasks == 0 && s.move(job) {
		at, _ := slices.BinarySearchFunc(s.active, job, byDeadline)
		s.active = slices.Delete(s.active, at, at+1)
	}
}

// assign gives the free slots to jobs. Each job first gets the slots that it needs for its deadline. The slots that are
// left are given according to the instance's Rule.
func (s *state) assign() {
	late, _ := slices.BinarySearchFunc(s.active, s.now, func(p *progress, now float64) int {
		return cmp.Compare(p.Deadline, now)
	})
	order := [2][]*progress{s.active[late:], s.active[:late]}
	for _, part := range order {
		for _, job := range part {
			s.start(job, s.need(job))
		}
	}
	if s.Rule != Spare {
		return
	}
	for _, part := range order {
		for _, job := range part {
			s.start(job, math.MaxInt)
		}
	}
}

// need returns the number of slots that the job's current phase should have. If no slot of the phase's class is free,
// the number does not matter.
func (s *state) need(job *progress) int {
	if s.Rule == Most || s.free[job.rest[0].Class] == 0 {
		return math.MaxInt
	}
	s.fewest, _ = Fewest(job.rest, s.Slots, job.Deadline-s.now, s.fewest)
	return s.fewest[0]
}

// start starts tasks of a job's current phase until `most` tasks of the job run. It stops earlier if no task or no free
// slot is left.
func (s *state) start(job *progress, most int) {
	p := &job.rest[0]
	for job.running < min(most, p.Tasks) && s.free[p.Class] > 0 {
		if math.IsNaN(s.result.Start[job.index]) {
			s.result.Start[job.index] = s.now
		}
		took := p.Mean
		if job.Durations != nil {
			took = job.Durations[len(job.Phases)-len(job.rest)][job.started]
		}
		job.started++
		job.running++
		s.free[p.Class]--
		byEnd.Push(&s.running, event{s.now + took, job})
	}
}

// event is the time at which a task of a job ends.
type event struct {
	at  float64
	job *progress
}

var byEnd = heap.Order[event]{Before: func(a, b event) bool {
	return a.at < b.at || a.at == b.at && a.job.index < b.job.index
}}
