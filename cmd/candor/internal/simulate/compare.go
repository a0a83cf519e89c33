package simulate

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/deploy/simulated/bids"
	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/grid"
	"github.com/candor-grid/candor/deploy/simulated/measure"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
)

const (
	mostDraws = 1000
	abreast   = 3 // number of markets in a table of 80 columns
	mostUsers = 10
)

type compareDocument struct {
	Trace string `json:"trace"`
	Nodes int    `json:"nodes"`
	Jobs  int    `json:"jobs"`
	Seed  uint64 `json:"seed"`
	*measure.Comparison
	Notes []string `json:"notes"`
}

// compare runs several markets on one log. All markets get the same jobs with the same types.
func (o *options) compare(show *Progress) (*compareDocument, error) {
	defer show.End()
	show.Step("reading " + o.Trace)
	problems, err := o.problems(o.compared)
	if err != nil {
		return nil, err
	}
	studies := make([][]*measure.Study, len(problems))
	for m, p := range problems {
		for k := range o.draws {
			show.Step(fmt.Sprintf("%s, draw %d of %d", p.Market.Name, k+1, o.draws))
			own, err := o.drawn(p, problems[0].Market.Bids, k)
			if err != nil {
				return nil, err
			}
			own.Progress = show.At
			outcome, _, err := o.outcome(own)
			if err != nil {
				return nil, messages.Errorf(messages.KindOf(err), "%s: %s", o.compared[m], messages.Detail(err))
			}
			studies[m] = append(studies[m], &measure.Study{Market: own.Market, Work: own.Work, Bids: own.Bids, Outcome: outcome})
		}
	}
	show.Step("measuring")
	work := problems[0].Work
	d := &compareDocument{Trace: o.Trace, Nodes: work.Nodes, Jobs: len(work.Jobs), Seed: o.Seed, Comparison: measure.Compare(studies), Notes: slices.Clone(work.Notes)}
	for _, p := range problems[1:] {
		model := p.Market.Bids
		if model.Budget = problems[0].Market.Bids.Budget; model != problems[0].Market.Bids && o.BidsFile == "" {
			d.Notes = append(d.Notes, fmt.Sprintf("%s: the types of jobs are drawn from the model of bids of %s", p.Market.Name, problems[0].Market.Name))
		}
	}
	return d, nil
}

// problems makes one study for each market file. All studies have the same jobs, the same machine and the same measure
// of welfare.
func (o *options) problems(files []string) ([]*core.Problem, error) {
	markets := make([]*rules.Market, len(files))
	gangs := true
	for i, file := range files {
		own := o.Source
		own.Market = file
		m, err := own.market()
		if err != nil {
			return nil, err
		}
		m.Name, m.Worth = label(files, i), o.worth
		markets[i] = m
		gangs = gangs && (o.AllActors && grid.Gangs(m.Mechanism) || !o.AllActors && rules.Wide(m.Mechanism))
	}
	source := o.Source
	source.Market = files[0]
	if source.Parallel == "" && !gangs { // split parallel jobs, because not all of these markets support gangs
		source.Parallel = string(workload.Split)
	}
	first, err := source.Study()
	if err != nil {
		return nil, err
	}
	out := make([]*core.Problem, len(files))
	for i, m := range markets {
		if n := m.Slots(); n != 0 && n != first.Work.Nodes {
			return nil, messages.Errorf(messages.Invalid, "%s: has %d slots, but the machine of the comparison has %d: give --nodes, and leave the number of slots out of the markets", files[i], n, first.Work.Nodes)
		}
		p := *first
		p.Market = m
		out[i] = &p
	}
	return out, nil
}

// label returns the name of a market's file without directory and ending. If another file has the same name, it returns
// the full path.
func label(files []string, i int) string {
	short := func(file string) string { return strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)) }
	for k := range files {
		if k != i && short(files[k]) == short(files[i]) {
			return files[i]
		}
	}
	return short(files[i])
}

// drawn returns a study whose jobs have other types (private values). The types come from one random draw, by the given
// model. The budget is not taken from this model, because each market uses the budget differently. It stays as in the
// model of p's market.
func (o *options) drawn(p *core.Problem, model bids.Model, draw int) (*core.Problem, error) {
	own, m := *p, *p.Market
	m.Bids = model
	m.Bids.Budget = p.Market.Bids.Budget
	own.Market, own.Seed = &m, o.Seed+uint64(draw)
	own.Bids = m.Bids.Draw(own.Work, own.Seed)
	if o.BidsFile == "" {
		return &own, nil
	}
	work := *own.Work // no second report of the notes, which the first study has reported
	own.Work = &work
	err := o.readBids(&own)
	return &own, err
}

// writeComparison prints the results of several markets side by side, in tables of at most 80 columns.
func writeComparison(out io.Writer, style terminal.Style, d *compareDocument) {
	fmt.Fprintf(out, "%s: %s, %s, seed %d\n", style.Bold(d.Trace), terminal.Plural(d.Jobs, "job"), terminal.Plural(d.Nodes, "slot"), d.Seed)
	fmt.Fprintf(out, "All markets have the same jobs and types. A number is a mean over %s of\nthe types, ± half of its 95 %% confidence interval. The interval is found by\nleaving out each of %d parts of the log in turn.\n",
		terminal.Plural(d.Draws, "draw"), d.Blocks)
	fmt.Fprintf(out, "Welfare (worth by %s) and revenue are fractions of the value of all jobs.\n", d.Worth)
	for part := range slices.Chunk(d.Markets, abreast) {
		fmt.Fprintln(out)
		table(out, style, "MEASURE", part, measure.Measures, func(m *measure.Compared, name string) string { return estimate(name, m.Measures[name]) })
	}
	if len(d.Markets) > 1 {
		fmt.Fprintf(out, "\nDifferences from %s, paired; * marks intervals without 0\n", d.Markets[0].Name)
		for part := range slices.Chunk(d.Markets[1:], abreast) {
			table(out, style, "MEASURE", part, measure.Measures, func(m *measure.Compared, name string) string {
				e := m.Less[name]
				if text := estimate(name, e); !e.Clear() || e.CI[0] == e.CI[1] {
					return text
				} else {
					return text + "*"
				}
			})
		}
	}
	writeWaits(out, style, d, "WIDTH", func(m *measure.Compared) []measure.Waited { return m.Widths })
	writeWaits(out, style, d, "USER", func(m *measure.Compared) []measure.Waited { return m.Users[:min(mostUsers, len(m.Users))] })
	if n := len(d.Markets[0].Users) - mostUsers; n > 0 {
		fmt.Fprintf(out, "  and %s; --json lists all\n", terminal.Plural(n, "more user"))
	}
	fmt.Fprintln(out)
	for _, note := range d.Notes {
		fmt.Fprintf(out, "note: %s\n", terminal.Safe(note))
	}
	for i := range d.Markets {
		for _, note := range d.Markets[i].Notes {
			fmt.Fprintf(out, "note: %s: %s\n", d.Markets[i].Name, terminal.Safe(note))
		}
	}
}

// table prints a table with a row for each measure and a column for each market.
func table[R any](out io.Writer, style terminal.Style, title string, markets []measure.Compared, rows []R, cell func(m *measure.Compared, row R) string) {
	head := title
	for i := range markets {
		head += "|>" + terminal.Clip(terminal.Safe(strings.ReplaceAll(markets[i].Name, "|", "_")), 17)
	}
	t := terminal.NewTable(head)
	for _, row := range rows {
		cells := []string{strings.ReplaceAll(fmt.Sprint(row), "_", " ")}
		for i := range markets {
			cells = append(cells, cell(&markets[i], row))
		}
		t.Row(cells...)
	}
	t.Write(out, style, "  ")
}

// estimate writes a measure as a mean ± half of its confidence interval.
func estimate(name string, e measure.Estimate) string {
	text, half := amount3(e.Mean), (e.CI[1]-e.CI[0])/2
	if name == "wait" {
		text = span(e.Mean)
	}
	switch {
	case half == 0:
		return text
	case name == "wait":
		return text + " ±" + span(half)
	}
	return fmt.Sprintf("%s ±%.2g", text, half)
}

// amount3 writes a number with three significant digits.
func amount3(x float64) string {
	if x > -1e-9 && x < 1e-9 {
		return "0"
	}
	return fmt.Sprintf("%.3g", x)
}

func writeWaits(out io.Writer, style terminal.Style, d *compareDocument, title string, of func(m *measure.Compared) []measure.Waited) {
	for part := range slices.Chunk(d.Markets, abreast) {
		fmt.Fprintln(out)
		groups := of(&part[0])
		rows := make([]string, len(groups))
		for k, g := range groups {
			rows[k] = fmt.Sprintf("%s (%s)", g.Name, terminal.Plural(g.Jobs, "job"))
		}
		table(out, style, "MEAN WAIT BY "+title, part, rows, func(m *measure.Compared, row string) string {
			w := of(m)[slices.Index(rows, row)]
			if w.Completed == 0 {
				return "-"
			}
			return span(w.Wait)
		})
	}
}

func (o *options) checkCompared() error {
	switch {
	case o.Market != "":
		return messages.Errorf(messages.Invalid, "--market: --compare names the markets; leave out --market or --compare")
	case o.events != "":
		return messages.Errorf(messages.Invalid, "--events: writes the events of one market, but --compare runs several; leave out one of the two")
	case o.draws < 1 || o.draws > mostDraws:
		return messages.Errorf(messages.Invalid, "--draws: must be from 1 to %d, is %d", mostDraws, o.draws)
	}
	for i, name := range o.compared {
		if name == "" || slices.Contains(o.compared[:i], name) {
			return messages.Errorf(messages.Invalid, "--compare: name each market once, as a.yaml,b.yaml, and not %q", strings.Join(o.compared, ","))
		}
	}
	return nil
}
