package slurm

import (
	"fmt"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
)

// For each way of distributing ranks, the first case is an example from Slurm's page about distributions.
func TestDeal(t *testing.T) {
	for _, one := range []struct {
		said         string
		ranks, nodes int
		want, pmi    string
	}{
		{"", 5, 2, "[[0 1 2] [3 4]]", "[[0 1 3] [1 1 2]]"},
		{"block:cyclic", 4, 2, "[[0 1] [2 3]]", "[[0 2 2]]"},
		{"cyclic", 5, 2, "[[0 2 4] [1 3]]", "[[0 2 1]]"},
		{"cyclic:block,NoPack", 7, 3, "[[0 3 6] [1 4] [2 5]]", "[[0 3 1]]"},
		{"plane=4", 21, 3, "[[0 1 2 3 12 13 14 15] [4 5 6 7 16 17 18 19] [8 9 10 11 20]]", "[[0 3 4]]"},
		{"plane=2", 7, 2, "[[0 1 4 5] [2 3 6]]", "[[0 2 2]]"},
		{"plane=4", 4, 2, "[[0 1] [2 3]]", "[[0 2 2]]"}, // the plane is ignored, because a node would have no rank
	} {
		d, err := jobfile.ParseDistribution(one.said)
		if err != nil {
			t.Fatal(one.said, err)
		}
		w := &step{ranks: one.ranks, deals: d}
		for n := range one.nodes {
			w.places = append(w.places, place{count: w.shareOf(n, one.nodes)})
		}
		w.deal()
		var got [][]int
		for _, p := range w.places {
			got = append(got, p.ranks)
		}
		if fmt.Sprint(got) != one.want || fmt.Sprint(processMap(w.placeAt)) != one.pmi {
			t.Errorf("%s, %d ranks on %d nodes: %v, PMI %v, want %s, %s", one.said, one.ranks, one.nodes, got, processMap(w.placeAt), one.want, one.pmi)
		}
	}
}
