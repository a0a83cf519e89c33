package submit

import (
	"fmt"
	"strconv"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobs"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

func writeEstimate(p *cli.Page, spec *job.JobSpec, r market.EstimateReply) {
	basis := "declared by the job"
	if !r.Declared {
		basis = r.Utility.Basis()
	}
	p.Printf("%s\n", p.Bold(terminal.Safe(spec.Name)))
	p.Fields("Utility", jobs.Utility(&r.Utility.Utility), "from", terminal.Safe(basis))
	p.Title("Run time of one task")
	t := terminal.NewTable("~STAGE|>TASKS|>LOW|>MEDIAN|>HIGH|>MEAN|>ROBUST|>RUNS|~FROM").Spare("RUNS|ROBUST|MEAN")
	for i, e := range r.Stages {
		tasks := ""
		if i < len(spec.Stages) {
			tasks = terminal.Count(spec.Stages[i].TaskCount())
		}
		row := []string{e.Stage, tasks, "", "", "", "", "", "", terminal.Safe(e.Source)}
		if len(e.Samples) > 0 {
			copy(row[2:], spread(e.Spread))
			row[6], row[7] = terminal.Span(e.Robust.Std()), runs(e.Runs)
		}
		t.Row(row...)
	}
	p.Table(t, "  ")
	writeCompletion(p, r)
}

func writeCompletion(p *cli.Page, r market.EstimateReply) {
	p.Title("Time from submission")
	t := terminal.NewTable("TO|>LOW|>MEDIAN|>HIGH|>MEAN|>RUNS")
	if r.Runs > 0 {
		t.Row(append(append([]string{"first task"}, spread(r.Wait)...), runs(r.Runs))...)
	}
	if r.Completion.Median > 0 || r.Completion.Mean > 0 {
		t.Row(append(append([]string{"completion"}, spread(r.Completion)...), runs(r.Runs))...)
	}
	if t.Len() > 0 {
		p.Table(t, "  ")
	}
	p.Printf("  %s\n", p.Dim("from "+terminal.Safe(r.Source)))
}

func spread(s market.Spread) []string {
	return []string{terminal.Span(s.Low.Std()), terminal.Span(s.Median.Std()), terminal.Span(s.High.Std()), terminal.Span(s.Mean.Std())}
}

// runs writes a number of runs with one digit after the point. The number can have a fraction, because older runs count
// less.
func runs(n float64) string { return strconv.FormatFloat(n, 'f', 1, 64) }

func writeClasses(p *cli.Page, r market.ClassesReply) {
	if len(r.Classes) == 0 {
		p.Printf("No job profile classes. An operator declares profiles in the site's configuration.\n")
		return
	}
	t := terminal.NewTable("~CLASS|~SHAPE|>SAMPLES|>OUTSIDE|>ACCOUNTS|>SCREENED OUT|>PRIOR|>DIVERGENCE").Spare("SHAPE|OUTSIDE|DIVERGENCE")
	for _, c := range r.Classes {
		moved := ""
		if c.MovedBy > 0 {
			moved = fmt.Sprintf("%.3f ± %.3f", c.Moved, c.MovedBy)
		}
		t.Row(c.Profile.Name, string(c.Profile.Class), plain(c.Samples), cli.Number(int(c.Outside)), cli.Number(c.Accounts),
			terminal.Percent(c.Screened), terminal.Percent(c.Prior), moved)
	}
	p.Table(t, "")
	for _, c := range r.Classes {
		writeParameters(p, c)
	}
}

// plain writes a number in decimals without an exponent, with as few digits as needed, because an operator would write
// it so.
func plain(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

func writeParameters(p *cli.Page, c market.ClassEstimate) {
	p.Title(c.Profile.Name)
	t := terminal.NewTable("~PARAMETER|>FROM|>TO|>MEAN|>DEVIATION|>BANDWIDTH")
	at := func(x []float64, j int) string {
		if j >= len(x) {
			return ""
		}
		return cli.Price(x[j])
	}
	for j, b := range c.Profile.Bounds {
		t.Row(terminal.Safe(b.Parameter), plain(b.Low), plain(b.High), at(c.Mean, j), at(c.Deviation, j), at(c.Bandwidth, j))
	}
	p.Table(t, "  ")
}
