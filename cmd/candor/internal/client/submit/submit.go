// Package submit has the commands that read a description of a job: submit it, ask for
// contracts and for estimates, and predict what is left of an account.
package submit

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobs"
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

// Commands are the commands that read a description of a job.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{submitCommand(a), a.Tabled(quoteCommand(a)), a.Tabled(estimateCommand(a)), rerunCommand(a)}
}

func submitCommand(a *cli.App) *cobra.Command {
	cmd, sub := describing(a, &cobra.Command{
		Use:   "submit [flags] [FILE|-] [ARGUMENT...]",
		Short: "submit a job",
		Long: `Submit a job: a YAML job file, or a script with options in #CANDOR comments
before its first command. #SBATCH comments are read too. With -, or without a
file, the job is read from standard input. Arguments after the file become the
positional parameters of a shell script. Put -- before arguments that begin with
a dash.

The budget is the most that the job may cost. The bank holds the budget until
the job ends, and then gives the rest back. A second submission with the same
--key has the answer of the first submission, and makes no second job.

Options on the command line win over #CANDOR lines, and #CANDOR lines win over
#SBATCH lines.

With --site a peer of your site runs the job. With --site auto the best site
runs the job: the site with the best offer by the job's valuation, or without a
valuation the earliest completion within the budget. The job has a number of
your own site, and all commands work as for other jobs. Files and the current
directory do not go to other sites.

With --wait the exit code is the job's code: 0 if the job completed, the code of
the failed task if it failed, 130 if it was cancelled. With --wait --json, the
job is printed once, when it has ended, as by "candor job N --json".`,
		Example: `  candor submit --budget 10 --wait sort.sh input.txt
  candor submit job.yaml
  candor submit --site auto job.yaml
  candor submit -b 25 -a 0-99 -t 10m -A climate run.sh -- --fast
  echo 'hostname; date' | candor submit --budget 1`,
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return submit(cmd.Context(), a, sub, args) }
	cmd.Flags().BoolVar(&sub.dryRun, "dry-run", false, "only check the job, submit nothing")
	cmd.Flags().BoolVar(&sub.script, "script", false, "read the file as a script")
	cmd.Flags().StringVar(&sub.key, "key", "", "idempotency `key` of the submission (default: random)")
	return cmd
}

// describing adds to a command what a description of a job has: its options, and a file
// with arguments.
func describing(a *cli.App, cmd *cobra.Command) (*cobra.Command, *submission) {
	sub := &submission{options: jobfile.NewOptions(a.Lookup)}
	cmd.Args = cobra.ArbitraryArgs
	cmd.Flags().SortFlags = false
	cmd.Flags().AddFlagSet(sub.options.Flags)
	cmd.RegisterFlagCompletionFunc("market", a.CompleteMarkets())
	cmd.RegisterFlagCompletionFunc("class", a.CompleteClasses())
	cmd.RegisterFlagCompletionFunc("project", a.CompleteAccounts())
	return cmd, sub
}

// submit reads a job, submits it, and follows it if asked to.
func submit(ctx context.Context, a *cli.App, sub *submission, args []string) error {
	job, err := readJob(a, sub, args)
	if err != nil {
		return err
	}
	a.Warn("submit", job.Warnings)
	if err := openDir(a, job); err != nil {
		return err
	}
	// The key is chosen before the first send, so that a repeated send cannot
	// become a second job.
	request := messages.SubmitRequest{Key: cmp.Or(sub.key, rand.Text()), Spec: job.Spec, DryRun: sub.dryRun, Site: job.Site}
	if err := request.Validate(); err != nil {
		return refused(err, job, request.Key)
	}
	a.Flags.Destination = job.Site
	s, err := a.Dial(false)
	if err != nil {
		return err
	}
	defer s.Bus.Close()
	if !sub.dryRun {
		if err := sendInputs(ctx, a, s, job); err != nil {
			return err
		}
	}
	reply, err := cli.CallKeyed[messages.SubmitReply](ctx, s, messages.Auctioneer, messages.VerbSubmit, request)
	if wire, ok := errors.AsType[*messages.Error](err); ok && job.Options.Mail && strings.HasPrefix(wire.Message, "notify: ") {
		a.Warn("submit", []string{"no e-mail is sent, although #SBATCH lines ask for it: " + strings.TrimPrefix(wire.Message, "notify: ")})
		request.Spec.Notify = nil
		reply, err = cli.CallKeyed[messages.SubmitReply](ctx, s, messages.Auctioneer, messages.VerbSubmit, request)
	}
	if err != nil {
		return refused(err, job, request.Key)
	}
	a.Warn("submit", reply.Warnings)
	wait := job.Options.Wait && !sub.dryRun
	if !wait || !a.Flags.JSON {
		if err := a.Show(reply, func(p *cli.Page) { writeSubmitted(p, reply, sub.dryRun) }); err != nil {
			return err
		}
	}
	if wait {
		return jobs.Wait(ctx, a, s, reply.Job)
	}
	return nil
}

// refused adds to the site's error where in the file the trouble is, or how to
// ask again without submitting twice.
func refused(err error, job *jobfile.Job, key string) error {
	wire, ok := errors.AsType[*messages.Error](err)
	if !ok {
		return err
	}
	message := wire.Message
	if snippet := job.Locate(message); snippet != "" {
		message += "\n" + snippet
	}
	if wire.Kind.Retriable() {
		message += "; perhaps the job was submitted: repeat the command with --key " + key + ", which cannot submit it twice"
	}
	return &messages.Error{Kind: wire.Kind, Op: wire.Op, Message: message}
}

// readJob makes the job of a file and the command line, with a budget.
func readJob(a *cli.App, sub *submission, args []string) (*jobfile.Job, error) {
	job, err := readUnpaid(a, sub, args)
	if err == nil && !job.HasBudget {
		return nil, messages.Errorf(messages.Invalid,
			"budget: missing: name the most that the job may cost, with --budget 10, a line #CANDOR --budget 10 in a script, or budget: 10 in a job file")
	}
	return job, err
}

// readUnpaid makes the job of a file and the command line.
func readUnpaid(a *cli.App, sub *submission, args []string) (*jobfile.Job, error) {
	path, arguments := "-", args
	if len(args) > 0 {
		path, arguments = args[0], args[1:]
	} else if terminal.IsTerminal(a.In) {
		return nil, cli.Usagef("name a job file or script, or - to type one\nSee: candor submit --help")
	}
	source, name, err := readSource(a, path)
	if err != nil {
		return nil, err
	}
	job, err := parse(a, sub, name, source, arguments)
	if err != nil {
		return nil, cli.Within(name, err)
	}
	if err := job.Options.Overlay(sub.options); err != nil {
		return nil, cli.Usagef("%s", jobfile.Reword(err))
	}
	if err := job.Options.Apply(job); err != nil {
		return nil, err
	}
	if err := complete(a, job, name); err != nil {
		return nil, err
	}
	return job, describeInputs(a, job)
}

// standardInput is what standard input is called in errors.
const standardInput = "standard input"

// readSource reads a file, or standard input for "-", and says how to call it.
func readSource(a *cli.App, path string) (source []byte, name string, err error) {
	in, name := a.In, standardInput
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, path, cli.Usagef("%v", err)
		}
		defer file.Close()
		in, name = file, path
	}
	source, err = io.ReadAll(io.LimitReader(in, jobfile.MaxDocument+1))
	if err != nil {
		return nil, name, cli.Usagef("%s: %v", name, err)
	}
	if len(source) > jobfile.MaxDocument {
		return nil, name, messages.Errorf(messages.TooLarge, "%s: is above %d MiB: read large input from files in the job", name, jobfile.MaxDocument>>20)
	}
	return source, name, nil
}

// parse reads the text as what it is: a script or a document.
func parse(a *cli.App, sub *submission, name string, source []byte, arguments []string) (*jobfile.Job, error) {
	script, known := jobfile.IsScript(name, source)
	blank := len(strings.TrimSpace(string(source))) == 0
	switch {
	case sub.script || script || !known && name == standardInput && !blank:
		return jobfile.ParseScript(source, arguments, a.Lookup)
	case len(arguments) > 0:
		return nil, cli.Usagef("%q: a job file takes no arguments: put the arguments in its command", arguments[0])
	case known || blank:
		return jobfile.ParseDocument(source)
	}
	return nil, messages.Errorf(messages.Invalid,
		"is it a script or a job file? begin a script with #!/bin/sh, or submit it with --script; a job file has stages, command or script")
}

// ownDirectory asks, in place of a working directory, for a fresh one of each
// task's own.
const ownDirectory = "-"

// complete fills in the fields that depend on the user's environment: name, directory,
// deadline, time to begin and variables.
func complete(a *cli.App, job *jobfile.Job, name string) error {
	spec := &job.Spec
	if job.DueIn > 0 {
		spec.Deadline = messages.TimeOf(a.Now()).Add(job.DueIn)
	}
	if job.Begin != "" {
		at, err := jobfile.ParseBegin(job.Begin, a.Now().In(a.Zone))
		if err != nil {
			return messages.Errorf(messages.Invalid, "begin: %v", err)
		}
		spec.Begin = messages.TimeOf(at)
	}
	if spec.Name == "" {
		spec.Name = jobName(name)
	}
	if slices.Contains(job.Options.Export, "ALL") {
		job.AddEnvironment(a.Environ())
	}
	if spec.Dir == ownDirectory || spec.Dir == "" && (travels(job) || job.Site != "") {
		spec.Dir = ""
		return nil
	}
	if filepath.IsAbs(spec.Dir) {
		return nil
	}
	here, err := a.Workdir()
	if err != nil {
		return cli.Usagef("--chdir: the current directory is not known (%v): name one", err)
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

func writeSubmitted(p *cli.Page, r messages.SubmitReply, dryRun bool) {
	if dryRun {
		p.Printf("The site would take this job: %s in market %s, %s held from %s\n", terminal.Plural(r.Tasks, "task"), r.Market, cli.Credits(r.Held), r.Payer)
		return
	}
	if r.Site != "" {
		p.Printf("Submitted job %v to site %s (%s authorised from %s)\n", r.Job, r.Site, cli.Credits(r.Held), r.Payer)
	} else {
		p.Printf("Submitted job %v (%s held from %s)\n", r.Job, cli.Credits(r.Held), r.Payer)
	}
	if r.Chosen != "" {
		p.Printf("  %s: %s\n", p.Bold(cmp.Or(r.Site, "here")), p.Said(r.Chosen))
	}
}
