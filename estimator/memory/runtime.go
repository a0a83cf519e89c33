package memory

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/estimator/runtime"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// paces has three predictors, which learn from completed jobs. They predict the run time of a task, the wait before a
// job's first claim, and the number of slots of a stage.
type paces struct {
	tasks *runtime.Predictor // seconds that one task takes
	waits *runtime.Predictor // seconds from submission to the first claim
	slots *runtime.Predictor // average number of slots of a stage while it runs
}

// Two predictions count as equal if they differ by at most this much.
const (
	taskGrain = 0.1 // in seconds
	waitGrain = 1   // in seconds
	slotGrain = 0.5 // in slots
)

// learn gives the predictors the numbers of a completed job. A predictor returns an error only if a number is out of
// range; learn then ignores the error and the number.
func (p *paces) learn(o *job.Observation) {
	if o.State != job.Completed {
		return
	}
	if o.Started > 0 {
		_ = p.waits.Observe(waiting(o.Account, o.Name, o.Market, len(o.Stages)), int64(o.Ended), []float64{o.Started.Sub(o.Submitted).Seconds()})
	}
	for i := range o.Stages {
		s := &o.Stages[i]
		work := job.StageWork{}
		if i < len(o.Work) {
			work = o.Work[i]
		}
		p.learnStage(o, s, &work)
	}
}

func (p *paces) learnStage(o *job.Observation, s *job.StageStatus, work *job.StageWork) {
	if s.Done <= 0 {
		return
	}
	shape := job.StageShape{Name: s.Name, Command: work.Command, Tasks: s.Tasks, TimeLimit: work.TimeLimit}
	times := make([]float64, len(work.Runtimes))
	for k, d := range work.Runtimes {
		times[k] = d.Seconds()
	}
	if len(times) == 0 {
		times = []float64{s.SlotTime.Seconds() / float64(s.Done)}
	}
	_ = p.tasks.Observe(task(o.Account, o.Name, &shape), int64(o.Ended), times)
	if span := s.Ended.Sub(s.Started).Seconds(); span > 0 {
		_ = p.slots.Observe(slots(o.Account, o.Market, s.Class, s.Tasks), int64(o.Ended), []float64{s.SlotTime.Seconds() / span})
	}
}

func task(account messages.Name, job string, s *job.StageShape) *runtime.Job {
	return &runtime.Job{User: account, Group: job + "/" + s.Name, Command: s.Command, Size: int64(s.Tasks), Limit: s.TimeLimit.Seconds()}
}

func waiting(account messages.Name, job string, market messages.Name, stages int) *runtime.Job {
	return &runtime.Job{User: account, Group: job, Command: market, Size: int64(stages)}
}

// slots describes a stage as a job whose run time is the number of slots that the stage uses. So package runtime, which
// predicts run times, can predict this number. The prediction depends only on the market, the class and the number of
// tasks. It is at most the number of tasks.
func slots(account, market, class messages.Name, tasks int) *runtime.Job {
	return &runtime.Job{User: account, Group: market, Command: class, Size: int64(tasks), Limit: float64(tasks)}
}

const defaultPart = 0.9

// Runtime returns how long the tasks of stages take.
func (m *Memory) Runtime(r *market.RuntimeRequest) (reply market.RuntimeReply, err error) {
	if err := r.Validate(); err != nil {
		return reply, err
	}
	for i := range r.Stages {
		e, _, err := m.task(r, &r.Stages[i])
		if err != nil {
			return reply, err
		}
		reply.Stages = append(reply.Stages, e)
	}
	return reply, nil
}

// nothingKnown is the source of an answer if there is no estimate.
const nothingKnown = "the run time is not known: no run was observed, and there is no time limit"

// task estimates the run time of one task of a stage. The distribution is nil if nothing is known.
func (m *Memory) task(r *market.RuntimeRequest, s *job.StageShape) (market.RuntimeEstimate, *runtime.Distribution, error) {
	e := market.RuntimeEstimate{Stage: s.Name, Source: nothingKnown}
	d, err := m.paces.tasks.Estimate(task(r.Account, r.Name, s))
	if err != nil || d == nil {
		return e, nil, err
	}
	part := r.Part
	part = cmp.Or(part, defaultPart)
	e.Divergence = d.Divergence()
	if r.Divergence != nil {
		e.Divergence = *r.Divergence
	}
	robust, err := d.Robust(part, e.Divergence)
	if err != nil {
		return e, nil, err
	}
	e.Robust, e.Spread, e.Samples = seconds(robust), spread(d), d.Samples(job.MostRuntimes)
	e.Runs, e.Source = d.Runs, d.Source
	return e, d, nil
}

func spread(d *runtime.Distribution) market.Spread {
	return market.Spread{Low: seconds(d.Quantile(0.1)), Median: seconds(d.Quantile(0.5)), High: seconds(d.Quantile(0.9)), Mean: seconds(d.Mean())}
}

// seconds converts seconds to a duration. A value above 9e9 counts as 9e9, because the longest possible duration is
// only a little longer.
func seconds(x float64) messages.Duration { return messages.Duration(min(x, 9e9) * 1e9) }

// spreadOf returns the spread of simulated times. It sorts the list `times`.
func spreadOf(times []float64) market.Spread {
	slices.Sort(times)
	at := func(part float64) messages.Duration { return seconds(times[int(part*float64(len(times)-1))]) }
	sum := 0.0
	for _, t := range times {
		sum += t / float64(len(times))
	}
	return market.Spread{Low: at(0.1), Median: at(0.5), High: at(0.9), Mean: seconds(sum)}
}
