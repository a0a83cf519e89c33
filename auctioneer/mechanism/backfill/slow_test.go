package backfill

import (
	"math"
	"slices"
	"sort"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
	"github.com/candor-grid/candor/auctioneer/mechanism/rigid"
)

func TestMain(m *testing.M) { casetest.Main(m, 1500) }

// slowEasy is EASY in the simplest way: with lists, and a walk over the running jobs by their expected ends.
type slowEasy struct{ queue, running []int }

func (e *slowEasy) Arrive(_ *rigid.Machine, job int) { e.queue = append(e.queue, job) }
func (e *slowEasy) End(_ *rigid.Machine, job int) {
	e.running = slices.DeleteFunc(e.running, func(x int) bool { return x == job })
}
func (e *slowEasy) Outlive(*rigid.Machine, int, float64) {}
func (e *slowEasy) Next() float64                        { return math.Inf(1) }

func (e *slowEasy) start(m *rigid.Machine, at int) {
	job := e.queue[at]
	e.queue = slices.Delete(e.queue, at, at+1)
	e.running = append(e.running, job)
	m.Start(job)
}

func (e *slowEasy) Decide(m *rigid.Machine) {
	for len(e.queue) > 0 && m.Jobs[e.queue[0]].Width <= m.Free {
		e.start(m, 0)
	}
	if len(e.queue) == 0 {
		return
	}
	sort.Slice(e.running, func(i, j int) bool { return m.Until(e.running[i]) < m.Until(e.running[j]) })
	free, shadow, width := m.Free, m.Now, m.Jobs[e.queue[0]].Width
	for k := 0; k < len(e.running) && (free < width || m.Until(e.running[k]) == shadow); k++ {
		free += m.Jobs[e.running[k]].Width
		shadow = m.Until(e.running[k])
	}
	spare := free - width
	for at := 1; at < len(e.queue); at++ {
		j := m.Jobs[e.queue[at]]
		inTime := m.Now+j.Estimate <= shadow
		if j.Width > m.Free || !inTime && j.Width > spare {
			continue
		}
		if !inTime {
			spare -= j.Width
		}
		e.start(m, at)
		at--
	}
}

// slowConservative is a simple and slow form of the conservative policy. It keeps its plan as a list of windows.
type slowConservative struct {
	running, waiting []window
	freed, late      bool
}

type window struct {
	job        int
	start, end float64
	width      int
}

func (c *slowConservative) Arrive(m *rigid.Machine, job int) {
	c.replan(m)
	c.waiting = append(c.waiting, c.place(m, job, c.waiting))
}

// place returns the earliest window that overlaps neither the running jobs nor the windows in the list `others`.
func (c *slowConservative) place(m *rigid.Machine, job int, others []window) window {
	j := m.Jobs[job]
	all := slices.Concat(c.running, others)
	candidates := []float64{m.Now}
	for _, w := range all {
		candidates = append(candidates, max(m.Now, w.end))
	}
	slices.Sort(candidates)
	for _, t := range candidates {
		if fits(m, all, t, t+j.Estimate, j.Width) {
			return window{job, t, t + j.Estimate, j.Width}
		}
	}
	panic("no window")
}

func fits(m *rigid.Machine, all []window, start, end float64, width int) bool {
	for _, t := range append([]float64{start}, starts(all)...) {
		if t != start && (t < start || t >= end) {
			continue
		}
		for _, w := range all {
			if w.start <= t && t < w.end {
				width += w.width
			}
		}
		if width > nodes(m) {
			return false
		}
		for _, w := range all {
			if w.start <= t && t < w.end {
				width -= w.width
			}
		}
	}
	return true
}

func starts(all []window) (out []float64) {
	for _, w := range all {
		out = append(out, w.start)
	}
	return out
}

// nodes returns the size of the machine. The drawn instances keep it in the field User of the last job.
func nodes(m *rigid.Machine) int { return m.Jobs[len(m.Jobs)-1].User }

func (c *slowConservative) End(m *rigid.Machine, job int) {
	i := slices.IndexFunc(c.running, func(w window) bool { return w.job == job })
	c.freed = c.freed || c.running[i].end > m.Now
	c.running = slices.Delete(c.running, i, i+1)
}

func (c *slowConservative) Outlive(_ *rigid.Machine, job int, until float64) {
	i := slices.IndexFunc(c.running, func(w window) bool { return w.job == job })
	c.running[i].end, c.late = until, true
}

func (c *slowConservative) Next() float64 {
	next := math.Inf(1)
	for _, w := range c.waiting {
		next = min(next, w.start)
	}
	return next
}

func (c *slowConservative) replan(m *rigid.Machine) {
	for i, w := range c.waiting {
		switch {
		case c.late:
			c.waiting[i] = c.place(m, w.job, c.waiting[:i])
		case c.freed:
			c.waiting[i] = c.place(m, w.job, slices.Concat(c.waiting[:i], c.waiting[i+1:]))
		}
	}
	c.freed, c.late = false, false
}

func (c *slowConservative) Decide(m *rigid.Machine) {
	c.replan(m)
	c.waiting = slices.DeleteFunc(c.waiting, func(w window) bool {
		if w.start > m.Now || w.width > m.Free {
			return false
		}
		m.Start(w.job)
		c.running = append(c.running, window{w.job, m.Now, m.Until(w.job), w.width})
		return true
	})
}

// draw makes an instance. Each estimate is the runtime times one of the factors.
func draw(t *rapid.T, factors ...float64) *rigid.Instance {
	in := &rigid.Instance{Nodes: rapid.IntRange(1, 6).Draw(t, "nodes")}
	for range rapid.IntRange(1, 16).Draw(t, "jobs") {
		runtime := float64(rapid.IntRange(0, 12).Draw(t, "runtime")) / 2
		in.Jobs = append(in.Jobs, rigid.Job{
			Submit:   float64(rapid.IntRange(0, 12).Draw(t, "submit")),
			Runtime:  runtime,
			Estimate: runtime * rapid.SampledFrom(factors).Draw(t, "factor"),
			Width:    rapid.IntRange(1, in.Nodes).Draw(t, "width"),
		})
	}
	in.Jobs[len(in.Jobs)-1].User = in.Nodes
	in.Weights = slices.Repeat([]float64{1}, in.Nodes+1)
	return in
}

// lasting draws an instance as draw does, but without runtimes and estimates of 0.
func lasting(t *rapid.T, factors ...float64) *rigid.Instance {
	in := draw(t, factors...)
	for i := range in.Jobs {
		in.Jobs[i].Runtime = max(in.Jobs[i].Runtime, 0.5)
		in.Jobs[i].Estimate = max(in.Jobs[i].Estimate, 0.5)
	}
	return in
}

var anyEstimates = []float64{1, 1, 1.5, 3, 0.6, 0.2}

func TestFastIsSlow(t *testing.T) {
	for variant, slow := range map[Variant]func() rigid.Policy{
		EASY:         func() rigid.Policy { return new(slowEasy) },
		Conservative: func() rigid.Policy { return new(slowConservative) },
	} {
		t.Run(string(variant), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				in := draw(t, anyEstimates...)
				got, err := Schedule(in, variant)
				if err != nil {
					t.Fatal(err)
				}
				want, err := rigid.Run(in, slow())
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got.Start, want.Start) {
					t.Fatalf("starts %v, want %v: %+v", got.Start, want.Start, in)
				}
			})
		})
	}
}
