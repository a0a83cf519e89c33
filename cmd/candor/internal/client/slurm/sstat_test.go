package slurm

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/candor-grid/candor/messages/await"
)

// The script must find the processes of one task by their variables, and must leave out its own processes.
func TestSstatMeasuresTheProcessesOfATask(t *testing.T) {
	begin := func(env ...string) {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	}
	lease := "CANDOR_LEASE=" + t.TempDir() + ":7.0.0.1"
	begin(lease)
	begin(lease, "CANDOR_STEP=3", "SLURM_PROCID=0")
	begin(lease, "CANDOR_STEP=3", "SLURM_PROCID=1", "X=CANDOR_STEP=4")
	begin(lease+"0", "CANDOR_STEP=5")
	await.Until(t, "the processes have used a processor", func() bool {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", measure)
		cmd.Env = []string{lease, "PATH=" + os.Getenv("PATH")}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		steps := map[string]*used{}
		usedBy(steps, "n1", string(out), true)
		if got := chosenSteps(steps, "", true); !slices.Equal(got, []string{"3", "batch"}) {
			return false // some processes have not started yet
		}
		least := int64(1 << 40)
		for _, u := range steps {
			for task := range u.cpu {
				if least = min(least, int64(u.cpu[task])); u.rss[task] < 1<<18 {
					t.Errorf("%s: %d bytes", task, u.rss[task])
				}
			}
		}
		return len(steps["3"].cpu) == 2 && len(steps["batch"].cpu) == 1 && least >= 2e7
	})
}

// Inside a job on one node, sstat can measure the job itself. It must not need a connection to the site.
func TestSstatInAJob(t *testing.T) {
	for _, one := range []struct {
		job, want string
		code      int
	}{{"7.batch", "7.batch|1|node1\n", 0}, {"7", "7.batch|1|node1\n", 0}, {"7.3", "", 1}} {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `"$0" -nP -o jobid,ntasks,nodelist -j `+one.job+"; exit $?", os.Args[0])
		cmd.Env = append(os.Environ(), asSrun+"=sstat", "CANDOR_JOB=7", "SLURM_JOB_ID=7", "CANDOR_NODE=node1", "CANDOR_LEASE="+t.TempDir()+":7.0.0.1")
		out, _ := cmd.Output()
		if string(out) != one.want || cmd.ProcessState.ExitCode() != one.code {
			t.Errorf("%s: exit code %d, %q, want %q", one.job, cmd.ProcessState.ExitCode(), out, one.want)
		}
	}
}

// The test makes its input with the function `line`, which returns what a node reports about one process of a step. The
// three processes used 1.5 s, 0.5 s and 4 s of processor time. Two of them are of rank 0 on the node n1, and one is of
// rank 1 on the node n2.
func TestFieldsOfSstat(t *testing.T) {
	line := func(rank, memory, ticks string) string {
		return "36|CANDOR_STEP=0 SLURM_PROCID=" + rank + " |VmHWM:	    " + memory + " kB|25 (a b) S 13 25 10 0 -1 4194304 65 0 0 0 " + ticks + " 0 50 0 20 0 1 0\n"
	}
	steps := map[string]*used{}
	usedBy(steps, "n1", line("0", "1000", "100")+line("0", "3000", "0")+"36||VmHWM:	9 kB|36 (sh) S 0 36 36 0 -1 0 0 0 0 0 9 9 9 9 20 0 1 0\n36||VmHWM:	9 kB|6 (sleep) S 0 6 6 0 -1 0 0 0 0 0 9 9 9 9 20 0 1 0\n", false)
	usedBy(steps, "n2", line("1", "2000", "350"), false)
	if got := chosenSteps(steps, "", true); !slices.Equal(got, []string{"0"}) {
		t.Fatalf("steps %q: a process that holds slots, or the script itself, counts", got)
	}
	var got []string
	for _, f := range usedFields(map[string]*used{"7.0": steps["0"]}) {
		got = append(got, f.text(&row{index: "7.0"}))
	}
	if want := "7.0 2 00:00:03 00:00:02 2500K 3000K n1 0 n1,n2"; strings.Join(got[:9], " ") != want {
		t.Errorf("%q, want %q", got[:9], want)
	}
}
