package slurm

import "testing"

// The argument of srun's --gres can name resources other than GPUs. The amounts of such resources must not be taken for
// numbers of GPUs.
func TestGPUsOfAStep(t *testing.T) {
	for gres, want := range map[string]int{"lscratch:10": -1, "gpu:2": 2, "tmp:1,gpu:1": 1, "gpu:a100": 1, "gpu:0": 0, "none": 0, "": -1} {
		if n, err := (&step{gres: gres}).devicesOf(2, 1); err != nil || n != want {
			t.Errorf("%s: %d GPUs, %v; want %d", gres, n, err, want)
		}
	}
}

// --gpus is the number of GPUs on all nodes of a step together, and --gpus-per-node is the number on each node.
func TestGPUsOfAllNodes(t *testing.T) {
	for _, one := range []struct {
		gpus       string
		has, nodes int
		most       int // -2 means an error
		of         []int
	}{
		{"4", 2, 2, 2, []int{2, 2}}, {"4", 4, 4, 1, []int{1, 1, 1, 1}}, {"a100:3", 2, 2, 2, []int{2, 1}}, {"1", 4, 2, 1, []int{1, 0}}, {"5", 2, 2, -2, nil}, {"0", 2, 2, 0, []int{0, 0}},
	} {
		w := &step{total: one.gpus}
		most, err := w.devicesOf(one.has, one.nodes)
		if (err != nil) != (one.most == -2) || err == nil && most != one.most {
			t.Errorf("%+v: %d GPUs, %v", one, most, err)
		}
		for k, want := range one.of {
			if got := w.devicesAt(k, one.nodes, most); got != want {
				t.Errorf("%+v: node %d has %d GPUs", one, k, got)
			}
		}
	}
	if n, err := (&step{gpus: "2", total: "8"}).devicesOf(2, 2); n != 2 || err != nil {
		t.Errorf("--gpus-per-node=2: %d GPUs, %v", n, err)
	}
}
