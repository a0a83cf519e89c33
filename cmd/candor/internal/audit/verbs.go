package audit

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/candor-grid/candor/cmd/candor/internal/simulate"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/deploy/simulated/audit"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/messages"
)

type verbsDocument struct {
	Market *rules.Market `json:"market"`
	Trace  string        `json:"trace"`
	Nodes  int           `json:"nodes"`
	Seed   uint64        `json:"seed"`
	Pays   bool          `json:"pays"` // the whole confidence interval is above --fail-above
	*audit.Verbs
}

// declared lists the flags about declarations of jobs. They cannot be used with --verbs.
var declared = []string{"lies", "threshold", "zero", "seeds", "keep"}

// searchVerbs carries out `candor audit --verbs`: it searches for sequences of commands with which a user gains.
func (o *options) searchVerbs(c *cobra.Command) error {
	var given error
	c.Flags().Visit(func(f *pflag.Flag) {
		if slices.Contains(declared, f.Name) {
			given = messages.Errorf(messages.Invalid, "--%s: changes what jobs declare, but --verbs tests sequences of commands; leave out --verbs or --%s", f.Name, f.Name)
		}
	})
	if given != nil {
		return given
	}
	if err := o.check(); err != nil {
		return err
	}
	if o.tries < 1 || o.tries > 100_000 {
		return messages.Errorf(messages.Invalid, "--tries: must be from 1 to 100000, is %d", o.tries)
	}
	show := simulate.NewProgress(c.ErrOrStderr())
	show.Step("reading " + o.Trace)
	p, err := o.Study()
	if err != nil {
		show.End()
		return messages.AsError("audit", err)
	}
	show.Step("searching for sequences of commands")
	v, err := audit.SearchVerbs(p, audit.VerbOptions{Jobs: o.jobs, Tries: o.tries, Progress: show.At, Until: c.Context().Done()})
	show.End()
	if err != nil {
		return messages.AsError("audit", err)
	}
	d := &verbsDocument{Market: p.Market, Trace: o.Trace, Nodes: p.Work.Nodes, Seed: o.Seed, Verbs: v}
	d.Pays = c.Flags().Changed("fail-above") && v.Found.CI[0] > o.above
	if err := o.presentVerbs(c.OutOrStdout(), d); err != nil {
		return err
	}
	if d.Pays {
		return &Pays{fmt.Sprintf("a sequence of commands gains %s of a job's value on average, above %g: %s", gained(&v.Found), o.above, v.Found.Sequence)}
	}
	return nil
}

func gained(v *audit.Verbed) string { return interval(v.Mean, v.CI) }

func interval(mean float64, ci [2]float64) string {
	return fmt.Sprintf("%s [%s, %s]", short(mean), short(ci[0]), short(ci[1]))
}

// fired returns a text that says whether the search found the gain that was inserted as a control.
func fired(v *audit.Verbed) string {
	if !v.Fired() {
		return "not fired"
	}
	return "fired: " + interval(v.Bounded, v.BoundedCI)
}

func (o *options) presentVerbs(out io.Writer, d *verbsDocument) error {
	if o.json {
		return simulate.Print(out, d)
	}
	f := &d.Found
	if o.row {
		var controls []string
		for i := range d.Controls {
			controls = append(controls, fired(&d.Controls[i]))
		}
		_, err := fmt.Fprintf(out, "| %d | %s | %s | %d | %s | %s |\n", f.Jobs, gained(f), interval(f.Bounded, f.BoundedCI), f.Tried, f.Sequence, strings.Join(controls, "; "))
		return err
	}
	fmt.Fprintf(out, "%s, %s, %s tried, %s of the market, seed %d; gains are fractions of a job's value\n\n", d.Trace,
		terminal.Plural(f.Jobs, "sampled job"), terminal.Plural(f.Tried, "sequence"), terminal.Plural(f.Runs, "run"), d.Seed)
	fmt.Fprintf(out, "best sequence:  %s\ngain:           %s, by %d of %s\n", f.Sequence, gained(f), f.Gainers, terminal.Plural(f.Jobs, "job"))
	fmt.Fprintf(out, "gain, with each gain or loss limited to the job's value: %s\n", interval(f.Bounded, f.BoundedCI))
	for i := range d.Controls {
		c, power := &d.Controls[i], ""
		if !c.Fired() {
			power = ": this search is too weak to show a gain"
		}
		fmt.Fprintf(out, "\ncontrol:        if %s: %s%s\n                %s\n", c.Hole, fired(c), power, c.Sequence)
	}
	return nil
}
