package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/cmd/candor/internal/client/submit"
)

// srunValues are options of srun with a value that is not used within a job, where the
// command has the slot of the task.
var srunValues = []string{"cpu-bind", "mpi", "mem", "mem-per-cpu", "cpus-per-task/c", "job-name/J", "time/t", "partition/p", "account/A",
	"jobid", "kill-on-bad-exit/K", "export", "distribution/m", "mem-bind", "hint", "open-mode", "cpus-per-gpu", "gres", "gpus/G", "gpus-per-node", "gpus-per-task", "mem-per-gpu",
	"gpu-bind", "constraint/C", "exclude/x", "nodelist/w", "input/i", "wait/W", "chdir/D"}

// srunSays are options of srun that say something about a job of its own.
var srunSays = []string{"mem", "mem-per-cpu", "cpus-per-task", "job-name", "time", "partition", "account", "export", "gres", "gpus", "gpus-per-node", "gpus-per-task",
	"cpus-per-gpu", "mem-per-gpu", "constraint", "exclude", "nodelist", "chdir", "exclusive"}

// srun runs a command: within a job at once, in the slot of the task; elsewhere as a job of
// its own, with its input and output here.
func srun(ctx context.Context, c *call, args []string) error {
	f := c.flags
	f.SetInterspersed(false)
	ntasks := f.StringP("ntasks", "n", "1", "")
	nodes := f.StringP("nodes", "N", "1", "")
	out := f.StringP("output", "o", "", "")
	errs := f.StringP("error", "e", "", "")
	perNode := f.String("ntasks-per-node", "1", "")
	f.StringVar(perNode, "tasks-per-node", "1", "")
	label := f.BoolP("label", "l", false, "")
	c.ignore(srunValues, []string{"unbuffered/u", "exclusive", "exact", "overlap", "verbose/v", "quiet/Q", "no-kill/k", "pty", "disable-status/X"})
	f.Lookup("kill-on-bad-exit").NoOptDefVal = "1"
	words, done, err := c.parse(args)
	if done || err != nil {
		return err
	}
	switch {
	case len(words) == 0:
		return errors.New("No command given to execute.")
	case *ntasks != "1" || *perNode != "1" || *nodes != "1" && *nodes != "1-1":
		return fmt.Errorf("More processors requested than permitted: a task is on one node; use an array, or candor submit --gang --tasks %s", *ntasks)
	}
	if c.Getenv("CANDOR_JOB") != "" {
		return c.step(ctx, words, *out, *errs, *label)
	}
	if *out != "" || *errs != "" || *label {
		return errors.New("--output, --error and --label are for srun within a job: redirect the output of this command")
	}
	return c.alone(ctx, words)
}

// alone runs a command as a job of its own, as candor run does.
func (c *call) alone(ctx context.Context, words []string) error {
	var said []string
	given := func(name string) bool { return c.flags.Changed(name) }
	for _, name := range srunSays {
		if given(name) {
			said = append(said, "--"+name+"="+c.flags.Lookup(name).Value.String())
		}
	}
	if given("jobid") {
		return fmt.Errorf("--jobid: use candor exec %v -- %s", c.flags.Lookup("jobid").Value, words[0])
	}
	o := jobfile.NewOptions(c.Lookup)
	if _, err := o.SayWords(said); err != nil {
		return err
	}
	job, err := submit.OfCommand(c.App, o, words)
	if err != nil {
		return err
	}
	failOOM(job)
	if job.Typed = c.name; !given("export") {
		job.Warnings = append(job.Warnings, job.AddSafeEnvironment(c.Environ())...)
	}
	return submit.Interact(ctx, c.App, job, given("pty"), given("quiet"))
}

// step runs a command in the place of this process, unless its output is to be labelled.
func (c *call) step(ctx context.Context, words []string, out, errs string, label bool) error {
	path, err := exec.LookPath(words[0])
	if err != nil {
		fmt.Fprintf(c.Err, "slurmstepd: error: execve(): %s: No such file or directory\n", words[0])
		return status(2)
	}
	if label {
		return c.labelled(ctx, path, words)
	}
	for number, pattern := range []string{out, errs} {
		if pattern == "" {
			continue
		}
		file, err := os.Create(c.fill(pattern))
		if err != nil {
			return err
		}
		if err := syscall.Dup3(int(file.Fd()), number+1, 0); err != nil {
			return err
		}
		if number == 0 && errs == "" {
			if err := syscall.Dup3(int(file.Fd()), 2, 0); err != nil {
				return err
			}
		}
	}
	return syscall.Exec(path, words, append(c.Environ(), "SLURM_PROCID=0", "SLURM_LOCALID=0", "SLURM_STEP_ID=0", "SLURM_STEPID=0"))
}

// fill writes a pattern of a file with what is known in a task.
func (c *call) fill(pattern string) string {
	index := c.Getenv("CANDOR_ARRAY_INDEX")
	r := strings.NewReplacer("%%", "%", "%j", c.Getenv("CANDOR_JOB"), "%J", c.Getenv("CANDOR_JOB")+".0", "%A", c.Getenv("CANDOR_JOB"), "%a", index,
		"%t", "0", "%n", "0", "%s", "0", "%N", c.Getenv("CANDOR_NODE"), "%x", c.Getenv("CANDOR_JOB_NAME"), "%u", localUser())
	return r.Replace(pattern)
}

// labelled runs a command and writes the number of its task before each line.
func (c *call) labelled(ctx context.Context, path string, words []string) error {
	cmd := exec.CommandContext(ctx, path, words[1:]...)
	cmd.Stdin, cmd.Env = c.In, c.Environ()
	out, errs := &labels{to: c.Out}, &labels{to: c.Err}
	cmd.Stdout, cmd.Stderr = out, errs
	err := cmd.Run()
	out.end()
	errs.end()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		code := ended.ExitCode()
		if ws, ok := ended.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			code = 128 + int(ws.Signal())
		}
		return status(code)
	}
	return err
}

// labels writes "0: " before each line.
type labels struct {
	to   interface{ Write([]byte) (int, error) }
	rest []byte
}

func (l *labels) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	for {
		i := strings.IndexByte(string(l.rest), '\n')
		if i < 0 {
			return len(b), nil
		}
		if _, err := l.to.Write(append([]byte(strconv.Itoa(0)+": "), l.rest[:i+1]...)); err != nil {
			return 0, err
		}
		l.rest = l.rest[i+1:]
	}
}

// end writes what is left without an end of line.
func (l *labels) end() {
	if len(l.rest) > 0 {
		_, _ = l.Write([]byte("\n"))
	}
}
