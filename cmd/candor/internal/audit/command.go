// Package audit is the command `candor audit`: whether lying pays in a market, on
// a log.
package audit

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/simulate"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/cmd/internal/chart"
	"github.com/candor-grid/candor/deploy/simulated/audit"
	"github.com/candor-grid/candor/messages"
)

// options are the command's flags.
type options struct {
	simulate.Source
	jobs      int
	kinds     []string
	threshold float64
	plots     string
	json      bool
}

// Pays says that a lie gains more than the threshold; the program then exits
// with 1.
type Pays struct{ message string }

func (p *Pays) Error() string { return p.message }

// ExitCode is the program's.
func (p *Pays) ExitCode() int { return 1 }

// document is what --json prints.
type document struct {
	Market    any      `json:"market"`
	Trace     string   `json:"trace"`
	Nodes     int      `json:"nodes"`
	Seed      uint64   `json:"seed"`
	Threshold *float64 `json:"threshold"` // null: none
	Pays      bool     `json:"pays"`      // a lie gains more than the threshold
	*audit.Report
}

// Command returns `candor audit`.
func Command() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "audit --trace FILE --market FILE",
		Short: "search for lies that gain in a market, on a log of jobs",
		Long: `Searches for the lie that gains most, for each job of a sample of a log. The
kinds of lies are: value, deadline, length, nodes, a later arrival, the job in
two halves, two users who collude, utility weights in proportional markets, a
minimum utility in proportional markets with an slo, and a job that exits with 1
or is cancelled when its owner has the results. For each lie the whole market
runs again with everything else equal. Gains are parts of the job's value.

Each lie needs a run of the market: study a few days of a log (--from, --to).

Exits with 1 if --threshold is given and a lie gains more.`,
		Example: `  candor audit --trace KTH-SP2.swf.gz --market deadline --from 30d --to 37d --jobs 50
  candor audit --trace log.swf --market market.yaml --threshold 0.01 --json`,
		Args: cobra.NoArgs, SilenceErrors: true, SilenceUsage: true,
		RunE: func(c *cobra.Command, _ []string) error {
			return simulate.Await(c.Context(), func() error {
				return o.run(c.OutOrStdout(), c.ErrOrStderr(), c.Flags().Changed("threshold"))
			})
		},
	}
	f := c.Flags()
	o.Flags(f)
	f.IntVar(&o.jobs, "jobs", 30, "`number` of jobs in the sample")
	f.StringSliceVar(&o.kinds, "lies", nil, "`kinds` of lie to try (default all): "+strings.Join(audit.Kinds, ", "))
	f.Float64Var(&o.threshold, "threshold", 0, "fail if a lie gains more than this `part` of the job's value")
	f.StringVar(&o.plots, "plots", "", "draw the gains into this `directory`, as SVG")
	f.BoolVar(&o.json, "json", false, "print the report as JSON")
	return c
}

func (o *options) run(out, stderr io.Writer, limited bool) error {
	d, err := o.audit(simulate.NewProgress(stderr))
	if err != nil {
		return messages.AsError("audit", err)
	}
	if limited {
		d.Threshold, d.Pays = &o.threshold, d.Largest > o.threshold
	}
	if err := o.present(out, d); err != nil {
		return err
	}
	if d.Pays {
		return &Pays{fmt.Sprintf("lying pays: a lie gains %.4g of a job's value, above the threshold of %g", d.Largest, o.threshold)}
	}
	return nil
}

func (o *options) audit(show *simulate.Progress) (*document, error) {
	defer show.End()
	if err := o.check(); err != nil {
		return nil, err
	}
	show.Step("reading " + o.Trace)
	p, err := o.Study()
	if err != nil {
		return nil, err
	}
	show.Step(fmt.Sprintf("lying for %s of %d", terminal.Plural(o.jobs, "job"), len(p.Work.Jobs)))
	r, err := audit.Run(p, audit.Options{Jobs: o.jobs, Kinds: o.kinds, Progress: show.At})
	if err != nil {
		return nil, err
	}
	d := &document{Market: p.Market, Trace: o.Trace, Nodes: p.Work.Nodes, Seed: o.Seed, Report: r}
	d.Notes = append(d.Notes, p.Work.Notes...)
	if o.plots != "" {
		return d, simulate.Draw(o.plots, p.Market.Name+" ("+p.Market.Mechanism+")", map[string]func() (*chart.Chart, error){
			"gains": func() (*chart.Chart, error) { return draw(r) },
		})
	}
	return d, nil
}

// check refuses flags that are wrong whatever the files say, before any file is read.
func (o *options) check() error {
	if o.kinds != nil && len(o.kinds) == 0 {
		return messages.Errorf(messages.Invalid, "--lies: names no kind; the kinds are %s", strings.Join(audit.Kinds, ", "))
	}
	for i, k := range o.kinds {
		switch {
		case !slices.Contains(audit.Kinds, k):
			return messages.Errorf(messages.Invalid, "--lies: must be of %s, is %.64q", strings.Join(audit.Kinds, ", "), k)
		case slices.Contains(o.kinds[:i], k):
			return messages.Errorf(messages.Invalid, "--lies: names %s twice", k)
		}
	}
	if !(o.threshold >= 0 && o.threshold <= 1e9) {
		return messages.Errorf(messages.Invalid, "--threshold: must be from 0 to 1e+09, is %v", o.threshold)
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
	style := terminal.StyleFor(terminal.IsTerminal(out), false, os.Getenv)
	fmt.Fprintf(out, "%s, a sample of %s, %s of the market, seed %d; gains are parts of a job's value\n\n", style.Bold(d.Trace),
		terminal.Plural(d.Jobs, "job"), terminal.Plural(d.Runs, "run"), d.Seed)
	t := terminal.NewTable("~LIE ABOUT|>JOBS|>LIES|>GAIN BY IT|>MEAN GAIN|>95 %|>LARGEST|>CREDITS|>JOB").Spare("JOB|CREDITS|95 %")
	for i := range d.Kinds {
		f := &d.Kinds[i]
		row := []string{f.Kind, terminal.Count(f.Jobs), terminal.Count(f.Lies), terminal.Count(f.Gainers), part(f.Mean),
			part(f.CI[0]) + " … " + part(f.CI[1]), part(f.Largest), fmt.Sprintf("%.4g", f.Credits), "-"}
		if f.Job != 0 {
			row[8] = fmt.Sprint(f.Job)
		}
		t.Row(row...)
	}
	t.Write(out, style, "  ")
	fmt.Fprintln(out)
	for _, note := range d.Notes {
		fmt.Fprintf(out, "note: %s\n", terminal.Safe(note))
	}
	return nil
}

// part writes a fraction of one; a fraction below a millionth is a rounding error, and
// is written as 0.
func part(x float64) string {
	if x > -1e-6 && x < 1e-6 {
		return "0"
	}
	return fmt.Sprintf("%.4g", x)
}

// draw draws the mean and the largest gain by kind.
func draw(r *audit.Report) (*chart.Chart, error) {
	c := chart.New("", "gain, part of the job's value")
	c.Y.Cover(1e-6)
	var kinds []string
	mean, largest := chart.Bars{Name: "mean"}, chart.Bars{Name: "largest"}
	for i := range r.Kinds {
		kinds = append(kinds, r.Kinds[i].Kind)
		mean.Values, largest.Values = append(mean.Values, r.Kinds[i].Mean), append(largest.Values, r.Kinds[i].Largest)
	}
	return c, c.AddBars(kinds, mean, largest)
}
