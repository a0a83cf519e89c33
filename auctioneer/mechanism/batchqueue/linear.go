package batchqueue

// linear is an expectation in which what the others' delay costs is
//
//	scale · Σ_l cost_l·d_l
//
// with costs that are known before anything is drawn. So it is when lengths and
// widths are as announced (scale 1, cost_l the delay of job l), and when each
// job takes the whole machine (scale the front job's length, cost_l = 1).
type linear struct {
	priority bool
	jobs     []Job
	cost     []float64 // by position; 0 for the front job
	total    []float64 // by draw of a batch: Σ_l cost_l·d_l as drawn
	value    []float64 // by draw: the front job's as drawn
	scale    []float64
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

// front reads a type of the front job.
func (l *linear) front(t *Job) (value, scale float64) {
	if l.priority {
		return t.Value, 1
	}
	return t.Value, t.Length
}

// estimate adds to the sums of each batch. A draw costs O(1) for each job: that
// a job announces something else than was drawn for it changes one term of the
// total.
func (l *linear) estimate(draws *sampler, means *batchMeans) {
	for b, sums := range means.sums {
		size := batch(means.draws, b)
		l.draw(draws, b, size)
		sums[0] = l.frontSum()
		for j := 1; j < len(l.jobs); j++ {
			sums[j] = l.waitingSum(j, draws.types[j], draws.column(j, b, size))
		}
	}
}

// draw draws a batch of the front job's types and of totals.
func (l *linear) draw(draws *sampler, b, size int) {
	if cap(l.total) < size {
		l.total, l.value, l.scale = make([]float64, size), make([]float64, size), make([]float64, size)
	}
	l.total, l.value, l.scale = l.total[:size], l.value[:size], l.scale[:size]
	for k, u := range draws.column(0, b, size) {
		l.value[k], l.scale[k] = l.front(draws.types[0].at(u))
	}
	clear(l.total)
	for j := 1; j < len(l.jobs); j++ {
		in, cost := draws.types[j], l.cost[j]
		if cost == 0 {
			continue
		}
		for k, u := range draws.column(j, b, size) {
			l.total[k] += cost * in.at(u).Delay
		}
	}
}

// frontSum sums the externality of the front job over a batch.
func (l *linear) frontSum() (sum float64) {
	value, scale := l.front(&l.jobs[0])
	for _, total := range l.total {
		if worth(value, scale*total) {
			sum -= scale * total
		}
	}
	return sum
}

// waitingSum sums the externality of a waiting job over a batch.
func (l *linear) waitingSum(j int, in *inverse, column []float64) (sum float64) {
	cost, announced := l.cost[j], l.cost[j]*l.jobs[j].Delay
	for k, u := range column {
		others := l.total[k]
		if cost != 0 {
			others -= cost * in.at(u).Delay
		}
		if value, scale := l.value[k], l.scale[k]; worth(value, scale*(others+announced)) {
			sum += value - scale*others
		}
	}
	return sum
}
