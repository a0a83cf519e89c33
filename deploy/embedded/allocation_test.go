package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages/await"
)

// slurmSite is a site of three nodes with four processors each, run by the real binary. Scripts find Slurm's commands
// in a directory.
type slurmSite struct {
	*testing.T
	dir string
	env []string
}

func newSlurmSite(t *testing.T) *slurmSite { return slurmSiteOf(t, "n1", "n2", "n3") }

func slurmSiteOf(t *testing.T, nodes ...string) *slurmSite {
	return slurmSiteWith(t, "proportional", nodes...)
}

func slurmSiteWith(t *testing.T, mechanism string, nodes ...string) *slurmSite {
	return slurmSiteWithProlog(t, "", mechanism, nodes...)
}

// slurmSiteWithProlog starts a site. Its nodes run a script of sh before each job; "" means none.
func slurmSiteWithProlog(t *testing.T, prolog, mechanism string, nodes ...string) *slurmSite {
	built, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	s := &slurmSite{T: t, dir: t.TempDir()} // tasks see the directory, because their jobs are submitted from there
	state := t.TempDir()
	if err := os.Link(built, filepath.Join(s.dir, "candor")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sbatch", "srun", "salloc", "sbcast", "scancel", "scontrol", "squeue", "sacct", "sstat"} {
		if err := os.Symlink("candor", filepath.Join(s.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	config := "site: campus\nreplicas: 1\naccounts: [{name: alice, grant: 1000}]\nmarkets: [{name: cpu, mechanism: " + mechanism + ", default_budget: 5, classes: [cpu], units: [{class: cpu, unit: {cpus: 1, memory: 1G}}]}]\nnodes:\n"
	if prolog != "" {
		path := filepath.Join(t.TempDir(), "prolog")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+prolog+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		config = "tasks: {prolog: " + path + "}\n" + config
	}
	for _, name := range nodes {
		config += fmt.Sprintf("  - {name: %s, slots: {cpu: 4}, resources: {cpus: 4, memory: 4G}, declared: true}\n", name)
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

func (s *slurmSite) missing(name string) bool {
	_, err := os.Stat(filepath.Join(s.dir, name))
	return err != nil
}

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

func (s *slurmSite) script(options, body string) (string, int) {
	s.Helper()
	s.write("job.sh", "#!/bin/bash\n#SBATCH -o out "+options+"\n"+body+"\n")
	said, code := s.run("sbatch", "--wait", "job.sh")
	if !strings.Contains(said, "Submitted batch job") {
		s.Fatal(said)
	}
	return s.read("out"), code
}

// TestAllocation runs a script on two nodes. The script must run once, and srun must start ranks on both nodes.
func TestAllocation(t *testing.T) {
	t.Parallel()
	s := newSlurmSite(t)
	out, code := s.script("-N 2 -n 5 -c 1", `echo x >> once
echo "$SLURM_NTASKS $SLURM_NNODES $SLURM_JOB_NUM_NODES $SLURM_TASKS_PER_NODE $SLURM_JOB_CPUS_PER_NODE $SLURM_PROCID ${SLURM_STEP_ID:-none}"
srun -l sh -c 'echo "$SLURM_LOCALID $SLURM_NODEID $SLURM_STEP_ID $([ $CANDOR_NODE = $SLURMD_NODENAME ] && echo here)"' | sort
case $SLURM_NODELIST in n\[[123][,-][123]\]) scontrol show hostnames | sort -u | wc -l;; esac
srun -N 2 -n 2 --ntasks-per-node 1 --nodelist $(scontrol show hostnames | paste -sd,) --input none sh -c 'cat; echo proxy $SLURM_NODEID' | sort`) // as mpiexec.hydra of Intel MPI 2021.8 calls srun
	want := "5 2 2 3,2 3(x2) 0 none\n0: 0 0 0 here\n1: 1 0 0 here\n2: 2 0 0 here\n3: 0 1 0 here\n4: 1 1 0 here\n2\nproxy 0\nproxy 1\n"
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
	const where = `sh -c 'echo "$SLURM_PROCID $SLURM_NODEID $SLURM_LOCALID $SLURM_TASKS_PER_NODE $SLURM_DISTRIBUTION"'`
	out, _ = s.script("-N 2 -n 5 -m cyclic", "srun "+where+" | sort; srun -n 4 -m plane=1 "+where+" | sort; srun -m block "+where+" | sort")
	want = "0 0 0 3,2 cyclic\n1 1 0 3,2 cyclic\n2 0 1 3,2 cyclic\n3 1 1 3,2 cyclic\n4 0 2 3,2 cyclic\n" +
		"0 0 0 2(x2) plane\n1 1 0 2(x2) plane\n2 0 1 2(x2) plane\n3 1 1 2(x2) plane\n" +
		"0 0 0 3,2 block\n1 0 1 3,2 block\n2 0 2 3,2 block\n3 1 0 3,2 block\n4 1 1 3,2 block\n"
	if out != want {
		t.Errorf("distributions: %s, want %s", out, want)
	}
	for options, sentence := range map[string]string{
		"-m arbitrary":       "a list of nodes (SLURM_HOSTFILE) is not read",
		"-m plane":           "as in plane=4",
		"-m block,Pack":      "the ranks are divided evenly over the nodes",
		"-N 4":               "the job asks for 4 nodes, but only 3 nodes of class cpu can run its tasks",
		"-N 2 -n 10":         "no node of class cpu has 5 cpus",
		"-n 2 -N 1 --mem=5G": "no node of class cpu has",
	} {
		s.write("job.sh", "#!/bin/bash\n#SBATCH "+options+"\ntrue\n")
		if said, code := s.run("sbatch", "job.sh"); code != 1 || !strings.Contains(said, sentence) {
			t.Errorf("%s: exit code %d: %s, want %q", options, code, said, sentence)
		}
	}
}

// TestAnArrayOfAllocations runs arrays whose elements need several nodes. Each element must be a separate allocation.
// Commands must find it by array number and index, and by its own number.
func TestAnArrayOfAllocations(t *testing.T) {
	t.Parallel()
	s := newSlurmSite(t)
	s.env = append(s.env, "CANDOR_BUDGET=3")
	submit := func(options string) (number int) {
		t.Helper()
		s.write("job.sh", "#!/bin/bash\n#SBATCH -N 2 -n 3 "+options+`
{ echo "$SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_TASK_COUNT $SLURM_ARRAY_TASK_MIN $SLURM_ARRAY_TASK_MAX $SLURM_ARRAY_TASK_STEP"
srun -l sh -c 'echo $CANDOR_ARRAY_INDEX' | sort; } > element.$SLURM_ARRAY_TASK_ID
srun -n 1 -o rank.%A.%a scontrol show job $SLURM_JOB_ID
`)
		said, code := s.run("sbatch", "--parsable", "job.sh")
		number, err := strconv.Atoi(strings.TrimSpace(said))
		if code != 0 || err != nil {
			t.Fatal(said)
		}
		return number
	}
	states := func(number int) string {
		out, _ := s.run("sacct", "-nP", "-j", strconv.Itoa(number), "-o", "JobID,State")
		return strings.ReplaceAll(strings.TrimSpace(out), "\n", " ")
	}

	first := submit("--array=3-7:2%1 --wait -o %A.%2a.%j")
	want := fmt.Sprintf("%d_3|COMPLETED %d_5|COMPLETED %d_7|COMPLETED", first, first, first)
	if got := states(first); got != want {
		t.Errorf("states %s, want %s", got, want)
	}
	for i, index := range []int{3, 5, 7} {
		want := fmt.Sprintf("%d %d 3 3 7 2\n0: %d\n1: %d\n2: %d\n", first, index, index, index, index)
		if got := s.read(fmt.Sprintf("element.%d", index)); got != want {
			t.Errorf("element %d: %q, want %q; the job said %q", index, got, want, s.read(fmt.Sprintf("%d.%02d.%d", first, index, first+i)))
		}
		if name := fmt.Sprintf("%d.%02d.%d", first, index, first+i); s.missing(name) {
			t.Errorf("there is no file %s", name)
		}
		if shown := s.read(fmt.Sprintf("rank.%d.%d", first, index)); !strings.Contains(shown, fmt.Sprintf("JobId=%d ArrayJobId=%d ArrayTaskId=%d ", first+i, first, index)) || !strings.Contains(shown, "StdIn=/dev/null\n") {
			t.Errorf("scontrol show job of element %d: %s", index, shown)
		}
	}

	held := submit("--array=1-3 --hold")
	for _, one := range []struct{ words, want string }{
		{"squeue -h -o %i.%F.%K.%A.%t -j HELD", "HELD_1.HELD.1.HELD.PD\nHELD_2.HELD.2.HELD+1.PD\nHELD_3.HELD.3.HELD+2.PD\n"},
		{"squeue -h -o %i -j HELD_2", "HELD_2\n"},
		{"sacct -nP -o JobID,Budget -j HELD_2", "HELD_2|1\n"}, // each element has its part of the array's budget
		{"squeue -h -o %i -j HELD+2", "HELD_3\n"},
		{"sbatch --parsable --hold -d afterok:HELD --wrap true", "HELD+3\n"},
		{"squeue -h -o %E -j HELD+3", "afterok:HELD:HELD+1:HELD+2\n"},
		{"sbatch --parsable -d aftercorr:HELD job.sh", "HELD+4\n"},
		{"squeue -h -o %i.%E -j HELD+4", "HELD+4_1.afterok:HELD\nHELD+4_2.afterok:HELD+1\nHELD+4_3.afterok:HELD+2\n"},
		{"sbatch -d aftercorr:HELD --array=3-4 job.sh", "sbatch: error: --dependency: array HELD has no element 4: both arrays must have the same indices (Invalid)\n"},
		{"scontrol update job HELD+3 Dependency=afterany:HELD Comment=later", ""},
		{"squeue -h -o %E.%k -j HELD+3", "afterany:HELD:HELD+1:HELD+2.later\n"},
		{"scontrol update job HELD+3 Dependency=", ""},
		{"squeue -h -o %E.%k -j HELD+3", "(null).later\n"},
		{"candor change HELD+3 --after-nothing --comment free", "Job HELD+3 is changed; its budget is 3 credits\n"},
		{"candor change HELD+3 --after-ok HELD --after-failed HELD+1", "Job HELD+3 is changed; its budget is 3 credits\n"},
		{"squeue -h -o %E.%k -j HELD+3", "afterok:HELD,afternotok:HELD+1.free\n"},
		{"scontrol update job HELD Dependency=afterok:HELD+1", "scontrol: error: job HELD can only wait for jobs that were submitted before it, and job HELD+1 was not (Invalid)\n"},
		{"scontrol update job HELD Partition=other", "scontrol: error: Partition=other: the job's bid depends on this value, and a bid cannot be changed here: cancel the job and submit it again\n"},
		{"scancel HELD_9", "scancel: error: Invalid job id specified: array HELD has no such element\n"},
		{"sbatch -N 2 --array=1-1001 --wrap true", "sbatch: error: --array: has 1001 elements, and each would be a job on several nodes: at most 1000 are possible in one array (TooLarge)\n"},
		{"candor submit job.sh", "candor submit: --array: each element would be a job on several nodes: submit the script with sbatch, which makes these jobs, or ask for one node (Invalid)\n"},
		{"scancel HELD_2 HELD+4", ""},
		{"sacct -nP -o JobID,JobIDRaw,State -j HELD", "HELD_1|HELD|PENDING\nHELD_2|HELD+1|CANCELLED\nHELD_3|HELD+2|PENDING\n"},
		{"squeue -h -o %i -j HELD", "HELD_1\nHELD_3\n"},
		{"scancel HELD_1", ""},
		{"squeue -h -o %i -j HELD", "HELD_3\n"}, // squeue finds the array although its first job has ended
		{"scontrol release HELD_3", ""},
	} {
		fill := func(text string) string {
			for i := range 5 {
				text = strings.ReplaceAll(text, "HELD+"+strconv.Itoa(i), strconv.Itoa(held+i))
			}
			return strings.ReplaceAll(text, "HELD", strconv.Itoa(held))
		}
		got, tries := "", 0
		await.Until(t, "jobs that were cancelled have ended", func() bool {
			got, _ = s.run(strings.Fields(fill(one.words))...)
			tries++
			return got == fill(one.want) || tries == 20 || !strings.HasPrefix(one.words, "squeue") && !strings.HasPrefix(one.words, "sacct")
		})
		if got != fill(one.want) {
			t.Errorf("%s: %q, want %q", fill(one.words), got, fill(one.want))
		}
	}
	want = fmt.Sprintf("%d_1|CANCELLED %d_2|CANCELLED %d_3|COMPLETED", held, held, held)
	await.Until(t, "the released element completes", func() bool { return states(held) == want })
}

// TestAnAllocationFromATerminal runs salloc and srun outside of a job, on one node and on several. Each command must
// get a new allocation, and pass on the input, the output and the exit code.
func TestAnAllocationFromATerminal(t *testing.T) {
	t.Parallel()
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
	if out, code := s.run("srun", "-Q", "-n", "2", "--pty", "echo", "once"); code != 0 || strings.Count(out, "once") != 1 {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// Scripts with several ranks must use all processors of their node, give each rank a program, and copy files to their
// nodes.
func TestScriptsOfSeveralRanks(t *testing.T) {
	t.Parallel()
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

// TestAnAllocationEnds cancels an allocation, and lets another one reach its time limit. Within seconds, no rank may
// remain on a node, even if the rank ignores TERM. The last line of the output must give the reason. A busy node may
// leave this line out, so the test repeats each end until the line is there.
func TestAnAllocationEnds(t *testing.T) {
	t.Parallel()
	s := newSlurmSite(t)
	for _, end := range []struct {
		name, limit string // time limit, in the form of sbatch
		words       string // end of the output's last line
	}{
		{"cancel", "1", " *** cancelled by alice, its owner\n"},
		{"limit", "0:02", " DUE TO TIME LIMIT *** its time limit is 2s\n"},
	} {
		ran, said := false, false
		for try := 0; !(ran && said) && try < 5; try++ {
			rank := fmt.Sprintf("candor-rank-%s-%d", end.name, try)
			s.write("job.sh", "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=2 --time="+end.limit+"\nsrun bash -c 'trap \"\" TERM; while true; do exec -a "+rank+" sleep 600; done'\n")
			submitted, code := s.run("sbatch", "job.sh")
			if code != 0 {
				t.Fatal(submitted)
			}
			fields := strings.Fields(submitted)
			job := fields[len(fields)-1]
			ended := func() bool {
				out, _ := s.run("squeue", "-h")
				return out == ""
			}
			await.Until(t, "all ranks run", func() bool {
				ran = len(ranksNamed(rank)) == 4
				return ran || ended()
			})
			if end.name == "cancel" {
				s.run("scancel", job)
			}
			began := time.Now()
			await.Until(t, "no rank is left", func() bool { return len(ranksNamed(rank)) == 0 })
			if took := time.Since(began); took > 40*time.Second {
				t.Errorf("%s: ranks ran for %v more", end.name, took)
			}
			await.Until(t, "the job has ended", ended)
			text := s.read("slurm-" + job + ".out")
			lines := strings.Count(text, "candor: error: *** JOB "+job+" ON n")
			if said = lines == 1; lines > 1 || said && !strings.Contains(text, end.words) {
				t.Errorf("%s: the output is %q", end.name, text)
			}
		}
		if !ran || !said {
			t.Errorf("%s: all ranks ran: %v, the output had the last line: %v", end.name, ran, said)
		}
	}
}

// launchRanks runs torchrun if PyTorch is installed, and otherwise imitates it. One process runs on each node. The
// processes connect to a common host name and port. Each process then starts its ranks, and together they compute the
// sum of all ranks' numbers.
const launchRanks = `import os, re, socket, subprocess, sys, time
said = dict(word[2:].split("=") for word in sys.argv[1:-1])
try:
    from torch.distributed.elastic.multiprocessing.api import Std
    from torch.distributed.run import main
except ImportError:
    host, port = said["rdzv_endpoint"].split(":")
    nodes, each = int(said["nnodes"]), int(said["nproc_per_node"])
    at = int(os.environ["SLURM_PROCID"])
    if at == 0:
        with socket.create_server((host, int(port))) as server:
            conns = [server.accept()[0] for _ in range(nodes - 1)]
        for i, conn in enumerate(conns):
            conn.sendall(b"%d\n" % (i + 1))
        total = sum(range(1, nodes * each + 1))
        for conn in conns:
            conn.sendall(b"%d\n" % total)
        node = 0
    else:
        while True:
            try:
                conn = socket.create_connection((host, int(port)))
                break
            except ConnectionRefusedError:
                time.sleep(0.1)
        words = conn.makefile()
        node, total = int(words.readline()), int(words.readline())
    for local in range(each):
        print("rank %d of %d on %s: %d\n" % (node * each + local, nodes * each, os.environ["CANDOR_NODE"], total), end="", flush=True)
else:
    Std.from_str = classmethod(lambda cls, text: cls.NONE) # torch 1.13 does not know the enumerations of Python 3.11
    main()
`

const sumOfRanks = `import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
part = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(part)
os.write(1, ("rank %d of %d on %s: %d\n" % (dist.get_rank(), dist.get_world_size(), os.environ["CANDOR_NODE"], int(part))).encode())
dist.barrier()
`

// TestTorchrun starts torchrun on two nodes as people do under Slurm. The nodes must find one another by name.
func TestTorchrun(t *testing.T) {
	t.Parallel()
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	s := slurmSiteOf(t, "localhost", own)
	s.write("torchrun.py", launchRanks)
	s.write("sum.py", sumOfRanks)
	out, code := s.script("--nodes=2 --ntasks-per-node=1 --cpus-per-task=2", `export OMP_NUM_THREADS=1
srun /usr/bin/python3 torchrun.py --nnodes=$SLURM_NNODES --nproc_per_node=2 --rdzv_id=$SLURM_JOB_ID --rdzv_backend=c10d --rdzv_endpoint=$(scontrol show hostnames | head -1):29517 sum.py`)
	for rank := range 4 {
		if !regexp.MustCompile(fmt.Sprintf(`rank %d of 4 on (localhost|%s): 10\n`, rank, own)).MatchString(out) {
			t.Errorf("no rank %d", rank)
		}
	}
	if code != 0 || strings.Count(out, "of 4 on localhost") != 2 {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// sstat must list the tasks, nodes and CPU time of running steps, until the job has ended.
func TestRunningStepsAreMeasured(t *testing.T) {
	t.Parallel()
	s := newSlurmSite(t)
	s.write("job.sh", "#!/bin/bash\n#SBATCH -N 2 -n 3 -t 5\nsrun --exact -n 2 -N 2 sh -c 'touch first; exec sleep 300' &\nuntil [ -e first ]; do sleep 0.1; done\nsrun --exact -n 1 sh -c 'while :; do :; done' &\nwait\n")
	if said, code := s.run("sbatch", "job.sh"); code != 0 {
		t.Fatal(said)
	}
	steps := regexp.MustCompile(`^1\.0\|2\|n\d,n\d\|00:00:00\n1\.1\|1\|n\d\|00:0\d:(0[1-9]|[1-9]\d)\n1\.batch\|1\|n\d\|00:00:00\n$`)
	await.Until(t, "both steps run, and one has used a second", func() bool {
		out, _ := s.run("sstat", "-anP", "-o", "jobid,ntasks,nodelist,avecpu", "-j", "1")
		return steps.MatchString(out)
	})
	if said, code := s.run("scancel", "1.0"); code != 0 {
		t.Errorf("exit code %d: %s", code, said)
	}
	await.Until(t, "only the other step runs", func() bool {
		out, _ := s.run("sstat", "-anP", "-o", "jobid,ntasks", "-j", "1")
		return out == "1.1|1\n1.batch|1\n"
	})
	if said, code := s.run("scancel", "-s", "USR1", "1.0"); code != 1 || !strings.Contains(said, "no step 0 runs") {
		t.Errorf("exit code %d: %s", code, said)
	}
	s.run("scancel", "1")
	await.Until(t, "the job has ended", func() bool {
		out, _ := s.run("sstat", "-j", "1")
		return strings.Contains(out, "no steps running for job 1")
	})
}

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

// TestAllocationsInOtherMarkets fills a site with jobs of one node, and then submits two allocations of all nodes. Both
// must run, although jobs of one node keep coming.
func TestAllocationsInOtherMarkets(t *testing.T) {
	t.Parallel()
	for mechanism, bids := range map[string][2]string{ // by mechanism: the bid of a job of one node, and the bid of an allocation
		"backfill":                             {},
		"highest-bid":                          {"--rate 2/h", "--rate 4/h"},
		"highest-bid, algorithm: NPHB":         {"--rate 2/h", "--rate 4/h"},
		"batch-queue, pricing: pivot":          {"--value 1 --length 3s", "--value 2 --length 10s"},
		"reservation, cycle: 20s, granule: 1s": {"--value 0.01 --length 2s", "--value 2 --length 6s"},
	} {
		t.Run(mechanism, func(t *testing.T) {
			s := slurmSiteWith(t, mechanism, "n1", "n2", "n3")
			s.write("one.sh", "#!/bin/bash\n#CANDOR "+bids[0]+"\n#SBATCH -c 3 -t 1 -o one.%j\nsleep 1\n")
			s.write("all.sh", "#!/bin/bash\n#CANDOR "+bids[1]+"\n#SBATCH -N 3 --ntasks-per-node=2 -t 1 -o all.%j\nsrun -l printenv SLURM_NODEID | sort >all.$SLURM_JOB_ID\nsleep 1\n")
			for range 4 {
				s.submit("one.sh")
			}
			all := []string{s.submit("all.sh"), s.submit("all.sh")}
			for range 3 {
				s.submit("one.sh")
			}
			for _, job := range all {
				s.ends(job)
				if got, want := s.read("all."+job), "0: 0\n1: 0\n2: 1\n3: 1\n4: 2\n5: 2\n"; got != want {
					t.Errorf("job %s ran ranks on %q, want %q", job, got, want)
				}
			}
		})
	}
}

// TestAnAllocationWithAContract quotes and submits a job on two nodes with a contract. Its tasks must run on both
// nodes.
func TestAnAllocationWithAContract(t *testing.T) {
	t.Parallel()
	s := slurmSiteWith(t, "contract, prior: [{class: hard, max: 20, deadline: 3600}]", "n1", "n2")
	s.write("job.yaml", "length: 20s\nvaluation: {class: hard, max: 20, deadline: 600}\nbudget: 40\nstages: [{name: main, cpus: 3, command: [sleep, \"1\"]}]\n")
	menu, code := s.run("candor", "quote", "--nodes", "2", "job.yaml")
	contract := regexp.MustCompile(`q\d+-\d+`).FindString(menu)
	if code != 0 || contract == "" {
		t.Fatalf("exit code %d: %s", code, menu)
	}
	if said, code := s.run("candor", "submit", "--wait", "--nodes", "2", "--contract", contract, "job.yaml"); code != 0 {
		t.Fatalf("exit code %d: %s", code, said)
	}
	if tasks, _ := s.run("candor", "tasks", "1"); !regexp.MustCompile(`main\.0 +1 +Done +n[12]`).MatchString(tasks) || !strings.Contains(tasks, "n1") || !strings.Contains(tasks, "n2") {
		t.Errorf("it ran %s", tasks)
	}
}

func (s *slurmSite) submit(name string) string {
	s.Helper()
	out, code := s.run("sbatch", "--parsable", name)
	if code != 0 {
		s.Fatal(out)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n") // the last line has the job's number
	return lines[len(lines)-1]
}

func (s *slurmSite) ends(job string) {
	s.Helper()
	await.Until(s.T, "job "+job+" has ended", func() bool {
		out, _ := s.run("squeue", "-h", "-j", job)
		return !strings.Contains(out, job)
	})
}

// TestABetterBidSuspendsAnAllocation runs an allocation on three nodes in a highest-bid market, and then bids more for
// one node. All ranks must stop while the better bid runs, and go on together afterwards.
func TestABetterBidSuspendsAnAllocation(t *testing.T) {
	t.Parallel()
	s := slurmSiteWith(t, "highest-bid", "n1", "n2", "n3")
	s.write("all.sh", `#!/bin/bash
#CANDOR --rate 2/h
#SBATCH -N 3 --ntasks-per-node=1 -c 4 -t 5 -o all
srun sh -c 'until [ -e stop ]; do date +%s%N >>beats.$SLURM_PROCID; sleep 0.05; done'
echo over
`)
	s.write("one.sh", "#!/bin/bash\n#CANDOR --rate 4/h\n#SBATCH -c 2 -t 5 -o one\ndate +%s%N >began; sleep 2; date +%s%N >ended\n")
	beats := func(rank int) int { return strings.Count(s.read(fmt.Sprintf("beats.%d", rank)), "\n") }
	all := func(more [3]int) func() bool {
		return func() bool { return beats(0) > more[0] && beats(1) > more[1] && beats(2) > more[2] }
	}
	job := s.submit("all.sh")
	await.Until(t, "all ranks run", all([3]int{}))
	better := s.submit("one.sh")
	s.ends(better)
	await.Until(t, "all ranks go on", all([3]int{beats(0), beats(1), beats(2)}))
	s.write("stop", "")
	s.ends(job)
	if s.read("all") != "over\n" {
		t.Errorf("the allocation said %q", s.read("all"))
	}
	began, _ := strconv.ParseInt(strings.TrimSpace(s.read("began")), 10, 64)
	ended, _ := strconv.ParseInt(strings.TrimSpace(s.read("ended")), 10, 64)
	for rank := range 3 {
		for beat := range strings.FieldsSeq(s.read(fmt.Sprintf("beats.%d", rank))) {
			if at, _ := strconv.ParseInt(beat, 10, 64); at > began+1e9 && at < ended {
				t.Errorf("rank %d ran %v after the better bid began, and %v before it ended", rank, time.Duration(at-began), time.Duration(ended-at))
				break
			}
		}
	}
}

// TestCommandsThatTasksCannotSee puts Slurm's commands in a directory below /tmp, which tasks do not see. The script
// must still find srun.
func TestCommandsThatTasksCannotSee(t *testing.T) {
	t.Parallel()
	s := newSlurmSite(t)
	elsewhere := t.TempDir()
	err := os.Link(filepath.Join(s.dir, "candor"), filepath.Join(elsewhere, "candor"))
	for _, name := range []string{"sbatch", "srun", "scontrol", "squeue"} {
		err = errors.Join(err, os.Remove(filepath.Join(s.dir, name)), os.Symlink("candor", filepath.Join(elsewhere, name)))
	}
	if err != nil {
		t.Fatal(err)
	}
	s.env = append(s.env, "PATH="+elsewhere+":/usr/bin:/bin")
	s.write("job.sh", "#!/bin/bash\n#SBATCH -n 3 -o out\nsrun printenv SLURM_PROCID | sort\nscontrol show job $SLURM_JOB_ID | grep -o JobId=.\nsqueue -h | wc -l\n")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(elsewhere, "sbatch"), "--wait", "job.sh")
	cmd.Dir, cmd.Env = s.dir, s.env
	said, err := cmd.CombinedOutput()
	if out, want := s.read("out"), "0\n1\n2\nJobId=1\n1\n"; err != nil || out != want {
		t.Errorf("%v: %s\nthe script printed\n%s, want\n%s", err, said, out, want)
	}
}

// TestStepsWaitForSlowNodes starts a step in a job of three nodes. On all nodes but one, the prolog takes some seconds.
// The step must wait for these nodes, whichever of the nodes begins first.
func TestStepsWaitForSlowNodes(t *testing.T) {
	t.Parallel()
	s := slurmSiteWithProlog(t, "mkdir $(dirname $0)/$CANDOR_JOB 2>/dev/null || sleep 3", "proportional", "n1", "n2", "n3")
	s.env = append(s.env, "CANDOR_BUDGET=3")
	for range 3 {
		if said, code := s.script("-N 3 -n 3", "srun hostname >/dev/null && echo all"); code != 0 || said != "all\n" {
			t.Errorf("exit code %d: %s", code, said)
		}
	}
}

// TestAStepEndsWhileANodeIsSlow starts a step in a job of two nodes. On the node that begins later, the prolog takes
// 40 s. After an interrupt the step must end soon.
func TestAStepEndsWhileANodeIsSlow(t *testing.T) {
	t.Parallel()
	s := slurmSiteWithProlog(t, "mkdir $(dirname $0)/$CANDOR_JOB 2>/dev/null || sleep 40", "proportional", "n1", "n2")
	s.env = append(s.env, "CANDOR_BUDGET=3")
	if said, _ := s.script("-N 2 -n 2", "srun sleep 100 2>/dev/null & for i in 1 2; do sleep 3; kill -INT $! 2>/dev/null; done; for i in 1 2 3 4 5 6 7 8; do kill -0 $! 2>/dev/null || { echo ended; break; }; sleep 1; done; scancel $SLURM_JOB_ID"); !strings.HasPrefix(said, "ended\n") {
		t.Errorf("the job said %q", said)
	}
}
