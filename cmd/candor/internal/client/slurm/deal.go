package slurm

import (
	"slices"

	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
)

// shareOf returns how many ranks (processes) of a job step run on the node with index n. The argument `nodes` is the
// number of nodes of the step.
func (w *step) shareOf(n, nodes int) int {
	if plane := w.deals.Plane; plane > 0 && (w.ranks-1)/plane >= nodes-1 { // with fewer ranks, some node would have no rank, so the plane is ignored
		round := plane * nodes
		return w.ranks/round*plane + min(max(w.ranks%round-n*plane, 0), plane)
	}
	share := w.ranks / nodes
	if n < w.ranks%nodes {
		share++
	}
	return share
}

// deal decides which ranks run on each place. A place is a node of the step. The number of ranks of each place is
// already decided.
func (w *step) deal() {
	at, some := 0, w.ranks // number of consecutive ranks that go to a node
	switch {
	case w.deals.Cyclic:
		some = 1
	case w.deals.Plane > 0:
		some = w.deals.Plane
	}
	w.placeAt = make([]int, w.ranks)
	for i := range w.places {
		w.places[i].at, w.places[i].ranks = i, make([]int, 0, w.places[i].count)
	}
	for rank := 0; rank < w.ranks; at = (at + 1) % len(w.places) {
		p := &w.places[at]
		for n := min(some, p.count-len(p.ranks)); n > 0; n-- {
			p.ranks, w.placeAt[rank] = append(p.ranks, rank), at
			rank++
		}
	}
}

// distribution returns how the step divides its ranks among nodes: by its option, or else by the job's variables.
func (c *call) distribution(w *step) (d jobfile.Distribution, err error) {
	if !c.flags.Changed("distribution") && w.mpi != "none" { // a step of an MPI launcher ignores the variables: it needs one rank on each node
		w.dealt = c.Getenv("SLURM_DISTRIBUTION")
		if size := c.Getenv("SLURM_DIST_PLANESIZE"); w.dealt == "plane" && size != "" {
			w.dealt += "=" + size
		}
	}
	return jobfile.ParseDistribution(w.dealt)
}

// processMap says on which node each rank is, in the form that PMI (the start-up protocol of MPI) uses. An entry has
// three numbers: a first node, a number of nodes, and the number of ranks on each of these nodes. The ranks are given
// to the entries in order. If ranks are left after the last entry, they are given to the entries from the first one on
// again.
func processMap(placeAt []int) (entries [][3]int) {
	var runs [][3]int
	for rank := 0; rank < len(placeAt); {
		n := 1
		for rank+n < len(placeAt) && placeAt[rank+n] == placeAt[rank] {
			n++
		}
		if last := len(runs) - 1; last >= 0 && runs[last][2] == n && runs[last][0]+runs[last][1] == placeAt[rank] {
			runs[last][1]++
		} else {
			runs = append(runs, [3]int{placeAt[rank], 1, n})
		}
		rank += n
	}
	for n := 1; n < len(runs); n++ {
		if slices.Equal(placesOf(runs[:n], len(placeAt)), placeAt) {
			return runs[:n]
		}
	}
	return runs
}

func placesOf(entries [][3]int, ranks int) (placeAt []int) {
	for len(placeAt) < ranks {
		for _, e := range entries {
			for node := e[0]; node < e[0]+e[1]; node++ {
				placeAt = append(placeAt, slices.Repeat([]int{node}, e[2])...)
			}
		}
	}
	return placeAt[:ranks]
}
