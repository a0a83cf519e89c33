package simulate

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/grid"
	"github.com/candor-grid/candor/deploy/simulated/measure"
	"github.com/candor-grid/candor/deploy/simulated/network"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/messages"
)

const mostSlots = 1 << 16

type options struct {
	Source
	actors   string
	slots    int // slots of each node
	by       string
	events   string
	json     bool
	compared []string // files of the markets
	worth    string   // measure of welfare for all markets
	draws    int      // number of times that the types are drawn
	lying    bool
	passes   int
}

// Command returns `candor simulate`. Its errors are of type *messages.Error.
func Command() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "simulate --trace FILE --market FILE",
		Short: "run a log of jobs through a market, in virtual time",
		Long: `Runs the jobs of a log in the Standard Workload Format through a market, in
virtual time, and reports their times and payments.

A market is a file of YAML; only the mechanism is needed:

  name: spot
  mechanism: highest-bid     # one of the list below
  price: kth
  bids:                      # how bids are drawn; these are the defaults
    value: {distribution: bimodal, share: 0.2,
            low: {mean: 30, deviation: 15}, high: {mean: 150, deviation: 15}}
    shading: {aggressive: 0, beta: 0.1, others: 0}
    deadline: {slack: exponential, mean: 2, least: 60} # reservation: none
    length: {declared: exact}
    users: {spread: 0, by: job}
    budget: 10               # times the cost at the bid; proportional: 1

Other fields are name, worth (delay, deadline,
decay or run), and the parameters of the
mechanism:

` + parameters() + `
Four numbers of each job are drawn from this model: the worth of a second on a
slot to its owner (value), the bid, the deadline, and the declared length. With
--bids the numbers are read from a file. Its columns are job, value, bid,
deadline, length and budget: job is the number in the log, and times are seconds
from the beginning of the log. Jobs cannot pay more than their budgets in
proportional, fifo, fairshare and backfill, and with --actors all in every
mechanism.

` + compareHelp + `
Standard error shows the progress of a run: on a terminal all the time,
otherwise after ten seconds and then each minute.

The keys of --json are stable. Package deploy/simulated/measure defines each
key.`,
		Example: `  candor simulate --trace LPC-EGEE-2004.swf.gz --market highest-bid --nodes 105
  candor simulate --trace KTH-SP2.swf.gz --market market.yaml \
      --from 30d --to 60d --scale-load 1.5
  candor simulate --trace log.swf --market market.yaml \
      --json --events events.csv > report.json
  candor simulate --trace log.swf --compare a.yaml,b.yaml,fairshare \
      --from 30d --to 37d
  candor simulate --trace log.swf --market highest-bid --strategic --to 3d`,
		Args: cobra.NoArgs, SilenceErrors: true, SilenceUsage: true,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.together(c.LocalFlags()); err != nil {
				return messages.AsError("simulate", err)
			}
			return Await(c.Context(), func() error { return o.run(c.OutOrStdout(), c.ErrOrStderr()) })
		},
	}
	f := c.Flags()
	o.Flags(f)
	f.StringVar(&o.actors, "actors", "core", "`core`: the mechanism alone; all: every message of every actor")
	f.IntVar(&o.slots, "slots-per-node", 1, "with all actors: how many `slots` each node has")
	f.StringVar(&o.by, "by", "group", "report groups of jobs by this `property`: "+strings.Join(measure.Groupings, ", "))
	f.StringVar(&o.events, "events", "", "write all events to this `file`, .csv")
	f.BoolVar(&o.json, "json", false, "print the report as JSON")
	f.StringSliceVar(&o.compared, "compare", nil, "run these `markets` (files, or names of mechanisms) side by side, instead of --market")
	f.StringVar(&o.worth, "worth", rules.ByRun, "with --compare or --strategic, welfare by `"+rules.ByRun+"`, "+rules.ByDelay+" or "+rules.ByDeadline)
	f.IntVar(&o.draws, "draws", 3, "with --compare, how many `times` types are drawn")
	f.BoolVar(&o.lying, "strategic", false, "let every user lie where it pays, and report the equilibrium")
	f.IntVar(&o.passes, "passes", 20, "with --strategic, how many `times` each user chooses, at most")
	return c
}

const compareHelp = `With --compare, several markets get the same jobs with the same types, drawn by
the model of the first. Welfare has one measure for all of them, by default run:
the value of each job that is run, less what its waiting costs. Starved jobs are
not completed, or respond after more than 100 times their run time. Jain's index
and the Gini coefficient compare the mean speeds of the users: run time divided
by response time, 0 for jobs that are not completed. Utilisation is from the
first submission to the last. Differences from the first market are paired: job
by job, draw by draw.

With --strategic, every user of a market, or of each market of --compare, may
tell a lie about the value, the deadline, the length or the arrival of all its
jobs, or split them. In turn, each user compares the lies that it could tell and
chooses one at random, a lie with more regret more often. This ends when no user
would gain more than 0.1% of the value of its jobs. The tables have welfare and
revenue at rest, who lies, and who gained. Each pass runs the market some 25
times for each user: study a few days of a log. --worth names what users want.
`

func parameters() string {
	var b strings.Builder
	for _, name := range rules.Mechanisms() {
		fmt.Fprintf(&b, "  %-13s %s\n", name, strings.Join(rules.Parameters(name), ", "))
	}
	return b.String()
}

// fitting is a memory limit in bytes. Near this limit, Go collects garbage more often, so that studies of the largest
// logs need less than 1 GiB.
const fitting = 800 << 20

func (o *options) run(out, stderr io.Writer) error {
	if err := o.check(); err != nil {
		return messages.AsError("simulate", err)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(fitting))
	}
	style := terminal.StyleFor(terminal.IsTerminal(out), false, os.Getenv)
	if o.lying {
		d, err := o.strategic(NewProgress(stderr))
		return o.show(out, d, err, func() { writeStrategic(out, style, d) })
	}
	if len(o.compared) > 0 {
		d, err := o.compare(NewProgress(stderr))
		return o.show(out, d, err, func() { writeComparison(out, style, d) })
	}
	report, err := o.simulate(NewProgress(stderr))
	return o.show(out, report, err, func() { write(out, style, report) })
}

// show prints a report. If err is not nil, it prints nothing and returns err with the name of the command.
func (o *options) show(out io.Writer, report any, err error, write func()) error {
	if err != nil {
		return messages.AsError("simulate", err)
	}
	if o.json {
		return Print(out, report)
	}
	write()
	return nil
}

// together returns an error if the command line combines flags that have no meaning together.
func (o *options) together(flags *pflag.FlagSet) (err error) {
	compared := []string{"worth", "draws"}
	flags.VisitAll(func(f *pflag.Flag) {
		switch {
		case !f.Changed || err != nil:
		case f.Name == "passes" && !o.lying:
			err = messages.Errorf(messages.Invalid, "--passes: is only for --strategic: add --strategic, or leave it out")
		case f.Name == "draws" && o.lying:
			err = messages.Errorf(messages.Invalid, "--draws: with --strategic the types of the jobs are drawn once; leave out --draws or --strategic")
		case f.Name == "worth" && o.lying:
		case slices.Contains(compared, f.Name) && len(o.compared) == 0:
			err = messages.Errorf(messages.Invalid, "--%s: is for comparisons: name markets with --compare, or leave it out", f.Name)
		case f.Name == "by" && (len(o.compared) > 0 || o.lying):
			err = messages.Errorf(messages.Invalid, "--by: does not work with comparisons or --strategic; leave out --by")
		case f.Name == "slots-per-node" && o.actors == "core":
			err = messages.Errorf(messages.Invalid, "--slots-per-node: the mechanism alone has no nodes; use --actors all, or leave out --slots-per-node")
		}
	})
	return err
}

func (o *options) check() error {
	if o.actors != "core" && o.actors != "all" {
		return messages.Errorf(messages.Invalid, "--actors: must be core or all, is %.64q", o.actors)
	}
	if o.slots < 1 || o.slots > mostSlots {
		return messages.Errorf(messages.Invalid, "--slots-per-node: must be from 1 to %d, is %d", mostSlots, o.slots)
	}
	if o.events != "" && !strings.HasSuffix(o.events, ".csv") {
		return messages.Errorf(messages.Invalid, "--events: %s: name a file that ends in .csv", o.events)
	}
	if o.AllActors = o.actors == "all"; len(o.compared) > 0 {
		if err := o.checkCompared(); err != nil {
			return err
		}
	}
	if !slices.Contains([]string{rules.ByDelay, rules.ByDeadline, rules.ByRun}, o.worth) {
		return messages.Errorf(messages.Invalid, "--worth: must be %s, %s or %s, is %.64q", rules.ByRun, rules.ByDelay, rules.ByDeadline, o.worth)
	}
	if o.lying {
		if err := o.checkStrategic(); err != nil {
			return err
		}
	}
	if !slices.Contains(measure.Groupings, o.by) {
		return messages.Errorf(messages.Invalid, "--by: must be one of %s, is %.64q", strings.Join(measure.Groupings, ", "), o.by)
	}
	return nil
}

func (o *options) simulate(show *Progress) (*measure.Report, error) {
	defer show.End()
	if o.Trace != "" {
		show.Step("reading " + o.Trace)
	}
	p, err := o.Study()
	if err != nil {
		return nil, err
	}
	show.Step(fmt.Sprintf("running %s through %s", terminal.Plural(len(p.Work.Jobs), "job"), p.Market.Mechanism))
	p.Progress, p.Record = show.At, o.events != ""
	study := &measure.Study{Market: p.Market, Work: p.Work, Bids: p.Bids}
	var traffic *grid.Traffic
	if study.Outcome, traffic, err = o.outcome(p); err != nil {
		return nil, err
	}
	show.Step("measuring")
	report, err := study.Report(o.by)
	if err != nil {
		return nil, err
	}
	if traffic != nil {
		report.Traffic = traffic
	}
	report.Seed, report.Actors, report.Trace.File, report.Trace.Scale = o.Seed, o.actors, o.Trace, o.Load
	if o.events == "" {
		return report, nil
	}
	show.Step("writing " + o.events)
	return report, writeEvents(o.events, study)
}

// outcome runs the study, either with all actors of a site or with the mechanism alone.
func (o *options) outcome(p *core.Problem) (*core.Outcome, *grid.Traffic, error) {
	if o.actors == "all" {
		// Most memory is short-lived, so collecting garbage less often is faster.
		defer debug.SetGCPercent(debug.SetGCPercent(250))
		const ms = messages.Duration(1e6)
		return grid.Run(p, grid.Config{Network: network.Config{Delay: ms / 2, Jitter: ms}, Slots: o.slots})
	}
	out, err := core.Run(p)
	return out, nil, err
}
