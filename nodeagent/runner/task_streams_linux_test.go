package runner_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// held is a script that prints what the kernel enforces on the script's own process. It also prints the variables of
// this process. It prints no process numbers, because they differ.
const held = `grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp|Cpus_allowed_list|Mems_allowed_list|Umask|SigIgn|SigBlk)' /proc/self/status
ulimit -a; nice; cat /proc/self/oom_score_adj /proc/self/cgroup
for n in cgroup ipc mnt net pid user uts; do readlink /proc/self/ns/$n; done
env | grep -E '^(CANDOR|CUDA|ROCR|OMP|HOME|USER|PATH|TMPDIR|PWD)' | sort; echo end
`

// TestACommandBesideATaskIsHeldAsTheTaskIs runs the same script, `held`, in three places: in a task, in a command of
// candor exec for this task, and in a step on another node. The kernel must enforce the same limits in all three.
func TestACommandBesideATaskIsHeldAsTheTaskIs(t *testing.T) {
	gpus := func(c *runner.Config) {
		twoGPUs(c)
		c.Machine.CPUs = []int{0}
		c.Machine.GPUs[0].Files, c.Machine.GPUs[1].Files = nil, nil
	}
	benches := map[string]func(t *testing.T) *bench{"as the agent": func(t *testing.T) *bench { return newBench(t, gpus) }}
	if os.Geteuid() == 0 {
		benches["apart"] = func(t *testing.T) *bench { return strangers(t, gpus) }
		benches["with namespaces"] = func(t *testing.T) *bench {
			return strangers(t, func(c *runner.Config) { gpus(c); c.Namespaces = true })
		}
	}
	for name, open := range benches {
		t.Run(name, func(t *testing.T) {
			b := open(t)
			task := b.start(shaped(held+"exec sleep 1000", job.Resources{CPUs: 1, GPUs: 1}))
			want := ""
			await.Until(t, "the task says what holds it", func() bool {
				want = b.read(task, false)
				return strings.HasSuffix(want, "end\n")
			})
			f := b.follow(task.attempt, "a", "one")
			f.request.Begin = &agent.StreamBegin{Command: []string{"sh", "-c", held}}
			if _, err := b.Stream(context.Background(), f.request); err != nil {
				t.Fatal(err)
			}
			f.read("")
			if got := f.out.String(); got != want {
				is, was := strings.Split(got, "\n"), strings.Split(want, "\n")
				only := func(in, out []string) []string {
					return slices.DeleteFunc(slices.Clone(in), func(line string) bool { return slices.Contains(out, line) })
				}
				t.Errorf("beside the task: %q; the task: %q", only(is, was), only(was, is))
			}
			task.Stop(0)
			<-task.done
		})
	}
}
