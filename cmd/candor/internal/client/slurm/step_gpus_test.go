package slurm

import "testing"

// The argument of srun's --gres can name resources other than GPUs. The amounts of such resources must not be taken for
// numbers of GPUs.
func TestGPUsOfAStep(t *testing.T) {
	for gres, want := range map[string]int{"lscratch:10": -1, "gpu:2": 2, "tmp:1,gpu:1": 1, "gpu:a100": 1, "gpu:0": 0, "none": -1} {
		if n, err := (&step{gres: gres}).devices(2, 1); err != nil || n != want {
			t.Errorf("%s: %d GPUs, %v; want %d", gres, n, err, want)
		}
	}
}
