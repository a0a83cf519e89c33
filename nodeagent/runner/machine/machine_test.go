package machine

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// TestStockGivesNothingTwice starts and ends random tasks. No GPU may be given to two tasks. A processor may be given
// to two tasks only if no other processor is free.
func TestStockGivesNothingTwice(t *testing.T) {
	m := Machine{CPUs: []int{0, 2, 4, 6, 1, 3, 5, 7}}
	for i := range 4 {
		m.GPUs = append(m.GPUs, GPU{Index: i, Type: []messages.Name{"a100", "v100"}[i/2]})
	}
	random := rand.New(rand.NewPCG(1, 2))
	s, running := NewStock(m), []*Portion{}
	for range 20_000 {
		if len(running) > 0 && random.IntN(2) == 0 {
			i := random.IntN(len(running))
			s.Give(running[i])
			running = slices.Delete(running, i, i+1)
			continue
		}
		cpus, gpus := 0, 0
		for _, p := range running {
			cpus, gpus = cpus+len(p.cpus), gpus+len(p.gpus)
		}
		want := jobmsg.Resources{CPUs: 1 + random.IntN(4), GPUs: random.IntN(3)}
		p, err := s.Take(&agent.Program{Shape: &want})
		if (err == nil) != (gpus+want.GPUs <= len(m.GPUs)) {
			t.Fatalf("%d of %d GPUs are taken, and %d more: %v", gpus, len(m.GPUs), want.GPUs, err)
		}
		if err != nil {
			continue
		}
		if len(p.cpus) != want.CPUs || len(p.gpus) != want.GPUs {
			t.Fatalf("%+v for %+v", p, want)
		}
		if running = append(running, p); cpus+want.CPUs <= len(m.CPUs) && slices.Max(s.loads) > 1 {
			// doubled counts how often a processor is shared: for each processor, the number of its tasks minus 1.
			// Processors may be shared if earlier tasks had to share them. But if no other task has run before, no
			// processor may be shared.
			doubled := 0
			for _, n := range s.loads {
				doubled += max(0, n-1)
			}
			if doubled > 0 && cpus == 0 {
				t.Fatalf("processors are doubled in %v though there are others", s.loads)
			}
		}
		var seen []int
		for _, p := range running {
			for _, g := range p.gpus {
				if slices.Contains(seen, g.Index) {
					t.Fatalf("GPU %d is given twice", g.Index)
				}
				seen = append(seen, g.Index)
			}
		}
	}
	for _, p := range running {
		s.Give(p)
	}
	if slices.Max(s.loads) != 0 || slices.Contains(s.taken, true) {
		t.Errorf("not all is back: %v, %v", s.loads, s.taken)
	}
}

// TestStockKeepsNeighbours checks that a task gets neighbouring processors, from the smallest gap that is large
// enough.
func TestStockKeepsNeighbours(t *testing.T) {
	s := NewStock(Machine{CPUs: []int{0, 1, 2, 3, 4, 5, 6, 7}})
	take := func(n int) *Portion {
		p, err := s.Take(&agent.Program{Shape: &jobmsg.Resources{CPUs: n}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first, second, third := take(3), take(1), take(3)
	s.Give(first)
	if got := set(take(1).cpus); got != "7" {
		t.Errorf("one processor is %s, and breaks a larger gap than 7", got)
	}
	if got := set(take(3).cpus); got != "0-2" {
		t.Errorf("three processors are %s", got)
	}
	if set(second.cpus) != "3" || set(third.cpus) != "4-6" {
		t.Errorf("the second task has %v, the third %v", second, third)
	}
	for want, cpus := range map[string][]int{"": nil, "0,2-4,9": {0, 2, 3, 4, 9}} {
		if got := set(cpus); got != want {
			t.Errorf("%v is written as %q", cpus, got)
		}
	}
	if p, err := s.Take(&agent.Program{}); p != nil || err != nil {
		t.Errorf("a task without a shape has %v, %v", p, err)
	}
	whole := NewStock(Machine{CPUs: []int{0, 1}, GPUs: []GPU{{Index: 0}, {Index: 1}}})
	if p, err := whole.Take(&agent.Program{Exclusive: true, Shape: &jobmsg.Resources{CPUs: 1}}); err != nil || len(p.cpus) != 2 || len(p.gpus) != 2 {
		t.Errorf("a whole node is %v, %v", p, err)
	}
}
