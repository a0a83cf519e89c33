package runner_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/candor-grid/candor/nodeagent/runner/cell"
	"github.com/candor-grid/candor/nodeagent/runner/machine"
)

// twoGPUs gives the node two GPUs. Their device files exist on every machine.
func twoGPUs(c *runner.Config) {
	c.Machine.GPUs = []machine.GPU{{Index: 0, ID: "GPU-a", Type: "a100", Files: []string{"/dev/zero"}}, {Index: 1, ID: "GPU-b", Type: "a100", Files: []string{"/dev/full"}}}
}

func shaped(script string, shape job.Resources) agent.Program {
	p := sh(script)
	p.Shape = &shape
	return p
}

// TestTasksSeeTheirOwnGPUs runs three tasks, with one GPU each, on a node with two GPUs. The third task must find no
// free GPU until one of the other tasks has ended.
func TestTasksSeeTheirOwnGPUs(t *testing.T) {
	b, gate := newBench(t, func(c *runner.Config) {
		twoGPUs(c)
		c.Machine.GPUs[0].Files, c.Machine.GPUs[1].Files = nil, nil
	}), filepath.Join(t.TempDir(), "gate")
	show := `echo "$CANDOR_GPUS $CUDA_VISIBLE_DEVICES"; until [ -e ` + gate + ` ]; do sleep 0.05; done`
	one := job.Resources{CPUs: 1, GPUs: 1}
	first, second := b.start(shaped(show, one)), b.start(shaped(show, one))
	got := []string{strings.TrimSpace(b.read(first, false)), strings.TrimSpace(b.read(second, false))}
	slices.Sort(got)
	if !slices.Equal(got, []string{"0 GPU-a", "1 GPU-b"}) {
		t.Errorf("two tasks see %q", got)
	}
	if f := b.start(shaped("true", one)).wait(); f.Outcome != agent.Unstartable || !strings.Contains(f.Detail, "1 GPUs, but 0 are free") {
		t.Errorf("a third task: %v, %s", f.Outcome, f.Detail)
	}
	none := shaped(`echo "[$CUDA_VISIBLE_DEVICES][$ROCR_VISIBLE_DEVICES][${CUDA_VISIBLE_DEVICES+set}]"`, job.Resources{CPUs: 1})
	none.Env = job.Env{{Name: "CUDA_VISIBLE_DEVICES", Value: "0,1"}}
	without := b.start(none)
	without.wait()
	if text := strings.TrimSpace(b.read(without, false)); text != "[][][set]" {
		t.Errorf("a task without a GPU sees %s", text)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*started{first, second} {
		s.wait()
	}
	if f := b.start(shaped("true", job.Resources{CPUs: 1, GPUs: 2, GPUType: "a100"})).wait(); f.Outcome != agent.Exited {
		t.Errorf("afterwards both are free: %v, %s", f.Outcome, f.Detail)
	}
	if f := b.start(shaped("true", job.Resources{GPUs: 1, GPUType: "v100"})).wait(); f.Outcome != agent.Unstartable {
		t.Errorf("a GPU of another type: %v", f.Outcome)
	}
}

// TestTasksOpenTheirOwnGPUs runs only on machines where control groups limit devices. It checks that a task can open
// only the files of its own GPU.
func TestTasksOpenTheirOwnGPUs(t *testing.T) {
	probe := cell.Open("test-devices-"+filepath.Base(t.TempDir()), cell.Devices)
	holds := probe.Holds(cell.Devices)
	_ = probe.Close()
	if !holds {
		t.Skip("no control groups that limit devices here")
	}
	b := newBench(t, twoGPUs)
	open := `for f in zero full null; do (: </dev/$f) 2>/dev/null && printf "$f "; done; echo $CUDA_VISIBLE_DEVICES`
	for i, c := range []struct {
		gpus int
		want string
	}{{1, "zero null 0"}, {0, "null"}, {2, "zero full null 0,1"}} {
		task := b.start(shaped(open, job.Resources{CPUs: 1, GPUs: c.gpus}))
		task.wait()
		if got := strings.TrimSpace(b.read(task, false)); got != c.want {
			t.Errorf("case %d: a task with %d GPUs opens %q, want %q", i, c.gpus, got, c.want)
		}
	}
	plain := b.start(sh(open)) // a task without sizes
	plain.wait()
	if got := strings.TrimSpace(b.read(plain, false)); got != "zero full null" {
		t.Errorf("a task without a shape opens %q", got)
	}
}

// TestTasksSeeTheirShape checks nproc, the thread counts of OpenMP and Go, and the variables of a task.
func TestTasksSeeTheirShape(t *testing.T) {
	var all []int
	b := newBench(t, func(c *runner.Config) {
		c.Machine.CPUs = machine.Processors()
		all = c.Machine.CPUs
		c.Machine.Memory = 3 << 30
	})
	task := b.start(shaped(`(unset OMP_NUM_THREADS; nproc); echo $OMP_NUM_THREADS $GOMAXPROCS $CANDOR_CPUS $CANDOR_MEMORY`, job.Resources{CPUs: 1, Memory: 1 << 30}))
	task.wait()
	if got := b.read(task, false); got != "1\n1 1 1 1073741824\n" {
		t.Errorf("a task with one processor sees %q", got)
	}
	mine := shaped(`echo $OMP_NUM_THREADS $CANDOR_MEMORY`, job.Resources{CPUs: len(all)})
	mine.Memory = job.AllMemory
	mine.Env = job.Env{{Name: "OMP_NUM_THREADS", Value: "3"}}
	task = b.start(mine)
	task.wait()
	if got := b.read(task, false); got != "3 3221225472\n" {
		t.Errorf("a task that says how many threads, with all memory, sees %q", got)
	}
}
