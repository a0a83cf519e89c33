package runtime

import (
	"cmp"
	"math"
	"slices"

	"github.com/candor-grid/candor/messages/heap"
)

// Submission is a job of a log, with its end and its run time.
type Submission struct {
	Job
	Submitted float64 // in seconds
	Ended     float64 // in seconds, not before Submitted
	Runtime   float64 // in seconds
}

// Score is the mean error of an estimate over all jobs.
type Score struct {
	Absolute float64 // |estimate − run time|, in seconds
	// Relative is the error divided by the run time, or by a minute if that is longer, so that short jobs do not
	// dominate it.
	Relative float64
}

// Evaluation compares three estimates of the run time of jobs. Each estimate is made when the job is submitted. It uses
// only jobs that had ended by then.
type Evaluation struct {
	Jobs    int
	Request Score // the error of the user's own limit
	LastTwo Score // the error of the mean of the user's last two jobs, up to the limit; without such jobs, of the limit
	Ours    Score // the error of the median of Predictor's distribution
	// Covered is the fraction of the jobs that ran no longer than the robust demand: the run time that should be enough
	// with a probability of 0.9. In some logs, jobs run longer than their limits. Such run times are cut at the limit.
	Covered float64
}

// Evaluate goes through a log in the order of submission. It skips jobs without a time limit, because the estimates are
// compared with this limit.
func Evaluate(log []Submission) (*Evaluation, error) {
	p := New(tenSeconds)
	log = slices.Clone(log)
	log = slices.DeleteFunc(log, func(s Submission) bool { return !(s.Limit > 0) || s.Check() != nil })
	slices.SortStableFunc(log, func(a, b Submission) int { return cmp.Compare(a.Submitted, b.Submitted) })
	e, last := &Evaluation{}, map[string][]float64{}
	var running []*Submission
	byEnd := heap.Order[*Submission]{Before: func(a, b *Submission) bool { return a.Ended < b.Ended }}
	for i := range log {
		s := &log[i]
		for len(running) > 0 && running[0].Ended <= s.Submitted {
			done := byEnd.Pop(&running)
			if err := p.Observe(&done.Job, int64(done.Ended*1e6), []float64{done.Runtime}); err != nil {
				return nil, err
			}
			latest := append(last[done.User], done.Runtime)
			last[done.User] = latest[max(0, len(latest)-2):]
		}
		byEnd.Push(&running, s)
		d, err := p.Estimate(&s.Job)
		if err != nil {
			return nil, err
		}
		e.add(s, meanOr(last[s.User], s.Limit), d)
	}
	e.divide()
	return e, nil
}

func meanOr(x []float64, limit float64) float64 {
	if len(x) == 0 {
		return limit
	}
	sum := 0.0
	for _, v := range x {
		sum += v / float64(len(x))
	}
	return min(sum, limit)
}

func (e *Evaluation) add(s *Submission, lastTwo float64, d *Distribution) {
	e.Jobs++
	e.Request.add(s.Limit, s.Runtime)
	e.LastTwo.add(lastTwo, s.Runtime)
	e.Ours.add(d.Quantile(0.5), s.Runtime)
	if d.Quantile(needed(0.9, d.Divergence())) >= min(s.Runtime, s.Limit) {
		e.Covered++
	}
}

func (s *Score) add(estimate, truth float64) {
	off := math.Abs(estimate - truth)
	s.Absolute += off
	s.Relative += off / max(truth, 60)
}

func (e *Evaluation) divide() {
	n := float64(max(1, e.Jobs))
	for _, s := range []*Score{&e.Request, &e.LastTwo, &e.Ours} {
		s.Absolute /= n
		s.Relative /= n
	}
	e.Covered /= n
}
