package contracts

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/lab/internal/study/studytest"
	"github.com/candor-grid/candor/estimator/density"
	"github.com/candor-grid/candor/messages"
)

// A small study must confirm both sentences that the paper says about figure 7.
func TestDivergenceBearsThePaperOut(t *testing.T) {
	r := studytest.Quick(t, Divergence, 3)
	studytest.Same(t, r, "The variance", "The mean")
	for rule, points := range r.Numbers.(divergenceNumbers) {
		if len(points) != len(sampleCounts) || !(points[0].Mean > points[len(points)-1].Mean) {
			t.Errorf("%s: %+v", rule, points)
		}
	}
}

// Figure 7 of Huang et al. is repeated 40 times. From about 50 samples on, the mean divergence must no longer fall
// much. For the variance, this must be so from about 20 samples on.
func TestFigure7(t *testing.T) {
	points, err := convergence(figure7(), density.ScottFull, []int{5, 10, 20, 50, 100, 200}, 40, 300, 1)
	if err != nil {
		t.Fatal(err)
	}
	mean, variance := map[int]float64{}, map[int]float64{}
	for _, p := range points {
		mean[p.Samples], variance[p.Samples] = p.Mean, p.Variance
	}
	t.Logf("mean %v, variance %v", mean, variance)
	if !(mean[50] < 0.2 && mean[50]-mean[200] < (mean[5]-mean[50])/10) {
		t.Errorf("mean divergence has not levelled off at 50 samples: %v", mean)
	}
	if !(variance[5] > 20*variance[20] && variance[20] < 0.05 && variance[50] < variance[20]) {
		t.Errorf("variance has not vanished after 20 samples: %v", variance)
	}
	for _, bad := range []error{second(convergence(figure7(), density.ScottFull, []int{1}, 2, 2, 1)), second(convergence(figure7(), density.ScottFull, []int{5}, 1, 2, 1)),
		second(convergence(figure7(), "wide", []int{5}, 2, 2, 1)), second(convergence(figure7(), density.ScottFull, []int{5}, 2, 1, 1))} {
		if messages.KindOf(bad) != messages.Invalid {
			t.Error(bad)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// A menu offers contracts with different completion times and prices. A contract with a later completion must cost
// less, and one contract must have the price 0. The menu chooses one contract for the declared type. For a user who
// really has this type, no other contract of the menu may be better.
func TestMenusAreRational(t *testing.T) {
	for seed := range uint64(10) {
		r := studytest.Quick(t, Menus, seed)
		for _, same := range []string{"Same: Better service", "Same: There always", "Same: The contract of"} {
			if n := strings.Count(r.Page.String(), same); n != len(crowds) {
				t.Errorf("seed %d: the page says %q %d times", seed, same, n)
			}
		}
	}
}

// A user with a true declaration must never pay more than the value that the user receives. Every job must complete
// once.
func TestDistributions(t *testing.T) {
	r := studytest.Quick(t, Distributions, 1)
	for _, n := range r.Numbers.([]loaded) {
		for _, d := range n.Sets {
			if u := d.utilities; len(u) != quickSize.jobs*quickSize.repetitions || u[0] < -tie || u[len(u)-1] > best {
				t.Errorf("load %v, %s: %d utilities from %v to %v", n.Load, d.Training, len(u), u[0], u[len(u)-1])
			}
		}
	}
}
