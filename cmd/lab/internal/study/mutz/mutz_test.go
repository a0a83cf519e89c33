package mutz

import (
	"math"
	"testing"

	"github.com/candor-grid/candor/cmd/lab/internal/study/studytest"
)

func TestBatchBearsTheThesisOut(t *testing.T) {
	r := studytest.Quick(t, Batch, 1)
	studytest.Same(t, r, "Figure 4.1: no value", "Figure 4.2: nor", "Figure 4.5: the imbalance falls")
	n := r.Numbers.(*batchNumbers)
	for _, u := range n.Imbalance {
		if u.Ours != 0 || !(u.Thesis > 0) {
			t.Errorf("imbalance: %+v", u)
		}
	}
	if lie := n.FrontPrinted.Lie; lie.At < n.FrontPrinted.Truth {
		t.Errorf("by equation 4.2 as printed the best lie is %v", lie.At)
	}
}

func TestWidthBearsTheThesisOut(t *testing.T) {
	r := studytest.Quick(t, Width, 1)
	studytest.Same(t, r, "Figure 6.3: no value", "Figure 6.4", "Figure 6.5", "Figure 6.7")
	n := r.Numbers.(*widthNumbers)
	length := n.Priority[1]
	if last := length.Points[len(length.Points)-1]; !(last.Mean > length.honest().Mean) {
		t.Errorf("with priorities drawn only, a length of %v gains nothing: %v, the truth %v", last.At, last.Mean, length.honest().Mean)
	}
	for _, u := range n.Imbalance {
		if u.Ours != 0 {
			t.Errorf("imbalance: %+v", u)
		}
	}
}

// In a small study, no lie about a value, a deadline or a length may gain in any pool of bids.
func TestReservationIsTruthful(t *testing.T) {
	r := studytest.Quick(t, Reservation, 1)
	studytest.Same(t, r, "Figure 5.5", "Figure 5.6", "Figure 5.7")
	n := r.Numbers.(*reservationNumbers)
	if n.Violations != 0 || n.Disagreements != 0 {
		t.Errorf("%d payments out of range, %d that differ", n.Violations, n.Disagreements)
	}
	for _, s := range n.Payoffs {
		if s.Lie.Most != 0 || !(s.spread() > 0) {
			t.Errorf("figure %s: a lie gains %v, payoffs move by %v", s.Figure, s.Lie.Most, s.spread())
		}
	}
}

// The search for a schedule tries some orders of the bids. In our search, these orders are fixed; then no lie about a
// value may gain. In the thesis, the orders are drawn anew for each search; then some lies must gain.
func TestSearchIsTruthfulInValue(t *testing.T) {
	r := studytest.Quick(t, Search, 1)
	studytest.Same(t, r, "Figure 7.8", "Figure 7.9")
	n := r.Numbers.(*searchNumbers)
	if ours, thesis := n.Ours[0].Lie.Most, n.Thesis[0].Lie.Most; ours != 0 || !(thesis > 0) {
		t.Errorf("a lie gains %v with ours, %v with the thesis'", ours, thesis)
	}
	for _, d := range n.Depths[len(n.size.depths):] {
		if d.Payoffs.Lie.Most != 0 {
			t.Errorf("%s: a lie gains %v", d.Name, d.Payoffs.Lie.Most)
		}
	}
	for _, w := range n.Few {
		for k, value := range append(append([]float64{}, w.ByDepth...), w.Ours) {
			if value > w.Best {
				t.Errorf("%d bids, search %d: %v, more than the best, %v", w.Bids, k, value, w.Best)
			}
		}
	}
}

// Each lie is tried in several runs, called dots. The best lie is chosen by one half of the dots, and its gain is
// measured with the other half.
func TestLiesAreMeasuredOnOtherDots(t *testing.T) {
	payoff := map[float64][]float64{0: {9, 1, 9, 1}, 1: {5, 5, 5, 5}, 2: {4, 8, 4, 8}}
	var f failure
	s := f.explore(sweep{Truth: 1}, []float64{0, 2}, 4, func(x float64, dot int) (float64, error) { return payoff[x][dot], nil })
	if f.err != nil {
		t.Fatal(f.err)
	}
	if want := (lie{At: 0, Gain: -4, Half: 0, Most: 4}); s.Lie != want || s.Lie.pays() {
		t.Errorf("%+v, want %+v", s.Lie, want)
	}
	if s.honest().Mean != 5 || s.spread() != 1 || s.at(1.8).At != 2 {
		t.Errorf("%+v", s)
	}
}

func TestPower(t *testing.T) {
	s := series{At: []float64{1, 2, 4, 8, 16}}
	for _, x := range s.At {
		s.Millis = append(s.Millis, 3*math.Pow(x, 2.5))
	}
	if got := s.power(); math.Abs(got-2.5) > 1e-9 {
		t.Errorf("power %v, want 2.5", got)
	}
}
