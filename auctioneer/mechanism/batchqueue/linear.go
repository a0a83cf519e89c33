package batchqueue

import "slices"

// linear is an expectation over random draws. In each draw, the delay costs the other jobs
//
//	scale · Σ_l cost_l·d_l
//
// where cost_l is the same in all draws. If lengths and widths are as announced, scale is 1 and cost_l is the delay of
// job l. If each job takes the whole machine, scale is the front job's length and cost_l is 1.
type linear struct {
	priority bool
	jobs     []Job
	cost     []float64 // by position; 0 for the front job

	// The following slices have an element for each draw. They are computed for a batch of draws at a time.

	terms [][]float64 // by draw, then position: cost_l·d_l, with the drawn d_l
	total []float64   // Σ_l cost_l·d_l
	value []float64   // the drawn value of the front job
	scale []float64
}

func newLinear(q *Queue, e *Expectation) (*linear, bool) {
	l := &linear{priority: e.Mode == Priority, jobs: q.Jobs}
	switch {
	case l.priority:
		l.cost = decide(q).Delays
	case !q.wide():
		l.cost = make([]float64, len(q.Jobs))
		for i := 1; i < len(l.cost); i++ {
			l.cost[i] = 1
		}
	default:
		return nil, false
	}
	return l, true
}

// front returns two numbers, value and scale. The front job runs if its value is at least the sum of the other jobs'
// costs of delay, multiplied by the scale. In the mode Priority, lengths are as announced, and the scale is 1.
// Otherwise the scale is the length in the type t.
func (l *linear) front(t *Job) (value, scale float64) {
	if l.priority {
		return t.Value, 1
	}
	return t.Value, t.Length
}

// drawn returns a function that adds up the externalities over a batch of draws, and stores the sums in its argument
// `sums`. A draw costs O(1) for each job. The reason: if the job's drawn type is replaced by the type that it
// announced, only one term of the total changes.
func (l *linear) drawn(draws *sampler) func(b int, sums []float64) {
	l.terms = make([][]float64, len(l.jobs))
	return func(b int, sums []float64) {
		l.draw(draws, b)
		sums[0] = l.frontSum()
		for j := 1; j < len(l.jobs); j++ {
			sums[j] = l.waitingSum(j)
		}
	}
}

func (l *linear) draw(draws *sampler, b int) {
	l.value, l.scale, l.total = l.value[:0], l.scale[:0], l.total[:0]
	for _, u := range draws.column(0, b) {
		value, scale := l.front(draws.types[0].at(u))
		l.value, l.scale, l.total = append(l.value, value), append(l.scale, scale), append(l.total, 0)
	}
	for j := 1; j < len(l.jobs); j++ {
		in, cost, numbers := draws.types[j], l.cost[j], draws.column(j, b)
		terms, total := slices.Grow(l.terms[j][:0], len(numbers))[:len(numbers)], l.total[:len(numbers)]
		for k, u := range numbers {
			terms[k] = cost * in.delay(u)
			total[k] += terms[k]
		}
		l.terms[j] = terms
	}
}

func (l *linear) frontSum() (sum float64) {
	value, scale := l.front(&l.jobs[0])
	for _, total := range l.total {
		if worth(value, scale*total) {
			sum -= scale * total
		}
	}
	return sum
}

func (l *linear) waitingSum(j int) (sum float64) {
	announced := l.cost[j] * l.jobs[j].Delay
	for k, term := range l.terms[j] {
		others := l.total[k] - term
		if value, scale := l.value[k], l.scale[k]; worth(value, scale*(others+announced)) {
			sum += value - scale*others
		}
	}
	return sum
}
