package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/cmd/candor/internal/client/submit"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// status returns an error that only sets the exit code, after the messages were printed.
func status(code int) error { return cli.ExitStatus(code) }

func localUser() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

func sbatch(ctx context.Context, c *call, args []string) error {
	o := jobfile.NewOptions(c.Lookup)
	if asks(c, args) {
		return nil
	}
	words, err := o.SayWords(append(c.variables("SBATCH_"), args...))
	if err != nil {
		return err
	}
	wrap, wrapped := o.Noted["wrap"]
	file := ""
	if len(words) > 0 && words[0] != "-" && words[0] != "/dev/stdin" {
		file = words[0]
	}
	source, name, words, err := scriptOf(c, words, wrap, wrapped)
	if err != nil {
		return err
	}
	job, err := c.read(o, source, name, words)
	if err != nil {
		return err
	}
	redirect(job)
	if here, err := c.Workdir(); file != "" && err == nil {
		job.Path = within(here, file)
	}
	_, tests := job.Options.Noted[jobfile.TestOnly]
	s, replies, err := submit.SendAll(ctx, c.App, job, tests)
	if err != nil {
		return err
	}
	defer s.Bus.Close()
	reply := replies[0]
	if c.warnReply(reply); tests {
		c.warn([]string{"the site would take this job"})
		return nil
	}
	if _, parsable := job.Options.Noted["parsable"]; parsable {
		_, err = fmt.Fprintln(c.Out, reply.Job)
	} else if _, quiet := job.Options.Noted["quiet"]; !quiet {
		_, err = fmt.Fprintf(c.Out, "Submitted batch job %v\n", reply.Job)
	}
	if err != nil {
		return submit.Unsaid(reply, err)
	}
	if job.Options.Wait {
		return c.awaitAll(ctx, s, replies)
	}
	return nil
}

func (c *call) awaitAll(ctx context.Context, s *cli.Session, replies []jobmsg.SubmitReply) (err error) {
	for _, reply := range replies {
		if failed := c.await(ctx, s, reply.Job); err == nil {
			err = failed
		}
	}
	return err
}

// inputVariables are the names of variables that set an option to a value, without the common prefix: ACCOUNT stands
// for SBATCH_ACCOUNT. inputSwitches are the variables for options that take no value.
var (
	inputVariables = []string{"ACCOUNT", "ARRAY_INX", "CLUSTERS", "CONSTRAINT", "CPUS_PER_GPU", "DISTRIBUTION", "ERROR", "EXPORT", "GPUS", "GPUS_PER_NODE", "GPUS_PER_TASK", "GRES", "INPUT", "JOB_NAME",
		"MEM_PER_CPU", "MEM_PER_GPU", "MEM_PER_NODE", "OPEN_MODE", "OUTPUT", "PARTITION", "QOS", "RESERVATION", "SIGNAL", "TIMELIMIT"}
	inputSwitches = []string{"EXCLUSIVE", "NO_REQUEUE", "WAIT"}
	// names of options that differ from the names of their variables
	inputOptions = map[string]string{"ARRAY_INX": "array", "MEM_PER_NODE": "mem", "TIMELIMIT": "time"}
)

// variables returns the options that are set by environment variables with a prefix. As under Slurm, these options
// replace the script's options, and options on the command line replace both.
func (c *call) variables(prefix string) (words []string) {
	if c.Getenv(prefix+"CLUSTERS") == "" && c.Getenv("SLURM_CLUSTERS") != "" {
		words = append(words, "--clusters="+c.Getenv("SLURM_CLUSTERS"))
	}
	for _, name := range inputVariables {
		if value := c.Getenv(prefix + name); value != "" {
			words = append(words, "--"+cmp.Or(inputOptions[name], strings.ToLower(strings.ReplaceAll(name, "_", "-")))+"="+value)
		}
	}
	for _, name := range inputSwitches {
		if _, set := c.Lookup(prefix + name); set {
			words = append(words, "--"+strings.ToLower(strings.ReplaceAll(name, "_", "-")))
		}
	}
	return words
}

// read makes a job from a script as sbatch does: the job gets the user's environment. If the script sets no budget, the
// budget is CANDOR_BUDGET.
func (c *call) read(o *jobfile.Options, source []byte, name string, words []string) (*jobfile.Job, error) {
	job, err := submit.Read(c.App, o, source, name, words)
	if err != nil {
		return nil, err
	}
	job.Slurm, job.Typed = true, c.name
	failOOM(job)
	if len(job.Options.Export) == 0 && !job.Options.Flags.Changed("export") {
		job.Warnings = append(job.Warnings, job.AddSafeEnvironment(c.Environ())...)
	}
	if err := submit.AssumeBudget(c.App, job); err != nil {
		return nil, err
	}
	c.warn(slices.DeleteFunc(job.Warnings, func(w string) bool { return strings.HasPrefix(w, jobfile.NothingLost) }))
	job.Warnings = nil
	return job, nil
}

// failOOM makes a task fail if the memory limit killed one of its processes, as under Slurm. If the script chose
// another result for this case, the script's choice stays.
func failOOM(job *jobfile.Job) {
	s := &job.Spec.Stages[0]
	s.OOM = cmp.Or(s.OOM, jobmsg.FailOOM)
}

// asks answers options about the command itself, such as --version. It reports whether the command line has such an
// option.
func asks(c *call, args []string) bool {
	for _, a := range args {
		switch a {
		case "--version", "-V":
			fmt.Fprintln(c.Out, version)
			return true
		case "--help", "--usage", "-h":
			fmt.Fprintf(c.Out, "%s of Candor. \"candor help slurm\" lists its options.\n", c.name)
			return true
		}
		if !strings.HasPrefix(a, "-") {
			return false
		}
	}
	return false
}

// scriptOf returns the script that a command line means: a file, standard input, or a command (--wrap).
func scriptOf(c *call, words []string, wrap string, wrapped bool) (source []byte, name string, rest []string, err error) {
	switch {
	case wrapped && len(words) > 0:
		return nil, "", nil, errors.New("Script arguments not permitted with --wrap option")
	case wrapped:
		return []byte("#!/bin/sh\n# This script was created by sbatch --wrap.\n\n" + wrap + "\n"), "wrap", nil, nil
	case len(words) == 0 || words[0] == "-" || words[0] == "/dev/stdin": // after sudo, this user may not be allowed to open /dev/stdin
		source, err = io.ReadAll(io.LimitReader(c.Input(), jobfile.MaxDocument+1))
		name = "sbatch"
	default:
		var file *os.File
		if file, err = os.Open(words[0]); err == nil {
			defer file.Close()
			source, err = io.ReadAll(io.LimitReader(file, jobfile.MaxDocument+1))
		}
		name = filepath.Base(words[0])
	}
	if err != nil {
		return nil, "", nil, fmt.Errorf("Unable to open file %s", words[0])
	}
	if len(source) > jobfile.MaxDocument {
		return nil, "", nil, errors.New("Job script exceeds size limits")
	}
	if strings.HasPrefix(string(source), "\ufeff#!") {
		return nil, "", nil, errors.New("This does not look like a batch script: it begins with a byte-order mark.\nConvert the script with dos2unix, or save it as UTF-8 without a mark.")
	}
	if strings.Contains(string(source), "\r\n") {
		return nil, "", nil, errors.New("Batch script contains DOS line breaks (\\r\\n)\ninstead of expected UNIX line breaks (\\n): convert the script with dos2unix.")
	}
	if !strings.HasPrefix(string(source), "#!") {
		return nil, "", nil, errors.New("This does not look like a batch script.  The first\nline must start with #! followed by the path to an interpreter.\nFor instance: #!/bin/sh")
	}
	return source, name, words[min(1, len(words)):], nil
}

// redirect sends the output of a job to the same files as sbatch, in the job's directory.
func redirect(job *jobfile.Job) {
	noted := job.Options.Noted
	job.Stdout, job.Stderr, job.Append = cmp.Or(noted["output"], job.Usual[0]), cmp.Or(noted["error"], job.Usual[1]), strings.HasPrefix(noted["open-mode"], "a")
	switch {
	case job.Stdout == "" && (job.Spec.Stages[0].Array != nil || job.Splits() != nil):
		job.Stdout = "slurm-%A_%a.out"
	case job.Stdout == "":
		job.Stdout = "slurm-%j.out"
	}
}

func (c *call) warn(sentences []string) {
	for _, w := range sentences {
		c.Tell(c.name + ": " + w)
	}
}

// warnReply writes the warnings of the site about a job. Many scripts read both outputs of sbatch for the number of the
// job, so only a terminal shows the budget that the site chose. `candor job` shows it too.
func (c *call) warnReply(reply jobmsg.SubmitReply) {
	c.warn(slices.DeleteFunc(reply.Warnings, func(w string) bool {
		return strings.HasPrefix(w, jobmsg.NoBudget) && !terminal.IsTerminal(c.Err)
	}))
}

// await follows a job to its end, and returns its exit code as an error.
func (c *call) await(ctx context.Context, s *cli.Session, job messages.JobID) error {
	request := jobmsg.JobRequest{Job: job, Wait: messages.Duration(time.Second)}
	for {
		asked := c.Now()
		detail, err := ask[jobmsg.JobDetail](ctx, s, messages.VerbJob, request)
		switch {
		case request.Wait != 0 && messages.KindOf(err) == messages.Invalid: // a site with an older version cannot wait
			request.Wait = 0
			continue
		case err == nil && detail.State == jobmsg.Completed:
			return nil
		case err == nil && detail.State.Final() && detail.ExitCode > 0:
			return status(int(detail.ExitCode) & 0xff)
		case err == nil && detail.State.Final():
			return status(1)
		case err != nil && !messages.KindOf(err).Retriable():
			return err
		}
		// ask at most once a second, even if the site answers immediately
		if err := c.Pause(ctx, time.Second-c.Now().Sub(asked)); err != nil {
			return err
		}
	}
}
