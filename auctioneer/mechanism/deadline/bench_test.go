package deadline

import (
	"fmt"
	"testing"
)

// The paper's records, 101 to 10,100, are 318,265 tasks of 30.3 units on
// average, as its table 6 says; C is its average capacity.
const (
	firstRecord, lastRecord = 101, 10_100
	riccTasks, riccSlots    = 318_265, 4_018
)

// settings are the rules that the figures are about.
var settings = []Problem{
	{Rule: Paper, Lambda: 0},
	{Rule: Monotone, Lambda: 0.6},
	{Rule: Paper, Lambda: 0.6},
}

func benchRICC(b *testing.B, f func(b *testing.B, p *Problem)) {
	records := ricc(b, firstRecord, lastRecord)
	for _, alike := range []bool{true, false} {
		tasks := split(records, alike, 1)
		if len(tasks) != riccTasks {
			b.Fatalf("%d tasks, want %d", len(tasks), riccTasks)
		}
		for _, p := range settings {
			p.Capacity, p.Tasks = riccSlots, tasks
			b.Run(fmt.Sprintf("alike=%v/%s/lambda=%v", alike, ruleNames[p.Rule], p.Lambda), func(b *testing.B) { f(b, &p) })
		}
	}
}

// BenchmarkAllocation: who is served when.
func BenchmarkAllocation(b *testing.B) {
	benchRICC(b, func(b *testing.B, p *Problem) {
		all, value := 0.0, 0.0
		for _, t := range p.Tasks {
			all += t.Value
		}
		for b.Loop() {
			o, err := Run(p)
			if err != nil {
				b.Fatal(err)
			}
			value = o.TotalValue
		}
		b.ReportMetric(value/all, "of-all-value")
	})
}

// BenchmarkPayments: all critical values, after the allocation.
func BenchmarkPayments(b *testing.B) {
	benchRICC(b, func(b *testing.B, p *Problem) {
		o, err := Run(p)
		if err != nil {
			b.Fatal(err)
		}
		paid := 0.0
		for b.Loop() {
			paid = 0
			for _, x := range o.Payments() {
				paid += x
			}
		}
		b.ReportMetric(paid/o.TotalValue, "of-value-paid")
	})
}
