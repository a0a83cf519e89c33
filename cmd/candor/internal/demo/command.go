package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/deploy/examples"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/runner/access"
	"github.com/candor-grid/candor/nodeagent/runner/dumps"
	"github.com/candor-grid/candor/nodeagent/runner/executor"
)

type options struct {
	state string // state directory; empty means a temporary directory
	books string // file for the bank's journal; empty means none
	json  bool
	limit time.Duration
}

func Command() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:         "demo",
		Annotations: map[string]string{dumps.StartsTasks: ""},
		Short:       "run a real workload on a whole site in this process, and check it",
		Long: `Starts a whole site in this process: a NATS server, three replicas of the
auctioneer and of the bank, an estimator and two nodes. Three people submit
jobs that analyse a year of a real machine's log, and compete for the nodes.
When all jobs have ended, the command reports the times and the cost of each
job, compares the results with the known answers, and checks the books.

Exits with 0 only if every job completed, every result is right and the books
balance.`,
		Example: `  candor demo
  candor demo --json > report.json
  candor demo --state ./demo && candor up --state ./demo   # then look around`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			noColor, _ := cmd.Flags().GetBool("no-color") // flag of the root command, if there is one
			err := demo(cmd.Context(), &o, noColor, cmd.OutOrStdout(), cmd.ErrOrStderr())
			if err != nil && cmd.Context().Err() == nil {
				return &failure{strings.ReplaceAll(err.Error(), "\n", "; ")}
			}
			return err // an interrupt, which the root command recognises
		},
	}
	c.Flags().StringVar(&o.state, "state", "", "keep the site's state in a new `directory`, and the output of the jobs in a directory next to it (default: temporary, removed at the end)")
	c.Flags().StringVar(&o.books, "books", "", "write the bank's books to a `file`: .journal for hledger, or .csv")
	c.Flags().BoolVar(&o.json, "json", false, "print the report as JSON, and progress on standard error")
	c.Flags().DurationVar(&o.limit, "limit", 5*time.Minute, "give up after this `time`")
	return c
}

// failure is an error with one line that says what went wrong. The exit code is 1.
type failure struct{ message string }

func (f *failure) Error() string { return f.message }

func (f *failure) ExitCode() int { return 1 }

func demo(ctx context.Context, o *options, noColor bool, out, stderr io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, o.limit, fmt.Errorf("the jobs have not ended within %v", o.limit))
	defer cancel()
	show := out
	if o.json {
		show = stderr
	}
	style := terminal.StyleFor(terminal.IsTerminal(show), noColor, os.Getenv)
	report, err := perform(ctx, o, show, style)
	if err != nil {
		return err
	}
	if o.json {
		err = json.NewEncoder(out).Encode(report)
	} else {
		report.write(out, style)
	}
	if err == nil && !report.OK {
		err = errors.New(report.Reason)
	}
	return err
}

// perform runs the workload on a new site. It keeps the site's state if the user named its directory, or after a
// failure that is no interrupt.
func perform(ctx context.Context, o *options, show io.Writer, style terminal.Style) (*Report, error) {
	if err := checkBooksFile(o.books); err != nil {
		return nil, err
	}
	state, temporary, err := stateDir(o.state)
	if err != nil {
		return nil, err
	}
	report, err := performIn(ctx, o, state, show, style)
	well := err == nil && report.OK
	interrupted := errors.Is(ctx.Err(), context.Canceled)
	if temporary && (well || interrupted) {
		return report, errors.Join(err, os.RemoveAll(filepath.Dir(state)))
	}
	if !well {
		fmt.Fprintf(show, "The site's state and the tasks' output are kept in %s\n", state)
	}
	return report, err
}

func performIn(ctx context.Context, o *options, state string, show io.Writer, style terminal.Style) (report *Report, err error) {
	example := examples.TraceAnalysis()
	workload, err := LoadWorkload(example)
	if err != nil {
		return nil, err
	}
	config := siteConfig(state, workload)
	fmt.Fprintf(show, "Starting site %s: NATS, %d auctioneers, %d banks, an estimator and %d nodes, in %s\n",
		config.Site, config.Replicas, config.Replicas, len(config.Nodes), state)
	site, err := embedded.Start(ctx, config, embedded.Options{Executor: executor.Self()})
	if err != nil {
		return nil, fmt.Errorf("starting the site: %w", err)
	}
	defer func() { err = errors.Join(err, site.Close()) }()
	dir := workDir(state)
	if err := prepare(dir, site.Info(), config.Accounts); err != nil {
		return nil, err
	}
	if err := examples.Unpack(example, dir); err != nil {
		return nil, err
	}
	grid, err := connect(site, config.Site, config.Operators[0], workload)
	if err != nil {
		return nil, err
	}
	defer grid.close()
	fmt.Fprintln(show, introduction(workload))
	r := &run{grid: grid, workload: workload, example: example, dir: dir, progress: newProgress(show, style)}
	if report, err = r.do(ctx); err == nil && o.books != "" {
		err = grid.exportBooks(ctx, o.books)
	}
	return report, err
}

// workDir returns the directory for the unpacked example and the results of tasks. No task can reach the state
// directory.
func workDir(state string) string { return state + "-work" }

// prepare makes the working directory, and gives the tasks of each account access to it.
func prepare(dir string, info embedded.Info, accounts []embedded.Account) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("working directory of the jobs: %w", err)
	}
	for _, a := range accounts {
		n, other, err := info.TaskUser(a.Name)
		if err == nil && other {
			err = access.Allow(dir, n)
		}
		if err != nil {
			return fmt.Errorf("letting the tasks of %s use %s: %w", a.Name, dir, err)
		}
	}
	return nil
}

func introduction(w *Workload) string {
	last := w.Submissions[len(w.Submissions)-1]
	return fmt.Sprintf("%d people submit %s (%d tasks) over %v: the jobs analyse a year of a real machine's log",
		len(w.Accounts), terminal.Plural(len(w.Submissions), "job"), w.tasks(), last.Due())
}

// class is the class of all slots of the site. A slot is one processor and a part of the memory.
const class = "cpu"

// siteConfig returns the configuration of a site with the workload's accounts, on a free port. The site has two nodes
// with six processors each, even if this machine has fewer.
func siteConfig(state string, w *Workload) embedded.Config {
	config, unit := embedded.Default(), job.Resources{CPUs: 1, Memory: 256 << 20}
	config.Markets[0].Classes, config.Markets[0].Units = []messages.Name{class}, []job.ClassUnit{{Class: class, Unit: unit}}
	all := unit.Times(6)
	config.Nodes = embedded.Node{Resources: &all, Declared: true}.Times(2)
	config.State, config.Listen = state, "127.0.0.1:0"
	config.Accounts = nil
	for _, a := range w.Accounts {
		config.Accounts = append(config.Accounts, embedded.Account{Name: a.Name, Grant: a.Grant})
	}
	return config
}

// stateDir returns the absolute path of the state directory, and whether it is temporary. A named directory must be new
// or empty.
func stateDir(named string) (dir string, temporary bool, err error) {
	if named == "" {
		dir, err = os.MkdirTemp("", "candor-demo-")
		return filepath.Join(dir, "site"), true, err
	}
	entries, err := os.ReadDir(named)
	if err != nil && !os.IsNotExist(err) {
		return "", false, fmt.Errorf("--state: %w", err)
	}
	if len(entries) > 0 {
		return "", false, fmt.Errorf("--state %s: is not empty: name a new directory", named)
	}
	dir, err = filepath.Abs(named)
	return dir, false, err
}
