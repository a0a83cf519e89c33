package runtime

import (
	"cmp"
	"math"
	"slices"

	"github.com/candor-grid/candor/messages/heap"
)

// Submission is a job of a log, with what became of it.
type Submission struct {
	Job
	Submitted float64 // seconds
	Ended     float64 // seconds, Submitted or later
	Runtime   float64 // seconds
}

// Score is how far an estimate was off, on average over all jobs.
type Score struct {
	Absolute float64 // |estimate − run time|, seconds
	// Relative is the same over the larger of the run time and a minute, without
	// unit: short jobs are not to decide it.
	Relative float64
}

// Evaluation compares three estimates of the run time, all made when a job is
// submitted, from jobs that had ended by then.
type Evaluation struct {
	Jobs    int
	Request Score // the user's own limit
	LastTwo Score // mean of the user's last two jobs, up to the limit; without any, the limit
	Ours    Score // the median of Predictor's distribution
	// Covered is the part of jobs that needed at most the robust demand at 0.9. Run times are
	// cut at the limits, which some logs exceed.
	Covered float64
}

// Evaluate runs through a log in the order of submission. Jobs without a limit
// are left out, as there is nothing to compare with.
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
