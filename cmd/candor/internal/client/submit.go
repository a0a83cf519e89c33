package client

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
)

// submission is what was asked for on the command line of submit.
type submission struct {
	options *jobfile.Options
	dryRun  bool
	script  bool
	key     string
}

func (a *app) submitCommand() *cobra.Command {
	sub := &submission{options: jobfile.NewOptions(a.lookup)}
	cmd := &cobra.Command{
		Use:   "submit [flags] [FILE|-] [ARGUMENT...]",
		Short: "submit a job",
		Long: `Submit a job: a YAML job file, or a script with options in #CANDOR comments before
its first command (#SBATCH ones that have a meaning here are taken too). With -, or
without a file, read it from standard input. Arguments after the file become the positional
parameters of a shell script; put -- before those that begin with a dash.

The budget is the most the job may cost. It is set aside until the job ends, and
what the job does not need comes back. Repeating a submission with the same --key
gives the first one's answer and submits nothing new.

Options given here win over those in #CANDOR lines, and these over #SBATCH lines.
With --site the job is run by a peer of your site, or with auto by whichever of them
and your own is best: by the job's valuation, or without one the earliest within the
budget. Its number, and all commands about it, are those of your own site; files
and the current directory do not go along.

With --wait the exit code is the job's: 0 if it completed, else that of the task
that failed, 130 if it was cancelled. With --wait --json, the job is printed once,
when it has ended, as by "candor job N --json".`,
		Example: `  candor submit --budget 10 --wait sort.sh input.txt
  candor submit job.yaml
  candor submit --site auto job.yaml
  candor submit -b 25 -a 0-99 -t 10m -A climate run.sh -- --fast
  echo 'hostname; date' | candor submit --budget 1`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.submit(cmd.Context(), sub, args) },
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().AddFlagSet(sub.options.Flags)
	cmd.Flags().BoolVar(&sub.dryRun, "dry-run", false, "have the site check everything, and submit nothing")
	cmd.Flags().BoolVar(&sub.script, "script", false, "the file is a script, whatever it looks like")
	cmd.Flags().StringVar(&sub.key, "key", "", "idempotency `key` of the submission (default: random)")
	cmd.RegisterFlagCompletionFunc("market", a.completeMarkets)
	cmd.RegisterFlagCompletionFunc("class", a.completeClasses)
	cmd.RegisterFlagCompletionFunc("project", a.completeAccounts)
	return cmd
}

// submit reads a job, submits it, and follows it if asked to.
func (a *app) submit(ctx context.Context, sub *submission, args []string) error {
	job, err := a.readJob(sub, args)
	if err != nil {
		return err
	}
	a.warn("submit", job.Warnings)
	if err := a.openDir(job); err != nil {
		return err
	}
	// The key is chosen before the first send, so that a repeated send cannot
	// become a second job.
	request := messages.SubmitRequest{Key: first(sub.key, rand.Text()), Spec: job.Spec, DryRun: sub.dryRun, Site: job.Site}
	if err := request.Validate(); err != nil {
		return refused(err, job, request.Key)
	}
	a.flags.destination = job.Site
	s, err := a.dial(false)
	if err != nil {
		return err
	}
	defer s.bus.Close()
	if !sub.dryRun {
		if err := a.sendInputs(ctx, s, job); err != nil {
			return err
		}
	}
	reply, err := callKeyed[messages.SubmitReply](ctx, s, messages.Auctioneer, messages.VerbSubmit, request)
	if err != nil {
		return refused(err, job, request.Key)
	}
	wait := job.Options.Wait && !sub.dryRun
	if !wait || !a.flags.json {
		if err := a.show(reply, func(p *page) { p.submitted(reply, sub.dryRun) }); err != nil {
			return err
		}
	}
	if wait {
		return a.wait(ctx, s, reply.Job)
	}
	return nil
}

// refused adds to the site's error where in the file the trouble is, or how to
// ask again without submitting twice.
func refused(err error, job *jobfile.Job, key string) error {
	var wire *messages.Error
	if !errors.As(err, &wire) {
		return err
	}
	message := wire.Message
	if snippet := job.Locate(message); snippet != "" {
		message += "\n" + snippet
	}
	if wire.Kind.Retriable() {
		message += "; it may have been submitted: repeat with --key " + key + ", which cannot submit it twice"
	}
	return &messages.Error{Kind: wire.Kind, Op: wire.Op, Message: message}
}

// readJob makes the job of a file and the command line, with a budget.
func (a *app) readJob(sub *submission, args []string) (*jobfile.Job, error) {
	job, err := a.readUnpaid(sub, args)
	if err == nil && !job.HasBudget {
		return nil, messages.Errorf(messages.Invalid,
			"budget: missing: say the most the job may cost, with --budget 10, a line #CANDOR --budget 10 in a script, or budget: 10 in a job file")
	}
	return job, err
}

// readUnpaid makes the job of a file and the command line.
func (a *app) readUnpaid(sub *submission, args []string) (*jobfile.Job, error) {
	path, arguments := "-", args
	if len(args) > 0 {
		path, arguments = args[0], args[1:]
	} else if terminal.IsTerminal(a.in) {
		return nil, usagef("name a job file or script, or - to type one\nSee: candor submit --help")
	}
	source, name, err := a.readSource(path)
	if err != nil {
		return nil, err
	}
	job, err := a.parse(sub, name, source, arguments)
	if err != nil {
		return nil, within(name, err)
	}
	if err := job.Options.Overlay(sub.options); err != nil {
		return nil, usagef("%s", jobfile.Reword(err))
	}
	if err := job.Options.Apply(job); err != nil {
		return nil, err
	}
	if err := a.complete(job, name); err != nil {
		return nil, err
	}
	return job, a.describeInputs(job)
}

// standardInput is what standard input is called in errors.
const standardInput = "standard input"

// readSource reads a file, or standard input for "-", and says how to call it.
func (a *app) readSource(path string) (source []byte, name string, err error) {
	in, name := a.in, standardInput
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, path, usagef("%v", err)
		}
		defer file.Close()
		in, name = file, path
	}
	source, err = io.ReadAll(io.LimitReader(in, jobfile.MaxDocument+1))
	if err != nil {
		return nil, name, usagef("%s: %v", name, err)
	}
	if len(source) > jobfile.MaxDocument {
		return nil, name, messages.Errorf(messages.TooLarge, "%s: is above %d MiB: read large input from files in the job", name, jobfile.MaxDocument>>20)
	}
	return source, name, nil
}

// parse reads the text as what it is: a script or a document.
func (a *app) parse(sub *submission, name string, source []byte, arguments []string) (*jobfile.Job, error) {
	script, known := jobfile.IsScript(name, source)
	blank := len(strings.TrimSpace(string(source))) == 0
	switch {
	case sub.script || script || !known && name == standardInput && !blank:
		return jobfile.ParseScript(source, arguments, a.lookup)
	case len(arguments) > 0:
		return nil, usagef("%q: a job file takes no arguments: put them in its command", arguments[0])
	case known || blank:
		return jobfile.ParseDocument(source)
	}
	return nil, messages.Errorf(messages.Invalid,
		"is it a script or a job file? begin a script with #!/bin/sh, or submit it with --script; a job file has stages, command or script")
}

// ownDirectory asks, in place of a working directory, for a fresh one of each
// task's own.
const ownDirectory = "-"

// complete fills in what depends on where and by whom the job is submitted.
func (a *app) complete(job *jobfile.Job, name string) error {
	spec := &job.Spec
	if job.DueIn > 0 {
		spec.Deadline = messages.TimeOf(a.now()).Add(job.DueIn)
	}
	if spec.Name == "" {
		spec.Name = jobName(name)
	}
	if slices.Contains(job.Options.Export, "ALL") {
		job.AddEnvironment(a.environ())
	}
	if spec.Dir == ownDirectory || spec.Dir == "" && (travels(job) || job.Site != "") {
		spec.Dir = ""
		return nil
	}
	if filepath.IsAbs(spec.Dir) {
		return nil
	}
	here, err := a.workdir()
	if err != nil {
		return usagef("--chdir: the current directory is not known (%v): name one", err)
	}
	job.Here = spec.Dir == ""
	spec.Dir = filepath.Join(here, spec.Dir)
	return nil
}

// jobName names a job after its file.
func jobName(file string) string {
	if file == standardInput {
		return "stdin"
	}
	base := filepath.Base(file)
	switch ext := filepath.Ext(base); ext {
	case ".yaml", ".yml", ".json":
		return strings.TrimSuffix(base, ext)
	}
	return base
}
