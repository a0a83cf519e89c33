package runner

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Processors are the numbers of the processors that this process may use, such that those near one another are near in
// the list: by node of memory, package and core.
func Processors() (list []int) {
	var mask unix.CPUSet
	if unix.SchedGetaffinity(0, &mask) != nil {
		return nil
	}
	place := map[int][3]int{}
	for c := range len(mask) * 64 {
		if mask.IsSet(c) {
			list = append(list, c)
			place[c] = placeOf(c)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int {
		p, q := place[a], place[b]
		return cmp.Or(slices.Compare(p[:], q[:]), cmp.Compare(a, b))
	})
	return list
}

// placeOf is the node of memory, the package and the core of a processor; zeros where the kernel does not say.
func placeOf(c int) (place [3]int) {
	dir := "/sys/devices/system/cpu/cpu" + strconv.Itoa(c)
	nodes, _ := filepath.Glob(dir + "/node[0-9]*")
	if len(nodes) > 0 {
		place[0], _ = strconv.Atoi(strings.TrimPrefix(filepath.Base(nodes[0]), "node"))
	}
	for i, file := range []string{"physical_package_id", "core_id"} {
		text, _ := os.ReadFile(filepath.Join(dir, "topology", file))
		place[i+1], _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	return place
}
