package contracts

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/study/internal/study"
)

// TestDivergenceBearsThePaperOut in both sentences on figure 7.
func TestDivergenceBearsThePaperOut(t *testing.T) {
	r, err := Divergence.Run(study.Options{Seed: 3, Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Write(t.TempDir(), Divergence.Name); err != nil {
		t.Fatal(err)
	}
	for _, same := range []string{"Same: The variance", "Same: The mean"} {
		if !strings.Contains(r.Page.String(), same) {
			t.Errorf("the page does not say %q", same)
		}
	}
	for rule, points := range r.Numbers.(divergenceNumbers) {
		if len(points) != len(sampleCounts) || !(points[0].Mean > points[len(points)-1].Mean) {
			t.Errorf("%s: %+v", rule, points)
		}
	}
}
