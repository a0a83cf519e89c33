package batchqueue

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// delaysSlowly returns by how long the run of the front job delays each other job. It is a slow reference: it works on
// an array with the number of free nodes in each unit of time. All times must be whole units.
func delaysSlowly(q *Queue, jobs []Job) []float64 {
	out := make([]float64, len(jobs))
	if !q.wide() {
		for i := 1; i < len(jobs); i++ {
			out[i] = jobs[0].Length
		}
		return out
	}
	with, without := startsSlowly(q, jobs, 0), startsSlowly(q, jobs, 1)
	for i := 1; i < len(jobs); i++ {
		out[i] = float64(with[i] - without[i])
	}
	return out
}

func startsSlowly(q *Queue, jobs []Job, from int) []int {
	free := make([]int, 2000)
	for t := range free {
		free[t] = q.Nodes
		for _, r := range q.Running {
			if float64(t) < r.Remaining {
				free[t] -= r.Width
			}
		}
	}
	starts := make([]int, len(jobs))
	for i := from; i < len(jobs); i++ {
		at := 0
		for !room(free, at, int(jobs[i].Length), jobs[i].Width) {
			at++
		}
		for t := at; t < at+int(jobs[i].Length); t++ {
			free[t] -= jobs[i].Width
		}
		starts[i] = at
	}
	return starts
}

func room(free []int, at, length, width int) bool {
	for t := at; t < at+max(length, 1); t++ { // a job of length 0 needs its nodes at one instant
		if free[t] < width {
			return false
		}
	}
	return true
}

// utilities returns what each job gains by the decision about the front job (the terms of equations 4.5 and 4.6). The
// job at position 0 of `jobs` has a value, and each other job has a cost of delay.
func utilities(q *Queue, jobs []Job) []float64 {
	out, delays := make([]float64, len(jobs)), delaysSlowly(q, jobs)
	threshold := 0.0
	for i := 1; i < len(jobs); i++ {
		threshold += jobs[i].Delay * delays[i]
	}
	if jobs[0].Value < threshold {
		return out
	}
	out[0] = jobs[0].Value
	for i := 1; i < len(jobs); i++ {
		out[i] = -jobs[i].Delay * delays[i]
	}
	return out
}

// A profile has one type for each job. profiles calls the function `visit` with every possible profile and its
// probability. A job for which `fixed` returns true has the type that it announced in every profile.
func profiles(q *Queue, e *Expectation, fixed func(i int) bool, visit func(jobs []Job, p float64)) {
	jobs := make([]Job, len(q.Jobs))
	var from func(i int, p float64)
	from = func(i int, p float64) {
		switch {
		case i == len(jobs):
			visit(jobs, p)
		case fixed(i):
			jobs[i] = q.Jobs[i]
			from(i+1, p)
		default:
			for _, point := range e.Priors[i].Points {
				jobs[i] = point.Type
				if e.Mode == Priority {
					jobs[i].Length, jobs[i].Width = q.Jobs[i].Length, q.Jobs[i].Width
				}
				from(i+1, p*point.P)
			}
		}
	}
	from(0, 1)
}

// externalitiesSlowly enumerates equation 4.4 term by term.
func externalitiesSlowly(q *Queue, e *Expectation) []float64 {
	out := make([]float64, len(q.Jobs))
	for j := range out {
		profiles(q, e, func(i int) bool { return i == j }, func(jobs []Job, p float64) {
			for l, u := range utilities(q, jobs) {
				if l != j {
					out[j] += p * u
				}
			}
		})
	}
	return out
}

// small draws a queue with priors, including ties and zeros. All numbers are exact in binary.
func small(r *rand.Rand, most int) (*Queue, *Expectation) {
	q, e := &Queue{}, &Expectation{Mode: Priority, Exact: true}
	if r.IntN(2) == 0 {
		q.Nodes = 1 + r.IntN(6)
		for held := 0; r.IntN(2) == 0 && held < q.Nodes; {
			hold := Hold{Width: 1 + r.IntN(q.Nodes-held), Remaining: float64(r.IntN(8))}
			q.Running = append(q.Running, hold)
			held += hold.Width
		}
	}
	if r.IntN(2) == 0 {
		e.Mode = Full
	}
	for i := range 1 + r.IntN(most) {
		q.Jobs = append(q.Jobs, anyType(r, q, i))
		p := Prior{}
		for left := 8; left > 0; {
			eighths := 1 + r.IntN(left)
			p.Points = append(p.Points, Point{anyType(r, q, i), float64(eighths) / 8})
			left -= eighths
		}
		e.Priors = append(e.Priors, p)
	}
	return q, e
}

func anyType(r *rand.Rand, q *Queue, i int) Job {
	job := Job{Length: float64(r.IntN(8))}
	if i == 0 {
		job.Value = float64(r.IntN(60))
	} else {
		job.Delay = float64(r.IntN(10)) / 2
	}
	if q.wide() {
		job.Width = 1 + r.IntN(q.Nodes)
	}
	return job
}

func TestExactIsSlow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for k := range 4000 {
		q, e := small(r, 5)
		d, err := Decide(q)
		if err != nil {
			t.Fatal(err)
		}
		u := utilities(q, q.Jobs)
		if delays := delaysSlowly(q, q.Jobs); fmt.Sprint(d.Delays) != fmt.Sprint(delays) {
			t.Fatalf("%d: delays %v, want %v: %+v", k, d.Delays, delays, q)
		}
		if runs := u[0] == q.Jobs[0].Value && q.Jobs[0].Value >= d.Threshold; d.Runs != runs {
			t.Fatalf("%d: runs %v, want %v: %+v", k, d.Runs, runs, q)
		}
		p, err := Pay(q, e)
		if err != nil {
			t.Fatal(err)
		}
		if len(q.Jobs) == 1 {
			if p.Net[0] != 0 {
				t.Fatalf("%d: a job alone pays %v", k, p.Net[0])
			}
			continue
		}
		want := externalitiesSlowly(q, e)
		net := make([]float64, len(want))
		transfer(net, want)
		for i := range want {
			if math.Abs(p.Externality[i]-want[i]) > 1e-10 || math.Abs(p.Net[i]-net[i]) > 1e-10 {
				t.Fatalf("%d: externality %v, payments %v; want %v and %v: %+v %+v", k, p.Externality, p.Net, want, net, q, e)
			}
		}
	}
}

// Each estimate must be within five standard errors of the exact expectation. Over many instances, the mean squared
// distance from the expectation must be about as large as the standard errors say.
func TestDrawsComeNear(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	ratio, count := 0.0, 0
	for k := range 300 {
		q, e := small(r, 5)
		exact, err := Pay(q, e)
		if err != nil {
			t.Fatal(err)
		}
		e.Exact, e.Draws, e.Seed = false, 1600, uint64(k)
		p, err := Pay(q, e)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range p.Net {
			off := math.Abs(x - exact.Net[i])
			if off > 6*p.Errors[i]+1e-9 {
				t.Errorf("%d: payment %v ± %v, exactly %v: %+v %+v", k, x, p.Errors[i], exact.Net[i], q, e)
			}
			if p.Errors[i] > 1e-6 {
				ratio += off * off / (p.Errors[i] * p.Errors[i])
				count++
			}
		}
	}
	// An estimate's error divided by its standard error has Student's t distribution with 15 degrees of freedom. The
	// mean of its square is 15/13.
	t.Logf("mean squared ratio %.3f of %d", ratio/float64(count), count)
	if x := ratio / float64(count); count < 100 || x < 0.8 || x > 1.6 {
		t.Errorf("squared errors are %.2f times what they are said to be (%d)", x, count)
	}
}
