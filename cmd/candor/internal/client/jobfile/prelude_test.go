package jobfile

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// If the output file cannot be created, the script must fail before its first command, in every shell.
func TestOutputFileThatCannotBeMade(t *testing.T) {
	for _, shell := range []string{"sh", "bash"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		for _, j := range []Job{{Stdout: "missing/%j.out"}, {Stderr: "missing/%j.err"}, {Stdout: "out", Stderr: "missing/err"}} {
			dir := t.TempDir()
			j.Spec = job.JobSpec{Dir: dir, Stages: []job.Stage{{Script: "#!" + path + "\ntouch ran\n"}}}
			if err := j.AddPrelude("alice"); err != nil {
				t.Fatal(err)
			}
			command := exec.Command(path, "-c", j.Spec.Stages[0].Script)
			command.Dir, command.Env = dir, append(os.Environ(), "CANDOR_JOB=1")
			if command.Run() == nil {
				t.Errorf("%s: %+v ends with 0", shell, j)
			}
			if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
				t.Errorf("%s: %+v: the script ran", shell, j)
			}
		}
	}
}

// In patterns of sbatch, unknown letters stay unchanged. In other patterns they are refused.
func TestUnknownLettersOfAPattern(t *testing.T) {
	j := Job{Slurm: true, Spec: job.JobSpec{Stages: []job.Stage{{}}}}
	if got, err := j.file("--output", "a_j%.out_%5z%x", "alice"); err != nil || got != `'a_j%.out_%5z'"$CANDOR_JOB_NAME"` {
		t.Errorf("%s, %v", got, err)
	}
	j.Slurm = false
	if got, err := j.file("--stdout", "a_j%.out", "alice"); messages.KindOf(err) != messages.Invalid {
		t.Errorf("%s, %v", got, err)
	}
}

// The script's shell sets its own PATH. The script must still find srun in the user's directory, also if the PATH has
// another srun. If the PATH has no srun, this directory comes last in the PATH, so that it hides no other program.
func TestAScriptFindsSrun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's here")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"srun", "ls"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho own\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	j := Job{Slurm: true, Commands: dir, Spec: job.JobSpec{Stages: []job.Stage{{Script: "#!/bin/bash\nsrun; command -v ls\n"}}}}
	if err := j.AddPrelude("alice"); err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir() // not /usr/bin, which may have a srun
	for _, name := range []string{"ls", "id", "date"} {
		if err := os.Symlink("/bin/"+name, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "srun"), []byte("#!/bin/sh\necho other\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	// A site can have a function or an alias named srun, which stays, and which calls the program named srun.
	for _, shell := range []string{"dash -e", "bash -e", "bash --posix"} {
		for _, define := range []string{"srun() { echo function; command srun; }", "alias srun='echo function; command srun'"} {
			for path, first := range map[string]string{bin: bin, bin + ":" + other: dir} {
				words := strings.Fields(shell + " -c")
				command := exec.Command("/bin/"+words[0], append(words[1:], define+"\n"+j.Spec.Stages[0].Script)...)
				command.Env = []string{"PATH=" + path, "CANDOR_JOB=1", "CANDOR_ATTEMPT=1"}
				want := "function\nown\n" + first + "/ls\n"
				if strings.HasPrefix(define, "alias") && shell == "bash -e" { // expands no aliases in scripts
					want = "own\n" + first + "/ls\n"
				}
				if out, err := command.CombinedOutput(); err != nil || string(out) != want {
					t.Errorf("%s %q PATH=%s: %v: %s, want %s", shell, define, path, err, out, want)
				}
			}
		}
	}
	for path, want := range map[string]string{bin: "own\n" + bin + "/ls\n", bin + ":" + other: "own\n" + dir + "/ls\n", bin + ":" + dir: "own\n" + bin + "/ls\n"} {
		command := exec.Command("/bin/sh", "-c", j.Spec.Stages[0].Script)
		command.Env = []string{"PATH=" + path, "CANDOR_JOB=1", "CANDOR_ATTEMPT=1"}
		if out, err := command.CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("PATH=%s: %v: %s, want %s", path, err, out, want)
		}
	}
}

// If a script gets none or only some of the user's variables, its environment must be the environment of a login shell.
// A variable that is passed on must replace the login shell's variable.
func TestAScriptWithoutTheUsersVariablesHasThoseOfALogin(t *testing.T) {
	home := t.TempDir()
	for name, text := range map[string]string{
		".profile":      "echo welcome; FROM=profile B=login; export FROM B; module() { echo module $*; }\nfalse\n",
		".bash_profile": ". ~/.profile; FROM=bash_profile\n",
	} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range []struct{ shell, export, want string }{
		{"bash -e", "NONE", "bash_profile login\nmodule load\n"},
		{"sh", "A,B=it's,/usr/local/cuda/bin", "profile it's\nmodule load\n"}, // like sbatch, ignores the path, because no variable has this name
		{"bash", "ALL,B=2", "none 2\n"},
	} {
		j := parse(t, "#!/bin/"+one.shell+"\n#SBATCH --export=\""+one.export+"\"\necho ${FROM:-none} $B\n! type module >/dev/null 2>&1 || module load\n")
		j.Slurm = true
		if err := j.AddPrelude("alice"); err != nil {
			t.Fatal(err)
		}
		command := exec.Command("/bin/"+strings.Fields(one.shell)[0], append(strings.Fields(one.shell)[1:], "-c", j.Spec.Stages[0].Script)...)
		command.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + home, "CANDOR_JOB=1", "CANDOR_ATTEMPT=1", "B=2"}
		if out, err := command.CombinedOutput(); err != nil || string(out) != one.want {
			t.Errorf("%s: %v: %q, want %q", one.export, err, out, one.want)
		}
	}
}

// The test checks the number of threads that a script sets. If the kernel limits the script to its processors, the
// script must set no number. Otherwise it must set the number of processors that it has.
func TestAScriptOfSeveralRanksUsesAllItsProcessors(t *testing.T) {
	count := exec.Command("nproc")
	count.Env = []string{}
	out, err := count.Output()
	if err != nil {
		t.Fatal(err)
	}
	mine := strings.TrimSpace(string(out))
	for _, one := range []struct{ options, cpus, env, want string }{
		{"-n 4", mine, "OMP_NUM_THREADS=" + mine, mine + " none\n"},
		{"-n 4", "77", "OMP_NUM_THREADS=77", "77 77\n"},
		{"-n 4 --export=OMP_NUM_THREADS=3", mine, "OMP_NUM_THREADS=3", "3 3\n"},
		{"-n 1 -c 4", mine, "OMP_NUM_THREADS=" + mine, mine + " " + mine + "\n"},
	} {
		j := parse(t, "#!/bin/bash\n#SBATCH "+one.options+"\necho $(nproc) ${OMP_NUM_THREADS:-none}\n")
		j.Slurm = true
		if err := j.AddPrelude("alice"); err != nil {
			t.Fatal(err)
		}
		command := exec.Command("bash", "-c", j.Spec.Stages[0].Script)
		command.Env = []string{"PATH=" + os.Getenv("PATH"), "CANDOR_JOB=1", "CANDOR_ATTEMPT=1", "CANDOR_CPUS=" + one.cpus, one.env}
		if out, err := command.CombinedOutput(); err != nil || string(out) != one.want {
			t.Errorf("%s: %v: %s, want %s", one.options, err, out, one.want)
		}
	}
}

// A script can compute how much time it has left.
func TestAScriptKnowsItsTimes(t *testing.T) {
	for _, interpreter := range []string{"/bin/sh -eu", "/bin/bash -eu"} {
		job := parse(t, "#!"+interpreter+"\n#SBATCH -t 5\necho $((SLURM_JOB_END_TIME - SLURM_JOB_START_TIME)) $(($(date +%s) - SLURM_JOB_START_TIME < 60))\n")
		if err := job.AddPrelude("alice"); err != nil {
			t.Fatal(err)
		}
		words := append(strings.Fields(interpreter), "-c", job.Spec.Stages[0].Script)
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "CANDOR_TIME_LIMIT=300", "CANDOR_JOB=7", "CANDOR_JOB_NAME=a", "CANDOR_SITE=home", "CANDOR_NODE=n1", "CANDOR_ATTEMPT=1", "CANDOR_MARKET=main", "CANDOR_PAYER=alice"}
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "300 1\n" {
			t.Errorf("%s: %s, %v", interpreter, out, err)
		}
	}
}
