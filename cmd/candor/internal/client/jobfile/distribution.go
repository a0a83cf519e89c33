package jobfile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/messages/job"
)

// Distribution says which ranks of a step go to which node. The zero value is Slurm's default: consecutive ranks go to
// the same node.
type Distribution struct {
	Cyclic bool // the next rank goes to the next node
	Plane  int  // number of consecutive ranks on a node, before the next node gets ranks; 0 means not given
}

// ParseDistribution reads a value of --distribution, such as cyclic:block or plane=4. It ignores the parts about
// sockets and cores.
func ParseDistribution(text string) (d Distribution, err error) {
	words, pack, _ := strings.Cut(strings.ToLower(text), ",")
	nodes, _, _ := strings.Cut(words, ":")
	kind, size, _ := strings.Cut(nodes, "=")
	switch {
	case pack != "" && pack != "nopack":
		return d, fmt.Errorf("%q: the ranks are divided evenly over the nodes: ask for fewer nodes with --nodes, and leave %s out", text, pack)
	case kind == "arbitrary":
		return d, fmt.Errorf("%q: a list of nodes (SLURM_HOSTFILE) is not read: use block, cyclic or plane=N, or start a step with --nodelist for each node", text)
	case kind == "plane":
		if d.Plane, err = strconv.Atoi(size); err != nil || d.Plane < 1 || d.Plane > job.MaxCPUs {
			return d, fmt.Errorf("%q: write how many ranks follow one another on a node, as in plane=4", text)
		}
	case kind == "cyclic":
		d.Cyclic = true
	case kind != "block" && kind != "*" && kind != "":
		return d, fmt.Errorf("%q: must be block, cyclic or plane=N", text)
	}
	return d, nil
}
