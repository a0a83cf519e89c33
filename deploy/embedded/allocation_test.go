package embedded

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/candor-grid/candor/messages/await"
)

// slurmSite is a site of the real binary with three nodes of four processors. Scripts are submitted from a directory
// with Slurm's commands.
type slurmSite struct {
	*testing.T
	dir string
	env []string
}

func newSlurmSite(t *testing.T) *slurmSite {
	built, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	s := &slurmSite{T: t, dir: t.TempDir()} // tasks see the directory, because their jobs are submitted from there
	state := t.TempDir()
	if err := os.Link(built, filepath.Join(s.dir, "candor")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sbatch", "srun", "salloc", "sbcast", "scancel", "scontrol"} {
		if err := os.Symlink("candor", filepath.Join(s.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	config := "site: campus\nreplicas: 1\naccounts: [{name: alice, grant: 1000}]\nmarkets: [{name: cpu, mechanism: proportional, default_budget: 5, classes: [cpu], units: [{class: cpu, unit: {cpus: 1, memory: 1G}}]}]\nnodes:\n"
	for i := range 3 {
		config += fmt.Sprintf("  - {name: n%d, slots: {cpu: 4}, resources: {cpus: 4, memory: 4G}, declared: true}\n", i+1)
	}
	s.write("site.yaml", config)
	up := exec.Command(filepath.Join(s.dir, "candor"), "up", "--config", filepath.Join(s.dir, "site.yaml"), "--state", state, "--listen", "127.0.0.1:0")
	up.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	process := await.Start(t, up, "Stop with")
	select {
	case <-process.Found:
	case <-process.Ended:
		t.Fatal(process.Output)
	}
	t.Cleanup(func() {
		_ = up.Process.Signal(syscall.SIGINT)
		<-process.Ended
	})
	s.env = append(os.Environ(), "CANDOR_STATE="+state, "PATH="+s.dir+":"+os.Getenv("PATH"))
	return s
}

func (s *slurmSite) write(name, text string) {
	s.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644); err != nil {
		s.Fatal(err)
	}
}

func (s *slurmSite) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(s.dir, name))
	return string(text)
}

// run runs a command. It returns its output and exit code.
func (s *slurmSite) run(words ...string) (string, int) {
	s.Helper()
	cmd := exec.CommandContext(s.Context(), filepath.Join(s.dir, words[0]), words[1:]...)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	if _, ended := err.(*exec.ExitError); err != nil && !ended {
		s.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// script runs a script to its end, and returns its output and exit code.
func (s *slurmSite) script(options, body string) (string, int) {
	s.Helper()
	s.write("job.sh", "#!/bin/bash\n#SBATCH -o out "+options+"\n"+body+"\n")
	said, code := s.run("sbatch", "--wait", "job.sh")
	if !strings.Contains(said, "Submitted batch job") {
		s.Fatal(said)
	}
	return s.read("out"), code
}

// TestAllocation runs a script on two nodes. The script must run once, its variables must describe the allocation,
// and srun must start ranks on both nodes.
func TestAllocation(t *testing.T) {
	s := newSlurmSite(t)
	out, code := s.script("-N 2 -n 5 -c 1", `echo x >> once
echo "$SLURM_NTASKS $SLURM_NNODES $SLURM_JOB_NUM_NODES $SLURM_TASKS_PER_NODE $SLURM_JOB_CPUS_PER_NODE $SLURM_PROCID ${SLURM_STEP_ID:-none}"
srun -l sh -c 'echo "$SLURM_LOCALID $SLURM_NODEID $SLURM_STEP_ID $([ $CANDOR_NODE = $SLURMD_NODENAME ] && echo here)"' | sort
case $SLURM_NODELIST in n\[[123][,-][123]\]) scontrol show hostnames | sort -u | wc -l;; esac`)
	want := "5 2 2 3,2 3(x2) 0 none\n0: 0 0 0 here\n1: 1 0 0 here\n2: 2 0 0 here\n3: 0 1 0 here\n4: 1 1 0 here\n2\n"
	if code != 0 || out != want || s.read("once") != "x\n" {
		t.Errorf("exit code %d, it ran %q: %s, want %s", code, s.read("once"), out, want)
	}
	out, code = s.script("-N 2 --ntasks-per-node=2", `srun sh -c '[ $SLURM_PROCID = 3 ] || exit 0; exit 9'; echo $?
echo said | srun cat
srun -n 4 printf '%s|' 'a b' '"c;d"'; echo
srun -n 2 -o 'file.%t.%n' sh -c 'echo $SLURM_PROCID'; cat file.0.0 file.1.1
srun ./missing; echo $?
srun -n 5 true; echo $?
srun sh -c 'exit $((SLURM_PROCID == 2 ? 4 : 0))'`)
	for _, part := range []string{"9\n", "said\nsaid\nsaid\nsaid\n", `a b|"c;d"|a b|"c;d"|a b|"c;d"|a b|"c;d"|`, "0\n1\n", "execve(): ./missing", "\n2\n", "More processors requested than permitted\n1\n", "task 3: Exited with exit code 9"} {
		if !strings.Contains(out, part) {
			t.Errorf("no %q in %s", part, out)
		}
	}
	if code != 4 {
		t.Errorf("exit code %d, want 4", code)
	}
	for options, sentence := range map[string]string{
		"-N 4":               "the job asks for 4 nodes, but only 3 nodes of class cpu can run its tasks",
		"-N 2 -n 10":         "no node of class cpu has 5 cpus",
		"-N 2 --array=0-1":   "an array of jobs on several nodes is not possible here",
		"-n 2 -N 1 --mem=5G": "no node of class cpu has",
	} {
		s.write("job.sh", "#!/bin/bash\n#SBATCH "+options+"\ntrue\n")
		if said, code := s.run("sbatch", "job.sh"); code != 1 || !strings.Contains(said, sentence) {
			t.Errorf("%s: exit code %d: %s, want %q", options, code, said, sentence)
		}
	}
}

// TestAnAllocationFromATerminal runs salloc and srun outside of a job. Each must get its own allocation, also on several
// nodes. Input, output and exit code are those of the local process.
func TestAnAllocationFromATerminal(t *testing.T) {
	s := newSlurmSite(t)
	for _, one := range []struct {
		words []string
		want  string
		code  int
	}{
		{[]string{"salloc", "-Q", "-N", "2", "srun", "-l", "sh", "-c", "echo $SLURM_NNODES"}, "0: 2\n1: 2\n", 0},
		{[]string{"salloc", "-Q", "-N", "2", "sh", "-c", "echo $SLURM_TASKS_PER_NODE; exit 7"}, "1(x2)\n", 7},
		{[]string{"srun", "-Q", "-N", "2", "-n", "3", "--label", "sh", "-c", "exec 2>/dev/null; echo $SLURM_LOCALID; exit $SLURM_PROCID"}, "0: 0\n1: 1\n2: 0\n", 2},
		{[]string{"srun", "-Q", "-n", "2", "-c", "2", "sh", "-c", "echo $SLURM_CPUS_PER_TASK"}, "2\n2\n", 0},
	} {
		out, code := s.run(one.words...)
		var lines []string
		for line := range strings.Lines(out) {
			if !strings.HasPrefix(line, "srun: error:") {
				lines = append(lines, line)
			}
		}
		slices.Sort(lines)
		if got := strings.Join(lines, ""); code != one.code || got != one.want {
			t.Errorf("%q: exit code %d: %q, want %q", one.words, code, out, one.want)
		}
	}
	if out, code := s.run("srun", "-n", "2", "--pty", "true"); code != 1 || !strings.Contains(out, "--pty is for one task") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// TestScriptsOfSeveralRanks runs scripts with several ranks. They must use all processors of their node, give each rank its
// own program, and copy files to their nodes.
func TestScriptsOfSeveralRanks(t *testing.T) {
	s := newSlurmSite(t)
	out, code := s.script("-N 1 -n 4", "nproc; seq 4 | xargs -P $SLURM_NTASKS -n 1 echo | wc -l; srun printenv OMP_NUM_THREADS | sort -u; scontrol show job $SLURM_JOB_ID | grep -o 'NumTasks=4 CPUs/Task=1'")
	if code != 0 || out != "4\n4\n1\nNumTasks=4 CPUs/Task=1\n" {
		t.Errorf("exit code %d: %s", code, out)
	}
	s.write("programs", "0 echo first\n* sh -c 'echo rank $SLURM_PROCID'\n")
	out, code = s.script("-N 2 -n 2", `srun --multi-prog programs | sort
f=/tmp/candor.sbcast.$SLURM_JOB_ID; echo data > source; chmod 640 source; sbcast source $f && srun sh -c "stat -c %a $f; cat $f" | sort; sbcast source $f; echo $?; sbcast -f --compress=lz4 source $f || echo failed; srun rm -f $f; scontrol update job $SLURM_JOB_ID JobName=renamed`)
	if code != 0 || !strings.HasPrefix(out, "first\nrank 1\n640\n640\ndata\ndata\n") || !strings.Contains(out, "is there already") || !strings.HasSuffix(out, "\n1\n") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// TestAnAllocationEnds cancels an allocation, and lets another one reach its time limit. No rank may remain on any node,
// even if it ignores TERM.
func TestAnAllocationEnds(t *testing.T) {
	s := newSlurmSite(t)
	for name, end := range map[string]func(job string){
		"cancel": func(job string) { s.run("scancel", job) },
		"limit":  func(string) {},
	} {
		options := "--time=1"
		if name == "limit" {
			options = "--time=0:02"
		}
		s.write("job.sh", "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=2 "+options+"\nsrun sh -c 'trap \"\" TERM; echo > "+name+".$SLURM_PROCID; while true; do exec -a candor-rank-"+name+" sleep 600; done'\n")
		s.write("job.sh", strings.ReplaceAll(s.read("job.sh"), "srun sh -c", "srun bash -c"))
		said, code := s.run("sbatch", "job.sh")
		fields := strings.Fields(said)
		if code != 0 {
			t.Fatal(said)
		}
		await.Until(t, "all ranks run", func() bool {
			found, _ := filepath.Glob(filepath.Join(s.dir, name+".?"))
			return len(found) == 4 && len(ranksNamed("candor-rank-"+name)) == 4
		})
		end(fields[len(fields)-1])
		await.Until(t, "no rank is left", func() bool { return len(ranksNamed("candor-rank-"+name)) == 0 })
	}
}

// ranksNamed returns the processes of this machine whose first word is a name.
func ranksNamed(name string) (pids []int) {
	found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range found {
		if text, _ := os.ReadFile(file); strings.HasPrefix(string(text), name+"\x00") {
			pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}
