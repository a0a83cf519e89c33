package proportional

import (
	"fmt"
	"slices"
	"testing"
)

func TestProbe(t *testing.T) {
	p := &Problem{Alpha: 0.7, Classes: 2, Budgets: []float64{124.09377607517196, 153.99265260594922}, Weights: []float64{1.875, 0.1, 0.125, 3.75}}
	var s Solver
	r, _ := s.Solve(p)
	fmt.Println(r.Subbudgets, r.Rounds, r.Converged)
	b := slices.Clone(r.Subbudgets)
	for i := range 2 {
		fmt.Println(slowRow(p, b, i))
	}
	r, _ = s.Rounds(p, 10000)
	fmt.Println("rounds", r.Subbudgets, r.Rounds, r.Converged)
	for _, th := range []float64{1, 0.5, 0.1} {
		fmt.Println(slowFixedPoint(p, th))
	}
	// scan best responses of x: job 0's class-0 sub-budget
	for x := 100.0; x < 124; x += 1 {
		fmt.Println(x)
	}
}
