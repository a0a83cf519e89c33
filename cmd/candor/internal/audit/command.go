// Package audit is the command `candor audit`. The command uses a log of jobs to check whether lies gain in a market.
package audit

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/simulate"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/deploy/simulated/audit"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
)

type options struct {
	simulate.Source
	jobs      int
	kinds     []string
	threshold float64
	above     float64
	seeds     int
	zeros     []string
	json      bool
	row       bool
	keep      string
	verbs     bool
	tries     int
}

// Pays is the error that the audit returns if a lie gains more than the threshold. The exit code is then 1.
type Pays struct{ message string }

func (p *Pays) Error() string { return p.message }

func (p *Pays) ExitCode() int { return 1 }

type document struct {
	Made      string        `json:"made,omitempty"`    // time at which a kept report was made
	Command   string        `json:"command,omitempty"` // command that made the kept report
	Market    *rules.Market `json:"market"`
	Trace     string        `json:"trace"`
	Nodes     int           `json:"nodes"`
	Seed      uint64        `json:"seed"`
	Threshold *float64      `json:"threshold"` // null means that no threshold was given
	Pays      bool          `json:"pays"`      // a lie gains more than the threshold
	Above     *float64      `json:"above"`     // largest average gain that a fixed lie may have; null means no limit
	Failed    []string      `json:"failed"`    // kinds of lies that gain more than Above; for kinds that --zero names, more than 0
	wide      bool          // each job is one task of several slots
	*audit.Report
}

func Command() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "audit --trace FILE --market FILE",
		Short: "search for lies that gain in a market, on a log of jobs",
		Long: `Searches for the lie that gains most, for each job of a sample of a log. The
kinds of lies are: value, deadline, length, nodes, a later arrival, the job in
two halves, two or three users who collude, false names, second jobs that nobody
needs (ghosts), a job that is slow on purpose, a job that is cancelled and
submitted again, and a job that exits with 1 or is cancelled when its owner has
the results. In proportional markets there are also utility weights and forms,
and with an slo a minimum utility; in batch queues a cost of delay apart from
the value. The kind joint searches for one lie about all these numbers. For each
lie the whole market runs again with everything else equal.
Gains are parts of the job's value. For the kinds ends and cancel the command
simulates every message of every actor, which takes a long time.

Each lie needs a run of the market: study a few days of a log (--from, --to).
After an interrupt (Ctrl-C), the command finishes the searches under way and
reports what was done by then; a second interrupt ends the program at once. With
--row the exit code is then not 0.

With --parallel wide each job is one task on 1, 2, 4 or 8 slots of a node of 8:
its number of processors, rounded up to a power of two. Then all actors run, and
each sampled job runs among the 24 jobs of the log around it. The lie "nodes" is
then a false number of slots.

With --verbs the search is about what the owner of a job does, and not about
what it declares: see VERBS below.

With --keep, the page Honesty of a site's console shows the report, with its
date and settings: name the state directory of the site. The last report of
each market is kept.

The first table shows for each kind the lie with the surest mean gain, if all
sampled jobs tell this lie; the bids are drawn --seeds times. The second table
has the best lie of each job, chosen after the gains are known. CONTROL is a lie
that is known to gain: if it does not gain here, the sample is too small to show
a gain.

Exits with 1 if the best lie of a job gains more than --threshold, if the whole
interval of the mean gain of a lie is above --fail-above, or if that interval is
above 0 for a kind that --zero names. For the exit code the intervals are wider
than in the table, because the command tries many lies: a market in which no lie
gains fails one time in forty at most.

VERBS: an agent that knows the true value of its job searches for the sequence
of at most 4 steps that gains most. The job can exit with 1, be retried, begin
later, wait for another job, or keep its slot when it has its result. The agent
can requeue, hold and release the job, cancel it and submit it again, submit it
twice, as an array, divided, packed, or with tasks that nobody needs, raise its
bid, and ask for several menus, also before and after the market draws new
menus. The agent can submit just before or after the market decides, and use
other accounts, also at another site. All actors run, with each sampled job
among the 24 jobs of the log around it. The agent has its result when the
program has printed it, whatever the exit code. The gain of the best sequence is
measured with other jobs, bids and random draws than the search used. --jobs is
the number of jobs that measure the gain, and --tries the number of random
sequences with which the search begins. As a control, the command repeats the
search in a market without one of its rules, for each rule: for example, without
the rule that a failed job pays for the slots that it had. If the search finds
no gain in a control ("not fired"), the search is too weak to show a gain.`,
		Example: `  candor audit --trace KTH-SP2.swf.gz --market deadline \
      --from 30d --to 37d --jobs 50
  candor audit --trace mine.swf --market m.yaml --seeds 3 --fail-above 0.02
  candor audit --trace log.swf --market market.yaml --threshold 0.01 --json
  candor audit --trace log.swf --market market.yaml --verbs --fail-above 0.005
  candor audit --trace log.swf --market market.yaml --keep ~/.local/state/candor`,
		Args: cobra.NoArgs, SilenceErrors: true, SilenceUsage: true,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.run(c)
		},
	}
	f := c.Flags()
	o.Flags(f)
	f.IntVar(&o.jobs, "jobs", 30, "`number` of jobs in the sample")
	f.StringSliceVar(&o.kinds, "lies", nil, "`kinds` of lie to try (default all): "+strings.Join(audit.Kinds, ", "))
	f.Float64Var(&o.threshold, "threshold", 0, "fail if the best lie of a job gains more than this `part` of the job's value")
	f.Float64Var(&o.above, "fail-above", 0, "fail if a lie that all jobs tell gains more than this `part` of the job's value on average")
	f.StringSliceVar(&o.zeros, "zero", nil, "fail if a lie of these `kinds` that all jobs tell gains anything on average")
	f.IntVar(&o.seeds, "seeds", 1, "how many `times` bids are drawn")
	f.BoolVar(&o.row, "row", false, "print the average gains as a row of a Markdown table")
	f.BoolVar(&o.verbs, "verbs", false, "search for sequences of commands that gain, not for false declarations")
	f.IntVar(&o.tries, "tries", 100, "with --verbs: `number` of random sequences to begin with")
	f.BoolVar(&o.json, "json", false, "print the report as JSON")
	f.StringVar(&o.keep, "keep", "", "keep the report for the console of the site with this state `directory`")
	return c
}

func (o *options) run(c *cobra.Command) error {
	out, stderr := c.OutOrStdout(), c.ErrOrStderr()
	keeps := c.Flags().Changed("keep")
	if about, err := os.Stat(o.keep); keeps && (err != nil || !about.IsDir()) {
		return messages.Errorf(messages.Invalid, "--keep: %.200q is no directory; name the state directory of the site", o.keep)
	}
	defer context.AfterFunc(c.Context(), func() {
		fmt.Fprintln(stderr, "candor audit: the report comes when the searches under way are done; a second interrupt ends them")
	})()
	if o.verbs {
		return o.searchVerbs(c)
	}
	d, err := o.audit(simulate.NewProgress(stderr), c.Context().Done())
	if err != nil {
		return messages.AsError("audit", err)
	}
	if c.Flags().Changed("threshold") {
		d.Threshold, d.Pays = &o.threshold, d.Largest > o.threshold
	}
	if c.Flags().Changed("fail-above") {
		d.Above = &o.above
	}
	d.Failed = o.failed(d)
	if err := o.present(out, d); err != nil {
		return err
	}
	if keeps {
		d.Made, d.Command = time.Now().UTC().Format(time.RFC3339), commandLine(c.Flags())
		if err := keep(o.keep, d); err != nil {
			return err
		}
	}
	switch {
	case o.row && c.Context().Err() != nil:
		return messages.Errorf(messages.Unavailable, "interrupted: the row counts only the searches that had ended; run the command again for a whole row")
	case d.Pays:
		return &Pays{fmt.Sprintf("lying pays: a lie gains %.4g of a job's value, above the threshold of %g", d.Largest, o.threshold)}
	case len(d.Failed) > 0:
		return &Pays{"lying pays on average: lies about " + strings.Join(d.Failed, ", ")}
	}
	return nil
}

// failed returns the kinds of fixed lies that gain more than the flags allow. A fixed lie is told for every job. The
// whole confidence interval of its gain must be above the limit.
func (o *options) failed(d *document) []string {
	out, lies := []string{}, 0
	for i := range d.Kinds {
		lies += len(d.Kinds[i].Fixed)
	}
	for i := range d.Kinds {
		f := &d.Kinds[i]
		if d.Above != nil && f.Above(*d.Above, lies) || slices.Contains(o.zeros, f.Kind) && f.Above(audit.Rounding, lies) {
			out = append(out, f.Kind)
		}
	}
	return out
}

func (o *options) audit(show *simulate.Progress, until <-chan struct{}) (*document, error) {
	defer show.End()
	if err := o.check(); err != nil {
		return nil, err
	}
	show.Step("reading " + o.Trace)
	p, err := o.Study()
	if err != nil {
		return nil, err
	}
	show.Step(fmt.Sprintf("trying lies of %s, of %d in all", terminal.Plural(min(o.jobs, len(p.Work.Jobs)), "job"), len(p.Work.Jobs)))
	r, err := audit.Run(p, audit.Options{Jobs: o.jobs, Kinds: o.kinds, Progress: show.At, Redraws: o.seeds, Until: until})
	if err != nil {
		return nil, err
	}
	d := &document{Market: p.Market, Trace: o.Trace, Nodes: p.Work.Nodes, Seed: o.Seed, Report: r, wide: p.Work.Parallel == workload.Wide}
	d.Notes = append(d.Notes, p.Work.Notes...)
	return d, nil
}

func (o *options) check() error {
	if o.kinds != nil && len(o.kinds) == 0 {
		return messages.Errorf(messages.Invalid, "--lies: names no kind; the kinds are %s", strings.Join(audit.Kinds, ", "))
	}
	for i, k := range o.kinds {
		switch {
		case !slices.Contains(audit.Kinds, k):
			return messages.Errorf(messages.Invalid, "--lies: must be one or several of %s, is %.64q", strings.Join(audit.Kinds, ", "), k)
		case slices.Contains(o.kinds[:i], k):
			return messages.Errorf(messages.Invalid, "--lies: names %s twice", k)
		}
	}
	if !(o.threshold >= 0 && o.threshold <= 1e9) {
		return messages.Errorf(messages.Invalid, "--threshold: must be from 0 to 1e+09, is %v", o.threshold)
	}
	for _, k := range o.zeros {
		if !slices.Contains(audit.Kinds, k) {
			return messages.Errorf(messages.Invalid, "--zero: must be one or several of %s, is %.64q", strings.Join(audit.Kinds, ", "), k)
		}
	}
	if !(o.above >= 0 && o.above <= 1e9) {
		return messages.Errorf(messages.Invalid, "--fail-above: must be from 0 to 1e+09, is %v", o.above)
	}
	if o.seeds < 1 || o.seeds > 1000 {
		return messages.Errorf(messages.Invalid, "--seeds: must be from 1 to 1000, is %d", o.seeds)
	}
	if o.seeds > 1 && o.BidsFile != "" {
		return messages.Errorf(messages.Invalid, "--seeds draws new bids each time, but --bids gives the bids: leave one of them out")
	}
	if o.jobs < 1 {
		return messages.Errorf(messages.Invalid, "--jobs: must be at least 1, is %d", o.jobs)
	}
	return nil
}

func (o *options) present(out io.Writer, d *document) error {
	if o.json {
		return simulate.Print(out, d)
	}
	if o.row {
		fmt.Fprintln(out, row(d))
		return nil
	}
	style := terminal.StyleFor(terminal.IsTerminal(out), false, os.Getenv)
	fmt.Fprintf(out, "%s, %s of %s, %s of the market, seed %d; gains are fractions of a job's value\n\n", style.Bold(d.Trace),
		terminal.Plural(d.Jobs, "sampled job"), terminal.Plural(d.Redraws, "draw"), terminal.Plural(d.Runs, "run"), d.Seed)
	fmt.Fprintln(out, "On average, if every sampled job tells the same lie: the surest lie of each kind")
	t := terminal.NewTable("~LIE ABOUT|>JOBS|>LIES|>MEAN GAIN|>95 %|CONTROL").Spare("LIES|JOBS")
	for i := range d.Kinds {
		f := &d.Kinds[i]
		if f.Worst.Jobs == 0 {
			continue
		}
		t.Row(f.Kind, terminal.Count(f.Worst.Jobs), terminal.Count(len(f.Fixed)), part(f.Worst.Mean), part(f.Worst.CI[0])+" … "+part(f.Worst.CI[1]), control(f))
	}
	t.Write(out, style, "  ")
	fmt.Fprintln(out, "\nThe best lie of each job, chosen after the gains are known")
	t = terminal.NewTable("~LIE ABOUT|>JOBS|>LIES|>GAIN BY IT|>MEAN GAIN|>95 %|>LARGEST|>CREDITS|>JOB").Spare("JOB|CREDITS|95 %")
	for i := range d.Kinds {
		f := &d.Kinds[i]
		cells := []string{f.Kind, terminal.Count(f.Jobs), terminal.Count(f.Lies), terminal.Count(f.Gainers), part(f.Mean),
			part(f.CI[0]) + " … " + part(f.CI[1]), part(f.Largest), fmt.Sprintf("%.4g", f.Credits), "-"}
		if f.Job != 0 {
			cells[8] = fmt.Sprint(f.Job)
		}
		t.Row(cells...)
	}
	t.Write(out, style, "  ")
	fmt.Fprintln(out)
	for i := range d.Kinds {
		if f := &d.Kinds[i]; f.StillGrows != 0 {
			fmt.Fprintf(out, "note: %s: the gain still grows at %g times the truth, the largest factor that is tried\n", f.Kind, f.StillGrows)
		}
	}
	for _, note := range d.Notes {
		fmt.Fprintf(out, "note: %s\n", terminal.Safe(note))
	}
	return nil
}

// control says whether one lie that is known to gain, the control, gained in this audit. If it did not, the sample is
// too small, and the audit's other results show nothing.
func control(f *audit.Finding) string {
	switch {
	case f.Control.Jobs == 0:
		return "-"
	case f.Control.CI[0] > audit.Rounding:
		return "fired: " + part(f.Control.Mean)
	case f.Control.Fired():
		return "fired: " + part(f.Control.Bounded) + ", bounded"
	}
	return "not fired: this sample is too small to show a gain"
}

// row returns a row of a Markdown table: the number of jobs, and for each kind of lie the average gain and the result
// of the control. The control shows that the audit can find a gain by such a lie. Gains of wide jobs are bounded,
// because waiting can cost a short job a thousand times its value. Joint lies (about several fields at once) are chosen
// after their gains are known. So the row has only the number of jobs that gain, and the largest gain.
func row(d *document) string {
	cells, fired := []string{"", fmt.Sprint(d.Jobs)}, "-"
	for i := range d.Kinds {
		f := &d.Kinds[i]
		switch {
		case f.Control.Jobs > 0 && f.Kind == audit.Nodes:
			fired += "; width " + control(f)
		case f.Control.Jobs > 0:
			fired = control(f)
		}
		x := f.Worst
		if d.wide {
			x = f.Bounded
			x.Mean, x.CI = x.Bounded, x.BoundedCI
		}
		switch {
		case f.Kind == audit.Joint && f.Gainers > 0:
			cells = append(cells, fmt.Sprintf("%d, %s", f.Gainers, short(f.Largest)))
		case f.Kind == audit.Joint && f.Jobs > 0 || x.Jobs > 0 && max(-x.CI[0], x.CI[1]) < audit.Rounding:
			cells = append(cells, "0")
		case x.Jobs == 0:
			cells = append(cells, "-")
		case x.CI[1] < 0:
			cells = append(cells, "loses")
		default:
			cells = append(cells, fmt.Sprintf("%s [%s, %s]", short(x.Mean), short(x.CI[0]), short(x.CI[1])))
		}
		if f.StillGrows != 0 {
			cells[len(cells)-1] += fmt.Sprintf(", still grows at %g", f.StillGrows)
		}
	}
	return strings.TrimSpace(strings.Join(append(cells, fired, ""), " | "))
}

// short writes a number with two significant digits. A number from 100 on is rounded to a whole number instead.
func short(x float64) string {
	if x <= -100 || x >= 100 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.2g", x)
}

// part writes a fraction, such as a gain divided by a job's value. A fraction below a millionth is a rounding error,
// and is written as 0.
func part(x float64) string {
	if x > -1e-6 && x < 1e-6 {
		return "0"
	}
	return fmt.Sprintf("%.4g", x)
}
