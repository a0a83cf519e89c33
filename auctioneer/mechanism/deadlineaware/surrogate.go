package deadlineaware

import (
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism/valuation"
	"github.com/candor-grid/candor/messages"
)

// Hypothesis is what a job would get if it had declared another valuation.
type Hypothesis struct {
	Target     float64 // this field and the next ones are as in Schedule
	Completion float64
	GivenUp    bool
}

// CompletionTimes returns when a job would complete, in seconds from now, for each of the surrogates: valuations that
// the job might have declared in place of its own. The function New would compute exactly the same times for a job with
// such a valuation.
func CompletionTimes(p *Problem, job int, surrogates []valuation.Curve) ([]float64, error) {
	all, err := Hypotheses(p, job, surrogates)
	if err != nil {
		return nil, err
	}
	times := make([]float64, len(all))
	for k, h := range all {
		times[k] = h.Completion
	}
	return times, nil
}

// Hypotheses returns what New would decide for a job, for each valuation that it might declare instead.
func Hypotheses(p *Problem, job int, surrogates []valuation.Curve) ([]Hypothesis, error) {
	if job < 0 || job >= len(p.Jobs) {
		return nil, messages.Errorf(messages.Invalid, "job: must be the index of one of the %d jobs, is %d", len(p.Jobs), job)
	}
	q, err := newPlanner(p)
	if err != nil {
		return nil, err
	}
	w := whatIf{q, job, map[string]*others{}}
	all := make([]Hypothesis, len(surrogates))
	for k := range surrogates {
		all[k] = w.ask(&surrogates[k])
	}
	return all, nil
}

// whatIf computes what a job would get with different valuations.
type whatIf struct {
	*planner
	job    int
	served map[string]*others // by set of served jobs
}

// others has the results of what-if questions that lead to the same set of served jobs. A what-if question asks when a
// job would complete if it had another valuation. Many valuations of a job lead to the same set, so the results are
// computed only once.
type others struct {
	served []bool
	layers []layer       // the other served jobs, the last one first, in the order that they have if this job comes before all of them
	seen   []*Hypothesis // by number of layers that come after the job
	before *before       // nil if the job is not served
}

func (w *whatIf) ask(surrogate *valuation.Curve) Hypothesis {
	x := w.item(w.job, surrogate)
	if x.work == 0 {
		return Hypothesis{Completion: w.whenIdle()}
	}
	o := w.othersOf(w.serve(&x))
	after := 0
	if o.served[w.job] {
		after = w.after(o, &x)
	}
	if o.seen[after] == nil {
		o.seen[after] = w.answer(o, after)
	}
	return *o.seen[after]
}

func (w *whatIf) whenIdle() (completion float64) {
	m := newMachine(w.Problem)
	for _, j := range w.idle[:slices.Index(w.idle, int32(w.job))+1] {
		_, completion = m.place(int(j), &w.Jobs[j])
	}
	return completion
}

func (w *whatIf) othersOf(served []bool) *others {
	key := make([]byte, len(served))
	for j, s := range served {
		if s {
			key[j] = 1
		}
	}
	o := w.served[string(key)]
	if o != nil {
		return o
	}
	o = &others{served: served, seen: make([]*Hypothesis, 1)}
	if served[w.job] {
		rest := slices.Clone(served)
		rest[w.job] = false
		o.layers = w.peel(w.pick(w.byTop, rest, true), w.items[w.job].work)
		o.seen = make([]*Hypothesis, len(o.layers)+1)
		o.before = newBefore(w.planner, o.layers)
	}
	w.served[string(key)] = o
	return o
}

// after returns how many of the other jobs get slots later than this job. o.layers has the other jobs, beginning with
// the job that would be last if this job did not exist. after compares this job with one layer after the other, and
// stops at the first layer in which this job should be last.
func (w *whatIf) after(o *others, x *item) int {
	for k, l := range o.layers {
		if goesLast(x, &w.items[l.job], l.t, x.at(l.t), l.utility) {
			return k
		}
	}
	return len(o.layers)
}

// whatIf asks what would happen to one job. answer returns the outcome for this job, if slots go first to all jobs that
// come before it in the order, and then to this job.
func (w *whatIf) answer(o *others, after int) *Hypothesis {
	x := &w.items[w.job]
	if !o.served[w.job] {
		return w.lost(o)
	}
	t := x.work / w.slots
	if after < len(o.layers) {
		t = o.layers[after].t
	}
	_, completion := o.before.machine(after).place(w.job, &w.Jobs[w.job])
	return &Hypothesis{Target: t + x.spill, Completion: completion}
}

// lost returns the outcome for the job if the scheduler gives the job up.
func (w *whatIf) lost(o *others) *Hypothesis {
	h := &Hypothesis{GivenUp: true}
	x, work, m := &w.items[w.job], 0.0, newMachine(w.Problem)
	for _, j := range w.order(o.served) {
		work += w.items[j].work
		_, h.Completion = m.place(int(j), &w.Jobs[j])
		if int(j) == w.job {
			break
		}
	}
	h.Target = work/w.slots + x.spill
	return h
}
