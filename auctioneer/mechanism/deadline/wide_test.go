package deadline

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func drawWide(t *rapid.T) *Problem {
	p := drawProblem(t, Monotone, []float64{0, 0.25, 0.5, 1})
	p.Capacity++
	for i := range p.Tasks {
		x := &p.Tasks[i]
		// choose widths and lengths for which the levels are exact as float64
		if x.Width = rapid.IntRange(0, 3).Draw(t, "w"); x.Length == 3 {
			x.Length, x.Deadline = 4, x.Deadline+1
		}
		if x.Width == 3 {
			x.Width = 4
		}
	}
	return p
}

func TestWideTasksAreAsTheDefinitionReads(t *testing.T) {
	filled := 0
	rapid.Check(t, func(t *rapid.T) {
		p := drawWide(t)
		same(t, p)
		for i := range p.Tasks {
			if p.Tasks[i].slots() > 1 {
				filled++
			}
		}
	})
	if filled == 0 {
		t.Error("no task had several slots: this shows nothing")
	}
}

// A completed task must also be completed with a larger value, an earlier arrival, a later deadline, a smaller length
// or fewer slots. It must pay no more than its value.
func TestABetterReportOfAWideTaskIsNoWorse(t *testing.T) {
	for range 5 {
		rapid.Check(t, func(t *rapid.T) {
			p := drawWide(t)
			i := rapid.IntRange(0, len(p.Tasks)-1).Draw(t, "who")
			o, err := Run(p)
			if err != nil {
				t.Fatal(err)
			}
			if !o.Completed[i] {
				return
			}
			if pays := o.Payments()[i]; pays > p.Tasks[i].Value {
				t.Fatalf("task %d pays %v: %+v", i, pays, p)
			}
			better := *p
			better.Tasks = slices.Clone(p.Tasks)
			x := &better.Tasks[i]
			x.Value += float64(rapid.IntRange(0, 6).Draw(t, "more"))
			x.Arrival -= rapid.IntRange(0, 2).Draw(t, "earlier")
			x.Deadline += rapid.IntRange(0, 2).Draw(t, "later")
			x.Length -= rapid.IntRange(0, x.Length-1).Draw(t, "shorter")
			x.Width = rapid.IntRange(1, x.slots()).Draw(t, "narrower")
			if o, err := Run(&better); err != nil || !o.Completed[i] {
				t.Fatalf("task %d is completed with %+v, and not with %+v: %+v", i, p.Tasks[i], *x, p)
			}
		})
	}
}

// There are three slots. The first task takes two of them. The second task wants two, and is skipped. The third task
// takes the last slot, although it is worth less than the second. The first task must pay what the second would have
// paid, and the third must pay nothing.
func TestATaskThatIsPassedOverCostsNothing(t *testing.T) {
	p := &Problem{Capacity: 3, Rule: Monotone, Lambda: 0.6, Scale: 4, Tasks: []Task{
		{Length: 1, Value: 10, Width: 2}, {Length: 1, Value: 8, Width: 2}, {Length: 1, Value: 1}}}
	o, err := Run(p)
	if err != nil {
		t.Fatal(err)
	}
	if pays := o.Payments(); !slices.Equal(o.Completed, []bool{true, false, true}) || !slices.Equal(pays, []float64{8, 0, 0}) {
		t.Errorf("completed %v, pay %v", o.Completed, pays)
	}
	p.Rule = Paper
	if _, err := Run(p); err == nil {
		t.Error("rule paper takes a task of two slots")
	}
}
