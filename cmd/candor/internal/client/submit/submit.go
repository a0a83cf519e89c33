// Package submit has the commands that read a description of a job: to submit it, to ask for contracts and estimates,
// or to predict the account's balance.
package submit

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobs"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

type submission struct {
	options *jobfile.Options
	dryRun  bool
	script  bool
	key     string
	wrap    string
	idOnly  bool
	each    bool
	dash    func() int // number of arguments before "--"; negative means there is no "--"
}

// Commands returns the commands that read a description of a job.
func Commands(a *cli.App) []*cobra.Command {
	return append(a.MakeTabled(cli.Makers{"quote": quoteCommand, "estimate": estimateCommand}),
		a.Make(cli.Makers{"submit": submitCommand, "run": runCommand, "shell": shellCommand, "rerun": rerunCommand})...)
}

func submitCommand(a *cli.App) *cobra.Command {
	cmd, sub := describing(a, &cobra.Command{
		Use:   "submit [flags] [FILE|-] [ARGUMENT...] | --each FILE... | -- COMMAND...",
		Short: "submit a job",
		Long: `Submit a job: a YAML job file, or a script with options in #CANDOR comments
before its first command. #SBATCH comments are read too. With -, or without a
file, the job is read from standard input. Arguments after the file become the
positional parameters of a shell script. Put -- before arguments that begin with
a dash. Words after a first -- are a command, and --wrap runs a line of shell.

The budget is the most that the job may cost. The bank holds the budget until
the job ends, and then gives the rest back. Without --budget the job has the
budget of CANDOR_BUDGET, or else the default of its market, or what its slots
cost for the time limit that it asks for. --dry-run says what a budget buys.
A second submission with the same --key gets the answer of the first
submission, and makes no second job.

Options on the command line win over #CANDOR lines, and #CANDOR lines win over
#SBATCH lines.

With --each every argument is the file of a separate job, and the options apply
to each of these jobs. With -, or without a file, the names of the files are
read from standard input, one on a line. The jobs go to the site in few
requests. A file that is refused is reported, and the other jobs are submitted.
The exit code is the code of the first file whose job was refused or, with
--wait, did not complete. The same command with the same --key makes no second
jobs.

With --site a peer of your site runs the job. With --site auto the best site
runs the job: the site with the best offer by the job's valuation, or without a
valuation the earliest completion within the budget. The job has a number of
your own site, and all commands work as for other jobs. Inputs and outputs
travel between the sites; the current directory does not.

With --wait the exit code is the job's code: 0 if the job completed, the code of
the failed task if it failed, 130 if it was cancelled. With --wait --json, the
job is printed once, when it has ended, as by "candor job N --json".`,
		Example: `  candor submit --budget 10 --wait sort.sh input.txt
  candor submit job.yaml
  candor submit --site auto job.yaml
  candor submit -b 25 -a 0-99 -t 10m -A climate run.sh -- --fast
  candor submit -b 1 -- hostname
  candor submit -b 1 --wait --each jobs/*.sh
  candor submit -b 1 --id-only --wrap 'sort data.txt | uniq -c'
  echo 'hostname; date' | candor submit --budget 1`,
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if sub.each {
			return submitEach(cmd.Context(), a, sub, args)
		}
		return submit(cmd.Context(), a, sub, args)
	}
	cmd.Flags().BoolVar(&sub.each, "each", false, "submit a job for each of the files")
	cmd.Flags().BoolVar(&sub.dryRun, "dry-run", false, "only check the job, submit nothing")
	cmd.Flags().BoolVar(&sub.script, "script", false, "read the file as a script")
	cmd.Flags().StringVar(&sub.key, "key", "", "idempotency `key` of the submission (default: random)")
	cmd.Flags().StringVar(&sub.wrap, "wrap", "", "run a `line` of shell in place of a file")
	cmd.Flags().BoolVar(&sub.idOnly, "id-only", false, "print only the number of the job")
	return cmd
}

// describing adds the options that describe a job to a command. The arguments are a file and the arguments of the
// script.
func describing(a *cli.App, cmd *cobra.Command) (*cobra.Command, *submission) {
	sub := &submission{options: jobfile.NewOptions(a.Lookup), dash: cmd.ArgsLenAtDash}
	cmd.Args = cobra.ArbitraryArgs
	cmd.Flags().SortFlags = false
	switch cmd.Name() {
	case "submit": // in commands that print tables, -o selects columns
		sub.options.Flags.Lookup("stdout").Shorthand = "o"
	case "run": // in run, -t means a terminal
		sub.options.Flags.Lookup("time").Shorthand = ""
	}
	cmd.Flags().AddFlagSet(sub.options.Flags)
	cmd.RegisterFlagCompletionFunc("market", a.CompleteMarkets())
	cmd.RegisterFlagCompletionFunc("class", a.CompleteClasses())
	cmd.RegisterFlagCompletionFunc("project", a.CompleteAccounts())
	return cmd, sub
}

// Read makes a job from a script and options, for commands other than submit. The job may lack a budget.
func Read(a *cli.App, options *jobfile.Options, source []byte, name string, arguments []string) (*jobfile.Job, error) {
	job, err := jobfile.ParseScript(source, arguments, a.Lookup)
	if err != nil {
		return nil, cli.Within(name, err)
	}
	if _, said := options.Noted["ignore-pbs"]; said && job.Foreign() {
		return nil, messages.Errorf(messages.Invalid, "%s: --ignore-pbs: all options of the script are in the lines that --ignore-pbs skips: leave the option out", name)
	}
	return job, finish(a, job, options, name)
}

func submit(ctx context.Context, a *cli.App, sub *submission, args []string) error {
	job, err := readUnpaid(a, sub, args)
	if err == nil {
		err = AssumeBudget(a, job)
	}
	if err != nil {
		return err
	}
	s, reply, err := Send(ctx, a, job, sub.key, sub.dryRun)
	if err != nil {
		return err
	}
	defer s.Bus.Close()
	a.Warn("submit", reply.Warnings)
	wait := job.Options.Wait && !sub.dryRun
	if sub.idOnly && !sub.dryRun {
		_, err = fmt.Fprintln(a.Out, reply.Job)
	} else if !wait || !a.Flags.JSON {
		err = a.Show(reply, func(p *cli.Page) { writeSubmitted(p, reply, sub.dryRun) })
	}
	if err != nil {
		return Unsaid(reply, err)
	}
	if wait {
		return jobs.Wait(ctx, a, s, reply.Job)
	}
	return nil
}

// Unsaid is called if a job was submitted but the output could not be written. It returns an error with the job's
// number. Without this error, the user would believe that the submission failed, and would submit the job again.
func Unsaid(reply jobmsg.SubmitReply, err error) error {
	if reply.Job == 0 { // a dry run has no job number
		return err
	}
	return fmt.Errorf("job %v is submitted, but its number was not written: %w", reply.Job, err)
}

// Send submits a job. Without an error, the returned session is open.
func Send(ctx context.Context, a *cli.App, job *jobfile.Job, key string, dryRun bool) (s *cli.Session, reply jobmsg.SubmitReply, err error) {
	// The key is chosen before the first attempt, so that a second attempt cannot make a second job.
	key = cmp.Or(key, rand.Text())
	if asksSite(job) { // a job that every site refuses needs no connection
		if s, err = dialFor(ctx, a, job); err != nil {
			return nil, reply, err
		}
	}
	return sendBy(ctx, a, s, job, key, dryRun)
}

// sendBy submits a job through a session. If the session is nil, it opens one.
func sendBy(ctx context.Context, a *cli.App, s *cli.Session, job *jobfile.Job, key string, dryRun bool) (_ *cli.Session, reply jobmsg.SubmitReply, err error) {
	request, err := prepare(a, job, key, dryRun)
	if err != nil {
		if s != nil {
			s.Bus.Close()
		}
		return nil, reply, err
	}
	if s == nil {
		if s, err = dialFor(ctx, a, job); err != nil {
			return nil, reply, err
		}
	}
	if err = sendInputs(ctx, s, job, request, map[string]bool{}); err == nil {
		if reply, err = sendSomewhere(ctx, a, s, job, request); err == nil {
			return s, reply, nil
		}
		err = refused(err, job, request.Key)
	}
	s.Bus.Close()
	return nil, reply, err
}

// commands returns the directory in PATH that has srun, if that srun is this program.
func commands() string {
	path, err := exec.LookPath("srun")
	if err != nil {
		return ""
	}
	found, err := os.Stat(path)
	if err != nil {
		return ""
	}
	own, err := os.Executable()
	if err != nil {
		return ""
	}
	if is, err := os.Stat(own); err != nil || !os.SameFile(is, found) {
		return ""
	}
	if path, err = filepath.Abs(path); err != nil {
		return ""
	}
	return filepath.Dir(path)
}

// prepare makes the request for a job. It refuses a job that every site would refuse.
func prepare(a *cli.App, job *jobfile.Job, key string, dryRun bool) (*jobmsg.SubmitRequest, error) {
	if job.Splits() != nil {
		return nil, messages.Errorf(messages.Invalid, "--array: each element would be a job on several nodes: submit the script with sbatch, which makes these jobs, or ask for one node")
	}
	warn(a, job, job.Warnings...)
	if err := openDir(a, job); err != nil {
		return nil, err
	}
	job.Host, _ = os.Hostname()
	job.Commands = commands()
	if err := job.AddPrelude(userName()); err != nil {
		return nil, err
	}
	job.Assemble()
	request := &jobmsg.SubmitRequest{Key: key, Spec: job.Spec, DryRun: dryRun, Site: job.Site}
	request.Spec.Umask = umask()
	checked := *request
	if !job.HasBudget { // the market has a default budget, or refuses the job
		checked.Spec.Budget = messages.Credit
	}
	if err := checked.Validate(); err != nil {
		return nil, refused(err, job, key)
	}
	return request, nil
}

// warn writes warnings about a job that will be submitted. Each warning begins with the name of the typed command.
func warn(a *cli.App, job *jobfile.Job, sentences ...string) {
	for _, sentence := range sentences {
		a.Tell(cmp.Or(job.Typed, "candor submit") + ": " + sentence)
	}
}

// umask returns the umask of this process as text. With this umask, the files of a task get the same permissions as the
// user's own files.
func umask() string {
	changing.Lock() // the umask can only be read by changing it
	defer changing.Unlock()
	mask := syscall.Umask(0o077)
	syscall.Umask(mask)
	if mask == jobmsg.DefaultUmask {
		return ""
	}
	return fmt.Sprintf("%03o", mask)
}

var changing sync.Mutex

// userName returns the name of this process's user, or else the user's number.
func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}

func send(ctx context.Context, a *cli.App, s *cli.Session, job *jobfile.Job, request *jobmsg.SubmitRequest) (jobmsg.SubmitReply, error) {
	reply, err := cli.Call[jobmsg.SubmitReply](ctx, s, messages.Auctioneer, messages.VerbSubmit, request)
	if wire, ok := errors.AsType[*messages.Error](err); ok && refusesMail(job, wire) {
		warn(a, job, "no e-mail is sent, although #SBATCH lines ask for it: "+strings.TrimPrefix(wire.Message, "notify: "))
		request.Spec.Notify = nil
		reply, err = cli.Call[jobmsg.SubmitReply](ctx, s, messages.Auctioneer, messages.VerbSubmit, request)
	}
	return reply, err
}

// refusesMail reports whether a job is refused only because #SBATCH lines ask for e-mail.
func refusesMail(job *jobfile.Job, err *messages.Error) bool {
	return job.Options.Mail && strings.HasPrefix(err.Message, "notify: ")
}

// refused adds help to the site's error about a submission: the wrong place in the file, or how to repeat the request
// safely.
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

// AssumeBudget sets the budget of a job without one to the variable CANDOR_BUDGET.
func AssumeBudget(a *cli.App, job *jobfile.Job) (err error) {
	text := a.Getenv("CANDOR_BUDGET")
	if job.HasBudget || text == "" {
		return nil
	}
	job.HasBudget = true
	if job.Spec.Budget, err = messages.ParseCredits(text); err != nil {
		return messages.Errorf(messages.Invalid, "CANDOR_BUDGET: %v", err)
	}
	return nil
}

// readCommand makes a job from a command line with a command or a line of shell. Without either, it returns nil.
func readCommand(sub *submission, args []string) (job *jobfile.Job, name string, err error) {
	bare := len(args) > 0 && sub.dash() == 0
	switch {
	case sub.wrap != "" && len(args) > 0:
		return nil, "", cli.Usagef("--wrap: takes the place of the file and its arguments: leave %q out", args[0])
	case sub.wrap != "":
		job, err = jobfile.ParseScript([]byte("#!/bin/sh\n"+sub.wrap+"\n"), nil, nil)
		return job, "wrap", err
	case bare && args[0] == "":
		return nil, "", cli.Usagef("the command after -- is empty")
	case bare:
		return jobfile.OfCommand(args), filepath.Base(args[0]), nil
	}
	return nil, "", nil
}

// readUnpaid makes the job from a file and the command line, without a check of the budget.
func readUnpaid(a *cli.App, sub *submission, args []string) (*jobfile.Job, error) {
	if job, name, err := readCommand(sub, args); job != nil || err != nil {
		if err != nil {
			return nil, err
		}
		return job, finish(a, job, sub.options, name)
	}
	path, arguments := "-", args
	if len(args) > 0 {
		path, arguments = args[0], args[1:]
	} else if terminal.IsTerminal(a.In) {
		return nil, cli.Usagef("name a job file or script, or - to type one")
	}
	return readFile(a, sub, path, arguments)
}

func readFile(a *cli.App, sub *submission, path string, arguments []string) (*jobfile.Job, error) {
	source, name, err := readSource(a, sub, path)
	if err != nil {
		return nil, err
	}
	job, err := parse(a, sub, name, source, arguments)
	if err != nil {
		return nil, cli.Within(name, err)
	}
	return job, finish(a, job, sub.options, name)
}

// finish applies the options of the command line, and sets the fields that depend on the user's environment.
func finish(a *cli.App, job *jobfile.Job, options *jobfile.Options, name string) error {
	if err := job.Options.Overlay(options); err != nil {
		return cli.Usagef("%s", jobfile.Reword(err))
	}
	if err := job.Options.ReadNodes(os.ReadFile); err != nil {
		return err
	}
	if err := job.Options.Apply(job); err != nil {
		return err
	}
	if err := complete(a, job, name); err != nil {
		return err
	}
	return describeInputs(a, job)
}

const standardInput = "standard input"

// readSource reads a file, or standard input for "-". It returns the text, and a name for errors.
func readSource(a *cli.App, sub *submission, path string) (source []byte, name string, err error) {
	var in io.Reader
	if path == "-" {
		in, name = a.Input(), standardInput
	} else {
		file, err := os.Open(path)
		switch {
		case os.IsNotExist(err) && sub.each:
			err = errors.New("there is no such file")
		case os.IsNotExist(err):
			err = fmt.Errorf("there is no file %s: put -- before a command, as in candor submit -- hostname", path)
		}
		if err != nil {
			return nil, path, cli.Usagef("%v", err)
		}
		defer file.Close()
		in, name = file, path
	}
	source, err = io.ReadAll(io.LimitReader(in, jobfile.MaxDocument+1))
	switch {
	case errors.Is(err, context.Canceled):
		return nil, name, err
	case errors.Is(err, syscall.EISDIR) && sub.each:
		return nil, name, cli.Usagef("this is a directory: name the files in it")
	case errors.Is(err, syscall.EISDIR):
		return nil, name, cli.Usagef("%s is a directory: name a file in it, or with --each the files in it", name)
	case err != nil:
		return nil, name, cli.Usagef("%s: %v", name, err)
	}
	if len(source) > jobfile.MaxDocument {
		return nil, name, messages.Errorf(messages.TooLarge, "%s: is above %d MiB: read large input from files in the job", name, jobfile.MaxDocument>>20)
	}
	return source, name, nil
}

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

// roams reports whether any site may run the job. Such a job has a budget, and needs nothing of the user's site.
func roams(job *jobfile.Job) bool {
	s := &job.Spec
	return job.HasBudget && s.Contract == "" && !s.Hold && s.Begin == 0 && len(s.Predecessors())+len(s.Notify) == 0
}

// A job with the working directory "-" asks for a new directory for each task.
const ownDirectory = "-"

// complete fills in the fields that depend on the user's environment.
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
		job.Warnings = append(job.Warnings, job.AddSafeEnvironment(a.Environ())...)
	}
	if spec.Dir == ownDirectory || spec.Dir == "" && (travels(job) || job.Site != "") {
		spec.Dir = ""
		if job.Site == "" && roams(job) {
			job.Site = a.JobSite()
		}
		return nil
	}
	if filepath.IsAbs(spec.Dir) {
		return nil
	}
	here, err := a.Workdir()
	if err != nil {
		return cli.Usagef("--chdir: the current directory is not known (%v): name a directory", err)
	}
	job.Here = spec.Dir == ""
	spec.Dir = filepath.Join(here, spec.Dir)
	return nil
}

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

func writeSubmitted(p *cli.Page, r jobmsg.SubmitReply, dryRun bool) {
	if dryRun {
		p.Printf("The site would take this job: %s in market %s, %s held from %s\n", terminal.Plural(r.Tasks, "task"), r.Market, cli.Credits(r.Held), r.Payer)
		if r.Buys != "" {
			p.Printf("  %s\n", p.Said(r.Buys))
		}
		return
	}
	if r.Site != "" {
		p.Printf("Submitted job %v to site %s, which may charge up to %s to %s\n", r.Job, r.Site, cli.Credits(r.Held), r.Payer)
	} else {
		p.Printf("Submitted job %v (%s held from %s)\n", r.Job, cli.Credits(r.Held), r.Payer)
	}
	if r.Chosen != "" {
		p.Printf("  %s: %s\n", p.Bold(cmp.Or(r.Site, "here")), p.Said(r.Chosen))
	}
}
