package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
)

// srunNoted are options of srun that have no effect within a job. Most of them ask for resources or a binding to
// resources. The ranks use the resources that the job already has.
var srunNoted = []string{"cpu-bind", "cpu_bind", "mem_bind", "mem", "mem-per-cpu", "mem-per-gpu", "job-name/J", "mem-bind", "hint", "cpus-per-gpu", "extra", "delay-boot", "switches", "priority",
	"gpu-bind", "constraint/C", "accel-bind", "threads-per-core", "slurmd-debug", "acctg-freq", "network",
	"ntasks-per-core", "ntasks-per-socket", "cores-per-socket", "sockets-per-node", "extra-node-info/B", "gres-flags", "cpu-freq", "gpu-freq", "profile", "wckey", "time-min"}

// srunAlone lists options of srun that take no value, and that have no effect here.
var srunAlone = []string{"unbuffered/u", "verbose/v", "quiet/Q", "no-kill/k", "disable-status/X", "preserve-env/E", "contiguous", "spread-job", "use-min-nodes",
	"propagate", "nice", "oversubscribe/s", "share", "quit-on-interrupt", "send-libs", "resv-ports", "oom-kill-step", "compress"}

// srunOutside are options with a value that srun uses only outside a job, for the job that it makes.
var srunOutside = []string{"partition/p", "account/A", "qos/q", "reservation", "begin/b", "dependency/d", "mail-type", "mail-user", "licenses/L", "tmp", "mincpus", "comment", "signal"}

// srunSays are the options that describe the job that srun submits outside a job.
var srunSays = []string{"mem", "mem-per-cpu", "cpus-per-task", "job-name", "time", "partition", "account", "export", "gres", "gpus", "gpus-per-node", "gpus-per-task",
	"cpus-per-gpu", "mem-per-gpu", "constraint", "exclude", "nodelist", "chdir", "exclusive", "qos", "reservation", "begin", "dependency", "mail-type", "mail-user", "licenses", "tmp", "mincpus", "comment", "signal"}

// srun runs a command. Within a job, it runs the command at once, on the slots of the task. Outside a job, it submits
// the command as a new job, which uses the input and output of this process.
func srun(ctx context.Context, c *call, args []string) error {
	all, done, err := segments(c, args)
	if done || err != nil {
		return err
	}
	for _, s := range all {
		for option, why := range srunRefused {
			if s.flags.Changed(option) {
				return fmt.Errorf("--%s: %s", option, why)
			}
		}
	}
	w, words := all[0].w, all[0].words
	if slices.Contains([]string{"list", "help"}, w.mpi) {
		fmt.Fprintf(c.Out, "MPI plugin types are...\n\t%s\n", strings.Join(stepMPI, "\n\t"))
		return nil
	}
	if len(words) == 0 {
		return errors.New("No command given to execute.")
	}
	if c.Getenv("CANDOR_JOB") != "" {
		for _, s := range all {
			if err := s.stepVariables(); err != nil {
				return err
			}
			if s.flags.Changed("pty") { // only rank 0 has the terminal
				s.w.ranks, s.w.perNode, s.w.nodes = 1, 0, "1"
			}
		}
		return c.step(ctx, all)
	}
	for _, s := range all {
		if err := s.inputs(srunInputs...); err != nil {
			return err
		}
	}
	if len(all) > 1 {
		return c.aloneTogether(ctx, all, args)
	}
	return c.alone(ctx, w, words)
}

// srunRefused are options of srun that are impossible here, and what to do instead.
var srunRefused = map[string]string{"x11": "X11 connections are not forwarded: leave the option out", "bcast": "copy the program with sbcast, and leave the option out"}

// srunInputs are variables that set options of srun outside of a job.
var srunInputs = [][2]string{{"SLURM_ACCOUNT", "account"}, {"SLURM_CONSTRAINT", "constraint"}, {"SLURM_CPUS_PER_GPU", "cpus-per-gpu"}, {"SLURM_CPUS_PER_TASK", "cpus-per-task"},
	{"SRUN_CPUS_PER_TASK", "cpus-per-task"}, {"SLURM_DEPENDENCY", "dependency"}, {"SLURM_DISTRIBUTION", "distribution"}, {"SLURM_EXCLUSIVE", "exclusive"}, {"SLURM_EXPORT_ENV", "export"},
	{"SRUN_EXPORT_ENV", "export"}, {"SLURM_GPUS", "gpus"}, {"SLURM_GPUS_PER_NODE", "gpus-per-node"}, {"SLURM_GPUS_PER_TASK", "gpus-per-task"}, {"SLURM_GRES", "gres"},
	{"SLURM_JOB_NAME", "job-name"}, {"SLURM_NNODES", "nodes"}, {"SLURM_JOB_NUM_NODES", "nodes"}, {"SLURM_KILL_BAD_EXIT", "kill-on-bad-exit"}, {"SLURM_LABELIO", "label"},
	{"SLURM_MEM_PER_CPU", "mem-per-cpu"}, {"SLURM_MEM_PER_GPU", "mem-per-gpu"}, {"SLURM_MEM_PER_NODE", "mem"}, {"SLURM_MPI_TYPE", "mpi"}, {"SLURM_NPROCS", "ntasks"}, {"SLURM_NTASKS", "ntasks"},
	{"SLURM_NTASKS_PER_NODE", "ntasks-per-node"}, {"SLURM_OPEN_MODE", "open-mode"}, {"SLURM_OVERCOMMIT", "overcommit"}, {"SLURM_PARTITION", "partition"}, {"SLURM_QOS", "qos"},
	{"SLURM_REMOTE_CWD", "chdir"}, {"SLURM_WORKING_DIR", "chdir"}, {"SLURM_RESERVATION", "reservation"}, {"SLURM_SIGNAL", "signal"}, {"SLURM_TIMELIMIT", "time"}, {"SLURM_WAIT", "wait"},
	{"SRUN_ERROR", "error"}, {"SRUN_INPUT", "input"}, {"SRUN_OUTPUT", "output"}}

// stepSwitches maps a variable to the option of srun that the variable turns on.
var stepSwitches = map[string]string{"SLURM_EXACT": "exact", "SLURM_OVERLAP": "overlap", "SLURM_OVERCOMMIT": "overcommit", "SLURM_KILL_BAD_EXIT": "kill-on-bad-exit", "SLURM_LABELIO": "label"}

// stepVariables sets the options that environment variables ask for. If an option is also on the command line, the
// variable is ignored.
func (c *call) stepVariables() error {
	for variable, option := range stepSwitches {
		if value, set := c.Lookup(variable); set && value != "0" && !c.flags.Changed(option) {
			if err := c.flags.Set(option, "true"); err != nil {
				return err
			}
		}
	}
	if kind := c.Getenv("SLURM_MPI_TYPE"); kind != "" && !strings.HasPrefix(kind, pmix) && !c.flags.Changed("mpi") { // without this variable, srun recognises programs of Open MPI by itself
		return c.flags.Set("mpi", kind)
	}
	return nil
}

// srunRanks are options of srun for the number of ranks. srunStep are options that only steps have.
var (
	srunRanks = []string{"ntasks", "nodes", "ntasks-per-node", "tasks-per-node"}
	srunStep  = []string{"output", "error", "input", "open-mode", "label", "kill-on-bad-exit", "wait", "mpi", "multi-prog", "overcommit", "distribution"}
)

// alone runs srun's command outside of a job. For this it submits a new job, or makes a new allocation and runs the
// command as a step in it.
func (c *call) alone(ctx context.Context, w *step, words []string) error {
	var said []string
	given := func(name string) bool { return c.flags.Changed(name) }
	say := func(names []string) (all []string) {
		for _, name := range names {
			if given(name) {
				all = append(all, "--"+name+"="+c.flags.Lookup(name).Value.String())
			}
		}
		return all
	}
	several := w.ranks > 1 || w.perNode > 1 || w.nodes != "" && w.nodes != "1" && w.nodes != "1-1" || len(say(srunStep)) > 0
	switch {
	case given("jobid"):
		return fmt.Errorf("--jobid: use candor exec %v -- %s", c.flags.Lookup("jobid").Value, words[0])
	case given("immediate"):
		return errors.New("--immediate: a job waits until a market gives it slots: leave the option out")
	}
	said = say(srunSays)
	if several {
		said = append(said, say(srunRanks)...)
	}
	o := jobfile.NewOptions(c.Lookup)
	if _, err := o.SayWords(said); err != nil {
		return err
	}
	if several && !given("pty") {
		words = append(append([]string{"srun"}, say(append(srunStep, append(srunRanks, "cpus-per-task")...))...), words...)
	}
	return c.allocate(ctx, o, words, given("pty"), given("quiet"))
}

// aloneTogether runs several commands outside a job. It submits a new heterogeneous job with one component for each
// command. The commands run as one step of this job.
func (c *call) aloneTogether(ctx context.Context, all []segment, args []string) error {
	var said []string
	for i, s := range all {
		if i > 0 {
			said = append(said, ":")
		}
		for _, name := range append(slices.Clone(srunSays), srunRanks...) {
			if s.flags.Changed(name) {
				said = append(said, "--"+name+"="+s.flags.Lookup(name).Value.String())
			}
		}
	}
	o := jobfile.NewOptions(c.Lookup)
	if _, err := o.SayWords(said); err != nil {
		return err
	}
	return c.allocate(ctx, o, append([]string{"srun"}, args...), false, c.flags.Changed("quiet"))
}
