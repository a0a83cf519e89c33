package slurm

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages/await"
)

// asSrun is a variable that makes this test binary behave as srun. Tests run srun as a separate process, because the
// process holds locks.
const asSrun = "CANDOR_TEST_AS_SRUN"

func TestMain(m *testing.M) {
	if name := os.Getenv(asSrun); name != "" {
		if commands[name] == nil {
			name = "srun"
		}
		code, _ := Main(append([]string{name}, os.Args[1:]...))
		os.Exit(code)
	}
	if os.Getenv("CANDOR_TEST_RING") != "" {
		os.Exit(ring())
	}
	os.Exit(m.Run())
}

// srunIn returns a call of srun in a job with a number of ranks. Each rank has one processor.
func srunIn(t *testing.T, dir string, ranks int, words ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], words...)
	n := strconv.Itoa(ranks)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), asSrun+"=yes", "CANDOR_JOB=7", "CANDOR_JOB_NAME=name", "CANDOR_NODE=node1", "CANDOR_STAGE=main", "CANDOR_TASK=0", "CANDOR_ATTEMPT=1", "CANDOR_CPUS="+n,
		"SLURM_NTASKS="+n, "SLURM_JOB_ID=7", "TMPDIR="+dir, "CUDA_VISIBLE_DEVICES=0,1,2,3", "MINE=1")
	return cmd
}

func linesOf(text string) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	slices.Sort(lines)
	return lines
}

// The number of ranks comes from the options of the step, or else from the job. Each rank must know its own number. A
// line of output must come from one rank only.
func TestStep(t *testing.T) {
	for _, one := range []struct {
		words []string
		in    string
		want  []string
	}{
		{[]string{"sh", "-c", "echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NTASKS $SLURM_NPROCS $SLURM_STEP_ID $SLURM_NODEID $SLURM_STEP_NUM_TASKS"}, "",
			[]string{"0 0 3 3 0 0 3", "1 1 3 3 0 0 3", "2 2 3 3 0 0 3"}},
		{[]string{"-n2", "-l", "sh", "-c", "echo $MINE; echo $SLURM_TASKS_PER_NODE >&2"}, "", []string{"0: 1", "0: 2", "1: 1", "1: 2"}},
		{[]string{"-N1", "-n1", "-c2", "--exact", "sh", "-c", "echo $SLURM_PROCID $SLURM_CPUS_PER_TASK"}, "", []string{"0 2"}},
		{[]string{"--ntasks-per-node=2", "--export=MINE,B=2", "/bin/sh", "-c", "echo $MINE $B ${TMPDIR:-none} $SLURM_JOB_ID"}, "", []string{"1 2 none 7", "1 2 none 7"}},
		{[]string{"-n", "2", "cat"}, "said to all\n", []string{"said to all", "said to all"}},
		{[]string{"-n", "2", "--input=1", "cat"}, "said to one\n", []string{"said to one"}},
		{[]string{"-n", "2", "--input=none", "cat"}, "said to none\n", []string{""}},
		{[]string{"-n", "2", "--chdir=/", "pwd"}, "", []string{"/", "/"}},
		{[]string{"-n", "2", "--gpus-per-task=1", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"}, "", []string{"0", "1"}},
		{[]string{"-n", "1", "--gres=gpu:2", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"}, "", []string{"0,1"}},
		{[]string{"-n1", "--chd=/", "echo", "--out=x", "--in", "y", "--verb"}, "", []string{"--out=x --in y --verb"}}, // options of the program are not completed
		{[]string{"-n", "2", "--gpus=3", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"}, "", []string{"0,1,2", "0,1,2"}},
		{[]string{"-n", "1", "--gres=none", "sh", "-c", "echo gpus: $CUDA_VISIBLE_DEVICES $ROCR_VISIBLE_DEVICES"}, "", []string{"gpus:"}},
		{[]string{"-n", "2", "--gpus=0", "sh", "-c", "echo gpus: $CUDA_VISIBLE_DEVICES"}, "", []string{"gpus:", "gpus:"}},
		{[]string{"-n", "3", "--pty", "sh", "-c", "echo $SLURM_PROCID"}, "", []string{"0"}},
		{[]string{"-n1", "--propagate", "--nice", "-I", "echo", "a"}, "", []string{"a"}},
		{[]string{"-n", "2", "printf", "%s|", "a b", `"c;d"`, "", "$x"}, "", []string{`a b|"c;d"||$x|a b|"c;d"||$x|`}},
		{[]string{"--mpi=none", "-n", "2", "sh", "-c", "echo ${PMI_FD:-none}"}, "", []string{"none", "none"}},
		{[]string{"--multi-prog", "programs"}, "", []string{"0 0 a b", "1 1", "rank 2"}},
		{[]string{"-n", "1", "printenv", "SLURM_NTASKS", "OMP_NUM_THREADS", "GOMAXPROCS"}, "", []string{"1", "1", "8"}},
		{[]string{"-n", "1", "-c", "2", "printenv", "OMP_NUM_THREADS", "GOMAXPROCS"}, "", []string{"2", "8"}},
		{[]string{"-n", "2", "printenv", "OMP_NUM_THREADS"}, "", []string{"1", "1"}},
		{[]string{"-n", "3", "env", "printenv", "OMP_NUM_THREADS"}, "", []string{"1", "1", "1"}},
		{[]string{"--mpi=none", "-n", "1", "printenv", "OMP_NUM_THREADS"}, "", []string{"3"}},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "programs"), []byte("# ranks and programs\n0 echo %t %o 'a b'\n2 sh -c 'echo rank $SLURM_PROCID'\n\n* echo %t %o\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := srunIn(t, dir, 3, one.words...)
		cmd.Env = append(cmd.Env, "OMP_NUM_THREADS=3", "GOMAXPROCS=8") // the site sets the first variable, and a script has changed the second
		cmd.Stdin = strings.NewReader(one.in)
		out, err := cmd.CombinedOutput()
		if err != nil || !slices.Equal(linesOf(string(out)), one.want) {
			t.Errorf("%q: %v: %q, want %q", one.words, err, linesOf(string(out)), one.want)
		}
	}
}

// Variables such as SLURM_LABELIO set options of steps. If a step has the option -K0 and also the variable for it, the
// option must apply.
func TestVariablesOfSteps(t *testing.T) {
	dir := t.TempDir()
	holds := srunIn(t, dir, 2, "-n2", "sh", "-c", "touch began.$SLURM_PROCID; until [ -e end ]; do sleep 0.01; done") // this step has all processors
	if err := holds.Start(); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "a step has all processors", func() bool {
		found, _ := filepath.Glob(filepath.Join(dir, "began.*"))
		return len(found) == 2
	})
	cmd := srunIn(t, dir, 2, "-n2", "-K0", "sh", "-c", "touch end; echo $PMI_FD; [ $SLURM_PROCID = 0 ] || exit 1; sleep 0.2; echo lives")
	cmd.Env = append(cmd.Env, "SLURM_OVERLAP=1", "SLURM_LABELIO=yes", "SLURM_KILL_BAD_EXIT=1", "SLURM_EXACT=0", "SLURM_MPI_TYPE=none")
	out, _ := cmd.Output()
	if code := cmd.ProcessState.ExitCode(); code != 1 || !slices.Equal(linesOf(string(out)), []string{"0: ", "0: lives", "1: "}) {
		t.Errorf("exit code %d: %q", code, out)
	}
	if err := holds.Wait(); err != nil {
		t.Error(err)
	}
}

// A job and a step can each set a number of GPUs for a rank. The number of the step counts if there is one, and
// otherwise the number of the job. If an MPI launcher starts the ranks, the launcher must get all GPUs of the step.
func TestStepsHaveTheGPUsOfTheirJobsRanks(t *testing.T) {
	for _, one := range []struct {
		words []string
		want  []string
	}{
		{nil, []string{"0", "1"}},
		{[]string{"--gpus-per-task=2"}, []string{"0,1", "2,3"}},
		{[]string{"--mpi=none"}, []string{"0,1,2,3", "0,1,2,3"}},
	} {
		cmd := srunIn(t, t.TempDir(), 2, append(one.words, "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")...)
		cmd.Env = append(cmd.Env, "SLURM_GPUS_PER_TASK=1")
		if out, err := cmd.CombinedOutput(); err != nil || !slices.Equal(linesOf(string(out)), one.want) {
			t.Errorf("%q: %v: %q, want %q", one.words, err, linesOf(string(out)), one.want)
		}
	}
}

// A file of programs is refused if some rank has no program.
func TestProgramsOfRanks(t *testing.T) {
	for text, want := range map[string]string{"0 true\n": "no record for task id 1", "0-1": "line 1 of the configuration file names no program", "a true": `"a" is no index`} {
		if words, err := programs(text, 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v, want %q", text, words, err, want)
		}
	}
}

func TestStepFiles(t *testing.T) {
	dir := t.TempDir()
	for _, words := range [][]string{
		{"-n2", "-o", "own.%j.%s.%t.%N", "-e", "errors", "sh", "-c", "echo $SLURM_PROCID; echo bad >&2"},
		{"-n2", "-o", "all.%J", "sh", "-c", "echo $SLURM_PROCID; echo bad >&2"},
		{"-n2", "-o", "padded.%4j.%3t.%%t", "sh", "-c", "echo $SLURM_PROCID"},
		{"-n1", "-o", "single.%x", "sh", "-c", "echo $SLURM_PROCID; echo bad >&2"},
	} {
		if out, err := srunIn(t, dir, 2, words...).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%q: %v: %s", words, err, out)
		}
	}
	for name, want := range map[string][]string{
		"own.7.0.0.node1": {"0"}, "own.7.0.1.node1": {"1"}, "errors": {"bad", "bad"}, "all.7.1": {"0", "1", "bad", "bad"}, "padded.0007.001.%t": {"1"}, "single.name": {"0", "bad"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !slices.Equal(linesOf(string(text)), want) {
			t.Errorf("%s: %v: %q, want %q", name, err, text, want)
		}
	}
}

// A step has the highest exit code of its ranks. A step that could not start must not exit with 0.
func TestStepExitCodes(t *testing.T) {
	rank1 := func(what string) []string { return []string{"sh", "-c", "[ $SLURM_PROCID = 1 ] || exit 0; " + what} }
	for _, one := range []struct {
		words []string
		code  int
		want  string
	}{
		{rank1("exit 7"), 7, "srun: error: node1: task 1: Exited with exit code 7"},
		{[]string{"sh", "-c", "exit $((SLURM_PROCID + 4))"}, 6, "task 2: Exited with exit code 6"},
		{rank1("kill -KILL $$"), 137, "node1: task 1: killed"},
		{[]string{"-K", "sh", "-c", "[ $SLURM_PROCID = 1 ] && exit 7; exec sleep 600"}, 143, "task 0: terminated"},
		{[]string{"--wait=1", "sh", "-c", "[ $SLURM_PROCID = 1 ] && exit 0; exec sleep 600"}, 143, "ending the others"},
		{[]string{"--time=0:01", "-n2", "sleep", "600"}, 143, "CANCELLED DUE TO TIME LIMIT"},
		{[]string{"./missing"}, 2, "execve(): ./missing: No such file or directory"},
		{[]string{"/etc/passwd"}, 13, "execve(): /etc/passwd: Permission denied"},
		{[]string{"--chdir=/missing", "true"}, 1, "the directory of the step: chdir /missing: no such file or directory"},
		{[]string{"--chdir=/etc/passwd", "true"}, 1, "the directory of the step: chdir /etc/passwd: not a directory"},
		{[]string{"/tmp"}, 13, "execve(): /tmp: Permission denied"},
		{[]string{"-n1", "missing"}, 2, "execve(): missing: No such file or directory"},
		{[]string{"-n4", "true"}, 1, "More processors requested than permitted"},
		{[]string{"-n2", "-c2", "true"}, 1, "More processors requested than permitted"},
		{[]string{"-n4", "-O", "true"}, 0, ""},
		{[]string{"-N2", "true"}, 1, "Requested node configuration is not available"},
		{[]string{"-w", "node2", "true"}, 1, "Requested node configuration is not available"},
		{[]string{"-w", "node1", "true"}, 0, ""},
		{[]string{"-r0", "--cpu_bind=cores", "true"}, 0, ""},
		{[]string{"--ntasks-per-core=1", "-q", "high", "--time-min=5", "--begin=now", "-E", "--mail-type=END", "true"}, 0, ""}, // these options describe a job, so a step ignores them
		{[]string{"-K1", "sh", "-c", "[ $SLURM_PROCID = 1 ] && exit 7; exec sleep 600"}, 143, "task 0: terminated"},
		{[]string{"-n2", "-K0", "sh", "-c", "exit $SLURM_PROCID"}, 1, "task 1: Exited with exit code 1"},
		{[]string{"--relative=1", "true"}, 1, "Requested node configuration is not available"},
		{[]string{"-n1", "--gres=gpu:5", "true"}, 1, "Invalid generic resource"},
		{[]string{"--immediate=soon", "true"}, 1, "--immediate \"soon\": write a number of seconds"},
		{[]string{"--x11=all", "true"}, 1, "--x11: X11 connections are not forwarded"},
		{[]string{"-n3", "--kill-on-bad-exit=0", "sh", "-c", "exit $SLURM_PROCID"}, 2, "task 2: Exited with exit code 2"},
		{[]string{"--mpi=nonsense", "true"}, 1, "--mpi=nonsense is not possible here"},
		{[]string{"--nonsense", "true"}, 1, "unknown flag: --nonsense"},
		{[]string{"--jobid=8", "true"}, 1, "candor exec 8"},
		{nil, 1, "No command given to execute."},
		{[]string{"--mpi=list"}, 0, "\tpmi1\n\tpmi2\n\tnone\n"},
		{[]string{"--mpi=openmpi", "true"}, 1, "--mpi=openmpi is not possible here: use pmi1 or pmi2 or none or pmix"},
	} {
		out, err := srunIn(t, t.TempDir(), 3, one.words...).CombinedOutput()
		code := 0
		if ended, is := err.(*exec.ExitError); is {
			code = ended.ExitCode()
		}
		if code != one.code || !strings.Contains(string(out), one.want) {
			t.Errorf("%q: exit code %d, want %d: %s, want %q", one.words, code, one.code, out, one.want)
		}
	}
}

// If the system has no pipe for a rank, the message must not blame the program.
func TestARankWithoutAPipe(t *testing.T) {
	code, line := execError("prog", os.NewSyscallError("pipe2", syscall.EMFILE))
	if want := "slurmstepd: error: pipe2: too many open files\n"; code != 1 || line != want {
		t.Errorf("%d, %q, want %q", code, line, want)
	}
}

// The steps of a job must run at the same time as long as the job has free processors. If too few processors are free
// for a step, the step must wait.
func TestStepsDivideTheJob(t *testing.T) {
	dir := t.TempDir()
	start := func(words ...string) *exec.Cmd {
		cmd := srunIn(t, dir, 2, words...)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	here := func(name string) bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil }
	touch := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(name string) []string {
		return []string{"sh", "-c", "touch began." + name + "; until [ -e end." + name + " ]; do sleep 0.01; done"}
	}
	a := start(append([]string{"-n1", "--exact"}, holds("a")...)...)
	b := start(append([]string{"-n1", "-c1"}, holds("b")...)...) // also without --exact, the step takes only the processors of -c
	await.Until(t, "both steps run", func() bool { return here("began.a") && here("began.b") })
	overlaps := start("-n2", "--overlap", "sh", "-c", "touch over.$SLURM_PROCID")
	await.Until(t, "a step runs beside them", func() bool { return here("over.0") && here("over.1") })
	if out, err := srunIn(t, dir, 2, "-n2", "--immediate=0", "true").CombinedOutput(); err == nil || !strings.Contains(string(out), "Requested nodes are busy") || strings.Contains(string(out), "retrying") {
		t.Errorf("%v: %s", err, out)
	}
	waits := srunIn(t, dir, 2, "-n2", "sh", "-c", "[ -e end.a ] && [ -e end.b ] && touch last")
	said, err := waits.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := waits.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(said)
	if line, err := lines.ReadString('\n'); !strings.Contains(line, "Job 7 step creation temporarily disabled, retrying") {
		t.Errorf("%q, %v", line, err)
	}
	touch("end.a")
	touch("end.b")
	for _, cmd := range []*exec.Cmd{a, b, overlaps} {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	if rest, err := io.ReadAll(lines); err != nil || string(rest) != "srun: Step created for job 7\n" {
		t.Errorf("%q, %v", rest, err)
	}
	if err := waits.Wait(); err != nil || !here("last") {
		t.Errorf("the step that waited: %v", err)
	}
}

// After a signal to srun, even ranks that ignore the signal must end. If srun itself is killed, no rank may remain.
func TestNoRankOutlivesSrun(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		dir := t.TempDir()
		cmd := srunIn(t, dir, 2, "sh", "-c", "trap '' TERM; echo $$ > pid.$SLURM_PROCID.new; mv pid.$SLURM_PROCID.new pid.$SLURM_PROCID; while true; do sleep 0.05; done")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pids := make([]int, 2)
		await.Until(t, "both ranks run", func() bool {
			for i := range pids {
				text, err := os.ReadFile(fmt.Sprintf("%s/pid.%d", dir, i))
				if pids[i], _ = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
					return false
				}
			}
			return true
		})
		_ = cmd.Process.Signal(sig)
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); sig == syscall.SIGTERM && code != 137 {
			t.Errorf("exit code %d", code)
		}
		await.Until(t, "no rank is left", func() bool {
			return syscall.Kill(pids[0], 0) == syscall.ESRCH && syscall.Kill(pids[1], 0) == syscall.ESRCH
		})
	}
}

func TestStepsPassSignalsOn(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGHUP} {
		dir := t.TempDir()
		cmd := srunIn(t, dir, 2, "sh", "-c", fmt.Sprintf("trap 'touch heard.$SLURM_PROCID; exit 0' %d; touch ready.$SLURM_PROCID; while true; do sleep 0.05; done", sig))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		both := func(name string) func() bool {
			return func() bool {
				found, _ := filepath.Glob(filepath.Join(dir, name+".*"))
				return len(found) == 2
			}
		}
		await.Until(t, "both ranks are ready", both("ready"))
		_ = cmd.Process.Signal(sig)
		if err := cmd.Wait(); err != nil || !both("heard")() {
			t.Errorf("%v: %v", sig, err)
		}
	}
}

// ring is a rank of a test program. It speaks the protocol PMI-1 as MPICH does: it publishes its own name, and reads
// the name of the next rank.
func ring() int {
	fd, _ := strconv.Atoi(os.Getenv("PMI_FD"))
	rank, _ := strconv.Atoi(os.Getenv("PMI_RANK"))
	size, _ := strconv.Atoi(os.Getenv("PMI_SIZE"))
	f := os.NewFile(uintptr(fd), "pmi")
	lines := bufio.NewReader(f)
	ask := func(format string, args ...any) string {
		fmt.Fprintf(f, format+"\n", args...)
		line, _ := lines.ReadString('\n')
		return strings.TrimSpace(line)
	}
	if got := ask("cmd=init pmi_version=1 pmi_subversion=1"); got != "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0" {
		return 50
	}
	_, kvs, _ := strings.Cut(ask("cmd=get_my_kvsname"), "kvsname=")
	_, mapping, _ := strings.Cut(ask("cmd=get kvsname=%s key=PMI_process_mapping", kvs), "value=")
	ask("cmd=put kvsname=%s key=card-%d value=a=%d b", kvs, rank, rank)
	if got := ask("cmd=barrier_in"); got != "cmd=barrier_out rc=0" {
		return 51
	}
	next := ask("cmd=get kvsname=%s key=card-%d", kvs, (rank+1)%size)
	fmt.Println(rank, mapping, next)
	switch os.Getenv("CANDOR_TEST_RING") {
	case "abort":
		if rank == 1 {
			ask("cmd=abort exitcode=9")
		}
		time.Sleep(time.Hour)
	case "die":
		if rank == 1 {
			return 7
		}
		time.Sleep(time.Hour)
	case "fine":
		if got := ask("cmd=put kvsname=%s key=x mcmd=spawn value=mcmd=spawn", kvs); got != "cmd=put_result rc=0 msg=success" {
			return 53
		}
		if got := ask("mcmd=spawn\nnprocs=1\nexecname=a\ntotspawns=2\nspawnssofar=1\nargcnt=1\narg1=cmd=b c\nendcmd\nmcmd=spawn\nexecname=a\ntotspawns=2\nspawnssofar=2\nendcmd"); got != "cmd=spawn_result rc=-1 msg=srun_starts_no_further_ranks" {
			return 52
		}
	default:
		if rank == 1 {
			for text := strings.Repeat(os.Getenv("CANDOR_TEST_RING"), 1+100_000/len(os.Getenv("CANDOR_TEST_RING"))); ; {
				_, _ = io.WriteString(f, text)
			}
		}
		ask("cmd=barrier_in")
		time.Sleep(time.Hour)
	}
	ask("cmd=finalize")
	return 0
}

// A rank that breaks the protocol of PMI ends the step, and srun says why. Otherwise, the other ranks would wait for it
// until the end of the job.
func TestARankThatBreaksPMIEndsItsStep(t *testing.T) {
	for text, why := range map[string]string{
		"hello\n":         "sent a line to PMI that is no request",
		"x":               "sent a line to PMI without an end",
		"cmd=get_maxes\n": "does not read the answers of PMI",
		"cmd=init pmi_version=2 pmi_subversion=0\nabcdef": "sent a message to PMI without a valid length",
	} {
		cmd := srunIn(t, t.TempDir(), 3, "-n3", "--export=ALL,"+asSrun+"=", os.Args[0])
		cmd.Env = append(cmd.Env, "CANDOR_TEST_RING="+text)
		out, err := cmd.CombinedOutput()
		if want := "srun: error: node1: task 1 " + why + ": ending all tasks of the step\n"; err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%q: %v: %s, want %s", text, err, out, want)
		}
	}
}

// MPI ranks exchange data over PMI. If a rank aborts, or ends before the other ranks have its data, all ranks must end.
func TestPMI(t *testing.T) {
	for how, code := range map[string]int{"fine": 0, "abort": 9, "die": 7} {
		cmd := srunIn(t, t.TempDir(), 3, os.Args[0])
		cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool { return strings.HasPrefix(v, asSrun) })
		cmd.Args = []string{os.Args[0], "-n3", "--export=ALL,CANDOR_TEST_RING=" + how + "," + asSrun + "=", os.Args[0]}
		cmd.Env = append(cmd.Env, asSrun+"=yes")
		var out bytes.Buffer
		cmd.Stdout = &out
		_ = cmd.Run()
		want := []string{"0 (vector,(0,1,3)) cmd=get_result rc=0 msg=success value=a=1 b", "1 (vector,(0,1,3)) cmd=get_result rc=0 msg=success value=a=2 b",
			"2 (vector,(0,1,3)) cmd=get_result rc=0 msg=success value=a=0 b"}
		if got := cmd.ProcessState.ExitCode(); got != code || how == "fine" && !slices.Equal(linesOf(out.String()), want) {
			t.Errorf("%s: exit code %d, want %d: %s", how, got, code, out.String())
		}
	}
}

// A script replaces mpirun. It must get the step's variables, and each rank must know its number. Options that mpirun
// cannot carry out must be refused.
func TestRanksOfOpenMPI(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mpirun"), []byte(`#!/bin/sh
[ "$1" != --version ] || { echo "mpirun (Open MPI) 4.1.4"; exit; }
echo "-n $2, $SLURM_NODELIST $SLURM_TASKS_PER_NODE $SLURM_NNODES ${SLURM_STEP_ID-none}"
while [ "$1" != /bin/sh ]; do shift; done
OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_LOCAL_RANK=1 SLURM_NTASKS=1 SLURM_TASKS_PER_NODE=1 "$@" # as mpirun's daemons, which are a step of one task on each node
`), 0o700); err != nil {
		t.Fatal(err)
	}
	for want, words := range map[string][]string{
		"-n 2, node1 2 1 none\n1 2 2 1 0 node1 a b|c\n":                                                                                      {"-n2", "--mpi=pmix_v4", "sh", "-c", `printf '%s %s %s %s %s %s %s|%s\n' "$SLURM_PROCID" "$SLURM_NTASKS" "$SLURM_TASKS_PER_NODE" "$SLURM_LOCALID" "$SLURM_NODEID" "$SLURMD_NODENAME" "$@"`, "sh", "a b", "c"},
		"srun: error: --label is not possible for ranks of Open MPI, which mpirun starts: leave it out, or call mpirun\n":                    {"-l", "--mpi=pmix", "true"},
		"srun: error: --output with %t, %n or %N is not possible for ranks of Open MPI, which mpirun starts: leave it out, or call mpirun\n": {"-o", "out.%2t", "--mpi=pmix", "true"},
	} {
		cmd := srunIn(t, dir, 3, words...)
		cmd.Env = append(cmd.Env, "PATH="+dir+":"+os.Getenv("PATH"))
		if out, _ := cmd.CombinedOutput(); string(out) != want {
			t.Errorf("%q: %s, want %s", words, out, want)
		}
	}
	cmd := srunIn(t, dir, 2, "-N1", "-w", "node2", "--mpi=pmix", "true")
	cmd.Env = append(cmd.Env, "PATH="+dir+":"+os.Getenv("PATH"), "CANDOR_NODES=node1,node2")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "ranks of Open MPI begin on node node1") {
		t.Errorf("%v: %s", err, out)
	}
	cmd = srunIn(t, dir, 3, "--mpi=pmix", "/bin/true")
	cmd.Env = append(cmd.Env, "PATH=/nonexistent")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "--mpi=pmix needs mpirun of Open MPI, and PATH has none") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestMPI runs unmodified programs of two implementations of MPI, with srun and with their own launchers.
func TestMPI(t *testing.T) {
	for compiler, launchers := range map[string][]string{"mpicc.mpich": {"srun", "mpiexec.hydra"}, "mpicc.openmpi": {"mpirun.openmpi", "srun"}} {
		t.Run(compiler, func(t *testing.T) {
			if _, err := exec.LookPath(compiler); err != nil {
				t.Skipf("%s is not here: install openmpi-bin, libopenmpi-dev, mpich and libmpich-dev", compiler)
			}
			dir := t.TempDir()
			if out, err := exec.Command(compiler, "-o", dir+"/ring", "testdata/ring.c").CombinedOutput(); err != nil {
				t.Skipf("%s compiles nothing: %v: %s", compiler, err, out)
			}
			if err := os.Symlink(os.Args[0], dir+"/srun"); err != nil {
				t.Fatal(err)
			}
			for _, launcher := range launchers {
				for how, code := range map[string]int{"": 0, "7": 7} {
					cmd := srunIn(t, dir, 3)
					cmd.Env = append(cmd.Env, "PATH="+dir+":"+os.Getenv("PATH"), "SLURM_JOBID=7", "SLURM_NODELIST=node1", "SLURM_JOB_NODELIST=node1", "SLURM_NNODES=1", "SLURM_TASKS_PER_NODE=3",
						"SLURMD_NODENAME=node1", "SLURM_NODEID=0", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", asSrun+"=yes")
					// The launcher is named without a path: /usr/bin/mpirun would look for srun in /usr/bin first, where Slurm may be.
					// MPICH 4.0 sometimes hangs, also under its own mpiexec; then try again.
					cmd.Args = []string{"sh", "-c", `for try in 1 2 3 4 5 6 7 8; do timeout -k 5 20 "$@" > got; code=$?; [ $code = 124 ] || break; done; cat got; exit $code`, "sh", launcher, dir + "/ring", how}
					cmd.Path = "/bin/sh"
					var out, errs bytes.Buffer
					cmd.Stdout, cmd.Stderr = &out, &errs
					_ = cmd.Run()
					want := []string{"rank 0 of 3 has 3", "rank 1 of 3 has 3", "rank 2 of 3 has 3"}
					if got := cmd.ProcessState.ExitCode(); got != code || !slices.Equal(linesOf(out.String()), want) {
						t.Errorf("%s %s: exit code %d: %s%s", launcher, how, got, out.String(), errs.String())
					}
				}
			}
		})
	}
}
