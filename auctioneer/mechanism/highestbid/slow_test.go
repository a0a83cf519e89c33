package highestbid

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// slow runs a trace second by second. In each second it removes the jobs that have ended, and adds the new jobs. It
// sorts all jobs, runs the first jobs of this order, and charges each running job its price.
type slow struct {
	p       *Problem
	left    []float64
	in      []int // jobs in the system
	runs    map[int]bool
	payment []float64
	seconds [][]float64 // by job: the seconds in which it ran
	passed  int         // how often a bid got no node, although a worse bid got one
}

func (s *slow) run() {
	for now := 0.0; ; now++ {
		s.in = slices.DeleteFunc(s.in, func(i int) bool { return s.left[i] == 0 })
		last := true
		for i, j := range s.p.Jobs {
			last = last && j.Submit <= now
			if j.Submit == now && j.Runtime > 0 {
				s.in = append(s.in, i)
			}
		}
		if last && len(s.in) == 0 {
			return
		}
		s.decide()
		s.second(now)
	}
}

func (s *slow) key(i int) float64 { return s.p.Jobs[i].Bid / s.p.Jobs[i].length(s.p.Rule.Algorithm) }

func (s *slow) decide() {
	slices.SortFunc(s.in, func(a, b int) int {
		kept := 0
		if s.p.Rule.Algorithm != HB && s.runs[a] != s.runs[b] {
			kept = 1
			if s.runs[a] {
				kept = -1
			}
		}
		return cmp.Or(kept, cmp.Compare(s.key(b), s.key(a)), cmp.Compare(s.p.Jobs[a].Submit, s.p.Jobs[b].Submit), cmp.Compare(a, b))
	})
	s.runs = map[int]bool{}
	free := s.p.Nodes
	for _, i := range s.in {
		if w := s.p.Jobs[i].width(); w <= free {
			s.runs[i], free = true, free-w
		} else if s.p.Rule.Algorithm != HB {
			return
		}
	}
}

func (s *slow) second(now float64) {
	var waiting []int // the waiting jobs, except jobs that were put aside
	for k := len(s.in) - 1; k >= 0; k-- {
		switch i := s.in[k]; {
		case !s.runs[i]:
			waiting = append(waiting, i)
		case s.p.Rule.Algorithm == HB && slices.ContainsFunc(s.in[:k], func(i int) bool { return !s.runs[i] }):
			s.passed++
			s.pay(now, s.in[k+1:])
			return
		}
	}
	s.pay(now, waiting)
}

func (s *slow) pay(now float64, waiting []int) {
	for i := range s.p.Jobs {
		if s.runs[i] {
			s.payment[i] += s.price(i, waiting) * float64(s.p.Jobs[i].width())
			s.left[i]--
			s.seconds[i] = append(s.seconds[i], now)
		}
	}
}

func (s *slow) wanted() (n int) {
	for _, i := range s.in {
		n += s.p.Jobs[i].width()
	}
	return n
}

func (s *slow) price(i int, waiting []int) float64 {
	job, rule := s.p.Jobs[i], s.p.Rule
	price := s.p.Reserve
	switch {
	case rule.Price == First && s.wanted() >= s.p.Nodes:
		price = job.Bid
	case rule.Price == Kth && len(waiting) > 0:
		highest := 0.0
		for _, w := range waiting {
			highest = max(highest, s.key(w))
		}
		price = highest * job.length(rule.Algorithm)
		if rule.Algorithm == NPHB {
			price = min(price, job.Bid)
		}
	}
	if rule.Capped {
		price = min(price, job.Bid)
	}
	return price
}

// instances draws problems with many ties and many events at the same instant.
func instances(t *rapid.T, most int) *Problem {
	p := &Problem{
		Nodes:   rapid.IntRange(1, 4).Draw(t, "nodes"),
		Rule:    rules(t),
		Reserve: rapid.SampledFrom([]float64{1, 1, 0, 2.5}).Draw(t, "reserve"),
	}
	for range rapid.IntRange(0, most).Draw(t, "jobs") {
		p.Jobs = append(p.Jobs, Job{
			Submit:   float64(rapid.IntRange(0, 12).Draw(t, "submit")),
			Runtime:  float64(rapid.IntRange(0, 8).Draw(t, "runtime")),
			Value:    float64(rapid.IntRange(0, 9).Draw(t, "value")),
			Bid:      float64(rapid.IntRange(0, 12).Draw(t, "bid")) / 2,
			Estimate: float64(rapid.IntRange(1, 9).Draw(t, "estimate")),
		})
	}
	return p
}

// A job of several tasks must have the same times, payments and steps as the same number of jobs with one task each.
func TestTasksAreAsManyBidders(t *testing.T) {
	for range 10 {
		rapid.Check(t, func(t *rapid.T) {
			p := instances(t, 10)
			alone := *p
			alone.Jobs = nil
			var owner []int
			for i := range p.Jobs {
				j := &p.Jobs[i]
				j.Tasks = rapid.IntRange(0, 4).Draw(t, "tasks")
				for range j.tasks() {
					one := *j
					one.Tasks = 0
					alone.Jobs, owner = append(alone.Jobs, one), append(owner, i)
				}
			}
			told, want := make([]Step, len(p.Jobs)), make([]Step, len(p.Jobs))
			count := func(sum *Step, s Step) {
				sum.Done, sum.Lost, sum.Again = sum.Done+s.Done, sum.Lost+s.Lost, sum.Again+s.Again
			}
			p.Watch = func(s Step) { count(&told[s.Job], s) }
			alone.Watch = func(s Step) { count(&want[owner[s.Job]], s) }
			o, each := mustRun(t, p), mustRun(t, &alone)
			finish, paid := make([]float64, len(p.Jobs)), make([]float64, len(p.Jobs))
			for k, i := range owner {
				finish[i], paid[i] = max(finish[i], each.Finish[k]), paid[i]+each.Payment[k]
			}
			for i := range p.Jobs {
				if o.Finish[i] != finish[i] || !near(o.Payment[i], paid[i], 1e-9) || told[i] != want[i] {
					t.Fatalf("job %d ends at %v, pays %v: %+v; its tasks %v, %v: %+v: %+v", i, o.Finish[i], o.Payment[i], told[i], finish[i], paid[i], want[i], p)
				}
			}
			if o.Preemptions != each.Preemptions {
				t.Fatalf("%d preemptions, of tasks alone %d: %+v", o.Preemptions, each.Preemptions, p)
			}
		})
	}
}

func rules(t *rapid.T) Rule {
	return Rule{rapid.SampledFrom([]Algorithm{HB, NPHB, WSPT, WSEPT}).Draw(t, "algorithm"),
		rapid.SampledFrom([]Price{Kth, First}).Draw(t, "price"), rapid.Bool().Draw(t, "capped")}
}

func mustRun(t interface {
	Helper()
	Fatal(...any)
}, p *Problem) *Outcome {
	t.Helper()
	o, err := Run(p)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// The type slow goes through a trace second by second. The test compares Run with it on thousands of small instances,
// with all rules.
func TestAgainstSecondBySecond(t *testing.T) {
	for range 50 {
		rapid.Check(t, func(t *rapid.T) {
			p := instances(t, 12)
			s := &slow{p: p, left: make([]float64, len(p.Jobs)), payment: make([]float64, len(p.Jobs)), seconds: make([][]float64, len(p.Jobs))}
			for i, j := range p.Jobs {
				s.left[i] = j.Runtime
			}
			s.run()
			same(t, mustRun(t, p), s)
		})
	}
}

func same(t *rapid.T, o *Outcome, s *slow) {
	for i, j := range s.p.Jobs {
		var seconds []float64
		for _, v := range o.Intervals[i] {
			for x := v[0]; x < v[1]; x++ {
				seconds = append(seconds, x)
			}
		}
		if !slices.Equal(seconds, s.seconds[i]) {
			t.Fatalf("job %d ran in seconds %v, want %v: %+v", i, seconds, s.seconds[i], s.p)
		}
		start, finish := j.Submit, j.Submit
		if n := len(seconds); n > 0 {
			start, finish = seconds[0], seconds[n-1]+1
		}
		if o.Start[i] != start || o.Finish[i] != finish || o.Flow[i] != finish-j.Submit {
			t.Fatalf("job %d: start %v finish %v flow %v, want %v %v: %+v", i, o.Start[i], o.Finish[i], o.Flow[i], start, finish, s.p)
		}
		if !near(o.Payment[i], s.payment[i], 1e-12) {
			t.Fatalf("job %d pays %v, want %v: %+v", i, o.Payment[i], s.payment[i], s.p)
		}
	}
}
