package contracts

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/lab/internal/study/studytest"
)

// TestDivergenceBearsThePaperOut in both sentences on figure 7.
func TestDivergenceBearsThePaperOut(t *testing.T) {
	r := studytest.Quick(t, Divergence, 3)
	studytest.Same(t, r, "The variance", "The mean")
	for rule, points := range r.Numbers.(divergenceNumbers) {
		if len(points) != len(sampleCounts) || !(points[0].Mean > points[len(points)-1].Mean) {
			t.Errorf("%s: %+v", rule, points)
		}
	}
}

// TestMenusAreRational: prices fall with completion, one contract is free, and a
// user of the declared type finds none better than its own, whatever is drawn.
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

// TestDistributions: nobody whose type is as declared pays more than it got, and
// every job completes once.
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
