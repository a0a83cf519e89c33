package memory

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/candor-grid/candor/estimator/runtime"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// plays is the number of times that a job is simulated.
const plays = 512

// Estimate returns what a job is worth, how long a task of each stage runs, and when the job would be complete. The job
// must be valid.
func (m *Memory) Estimate(account messages.Name, spec *job.JobSpec) (reply market.EstimateReply, err error) {
	if reply.Utility, reply.Declared, err = m.worth(account, spec); err != nil {
		return reply, err
	}
	r := &market.RuntimeRequest{Account: account, Name: spec.Name}
	draws := make([]stageDraws, len(spec.Stages))
	for i := range spec.Stages {
		s := &spec.Stages[i]
		shape := s.Shape()
		e, d, err := m.task(r, &shape)
		if err != nil {
			return reply, err
		}
		reply.Stages = append(reply.Stages, e)
		if draws[i], err = m.stage(account, spec, i, d); err != nil {
			return reply, err
		}
	}
	return m.play(account, spec, draws, reply)
}

// worth returns the utility function that the job declares. If the job declares none, worth returns a function that was
// learned from earlier runs, or the default.
func (m *Memory) worth(account messages.Name, spec *job.JobSpec) (r market.UtilityReply, declared bool, err error) {
	if spec.Utility != nil {
		return market.UtilityReply{Utility: *spec.Utility}, true, nil
	}
	request := &market.UtilityRequest{Account: account, Name: spec.Name, Market: spec.Market}
	for i := range spec.Stages {
		request.Classes = append(request.Classes, spec.Stages[i].Class)
	}
	r, err = m.Utility(request)
	return r, false, err
}

// stageDraws has what is needed to simulate a stage: the distributions of its run times and slots, and the stages
// before it.
type stageDraws struct {
	task  *runtime.Distribution // seconds of a task; nil means that nothing is known
	slots *runtime.Distribution // average slots while the stage runs; nil means that nothing is known
	tasks float64
	most  float64 // the largest number of slots at once
	after []int
}

func (m *Memory) stage(account messages.Name, spec *job.JobSpec, i int, task *runtime.Distribution) (stageDraws, error) {
	s := &spec.Stages[i]
	d := stageDraws{task: task, tasks: float64(s.TaskCount())}
	d.most = d.tasks
	if s.MaxRunning > 0 {
		d.most = min(d.most, float64(s.MaxRunning))
	}
	for k := range spec.Stages {
		if slices.Contains(s.After, spec.Stages[k].Name) {
			d.after = append(d.after, k)
		}
	}
	var err error
	j := slots(account, spec.Market, s.Class, s.TaskCount())
	if d.slots, err = m.paces.slots.Estimate(j); err == nil && d.slots != nil && d.slots.Runs == 0 {
		d.slots = nil // no run was observed: the number comes only from the number of tasks
	}
	return d, err
}

// play simulates the job many times, and returns `reply` with the simulated times. If the wait before a job's first
// slot is unknown, the simulated job does not wait. If the number of slots of a stage is unknown, the stage gets one
// slot. If the run time of a stage is unknown, play returns `reply` unchanged.
func (m *Memory) play(account messages.Name, spec *job.JobSpec, draws []stageDraws, reply market.EstimateReply) (market.EstimateReply, error) {
	wait, err := m.paces.waits.Estimate(waiting(account, spec.Name, spec.Market, len(spec.Stages)))
	if err != nil {
		return reply, err
	}
	reply.Source = "no job was observed: the estimate assumes that the job gets one slot at once"
	if wait != nil {
		reply.Wait, reply.Runs = spread(wait), wait.Runs
		reply.Source = "waits and slots of " + wait.Source
	}
	for i := range draws {
		if draws[i].task == nil {
			reply.Source = fmt.Sprintf("the run time of stage %s is not known", spec.Stages[i].Name)
			return reply, nil
		}
	}
	order, ok := ordered(draws)
	if !ok {
		return reply, messages.Errorf(messages.Invalid, "stages: wait for one another in a circle")
	}
	r := rand.New(rand.NewPCG(plays, uint64(len(draws)))) // a fixed seed: the same job always gets the same answer
	ends, times := make([]float64, len(draws)), make([]float64, plays)
	for k := range times {
		begin := 0.0
		if wait != nil {
			begin = wait.Quantile(r.Float64())
		}
		times[k] = once(r, draws, order, begin, ends)
	}
	reply.Completion = spreadOf(times)
	return reply, nil
}

// This function simulates the job once with random run times, and returns when the job is complete.
func once(r *rand.Rand, draws []stageDraws, order []int, begin float64, ends []float64) float64 {
	last := begin
	for _, i := range order {
		d := &draws[i]
		start := begin
		for _, k := range d.after {
			start = max(start, ends[k])
		}
		ends[i] = start + d.span(r)
		last = max(last, ends[i])
	}
	return last
}

// span returns how long the stage takes: its work divided by its slots, but not less than the time of one task.
func (d *stageDraws) span(r *rand.Rand) float64 {
	slots := 1.0
	if d.slots != nil {
		slots = d.slots.Quantile(r.Float64())
	}
	task := d.task.Quantile(r.Float64())
	slots = min(d.most, max(slots, leastSlots))
	return min(runtime.Largest, max(task, task*d.tasks/slots))
}

// leastSlots is the least average number of slots of a stage: one slot for a hundredth of the time.
const leastSlots = 0.01

// ordered sorts the stages: each comes after the stages that it waits for. The second result is false if there is no
// such order, because stages wait for each other in a circle.
func ordered(draws []stageDraws) (order []int, ok bool) {
	placed := make([]bool, len(draws))
	for range draws {
		for i := range draws {
			ready := !placed[i] && !slices.ContainsFunc(draws[i].after, func(k int) bool { return !placed[k] })
			if ready {
				placed[i] = true
				order = append(order, i)
			}
		}
	}
	return order, len(order) == len(draws)
}
