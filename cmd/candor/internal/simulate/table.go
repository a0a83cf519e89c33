package simulate

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/deploy/simulated/measure"
)

// mostGroups is the largest number of groups of jobs in the printed table. The JSON output has all groups.
const mostGroups = 20

func write(out io.Writer, style terminal.Style, r *measure.Report) {
	t := &r.Trace
	fmt.Fprintf(out, "%s on market %s (%s), %s, seed %d, actors: %s\n", style.Bold(t.File), style.Bold(r.Market.Name), r.Market.Mechanism,
		terminal.Plural(t.Nodes, "slot"), r.Seed, r.Actors)
	load := "-" // there is no load if all jobs arrive at the same time
	if t.To > t.From {
		load = strconv.FormatFloat(t.Load, 'g', 3, 64)
	}
	fmt.Fprintf(out, "%s of %s over %s, load %s; %s left out (%s)\n\n", terminal.Plural(t.Jobs, "job"), terminal.Plural(t.Users, "user"),
		span(t.To-t.From), load, terminal.Count(t.Skipped.Total()), skipped(r))
	results(out, style, &r.Results)
	groups(out, style, r)
	for _, note := range r.Notes {
		fmt.Fprintf(out, "note: %s\n", terminal.Safe(note))
	}
}

func skipped(r *measure.Report) string {
	s := &r.Trace.Skipped
	return fmt.Sprintf("no run time %d, no processors %d, no submission %d, outside of the time %d, parallel %d, unsound %d",
		s.NoLength, s.NoWidth, s.NoSubmit, s.Outside, s.Parallel, s.Bad)
}

func results(out io.Writer, style terminal.Style, r *measure.Results) {
	spreads := terminal.NewTable("|>MEAN|>MEDIAN|>95 %|>MAX")
	for _, n := range []struct {
		name  string
		s     measure.Spread
		write func(float64) string
	}{{"wait", r.Wait, span}, {"response", r.Response, span}, {"bounded slowdown", r.Slowdown, amount}, {"payment", r.Payment, amount}} {
		write := of(r.Completed, n.write)
		spreads.Row(n.name, write(n.s.Mean), write(n.s.Median), write(n.s.P95), write(n.s.Max))
	}
	spreads.Write(out, style, "  ")
	fmt.Fprintln(out)
	facts := terminal.NewTable("|>|")
	facts.Row("completed", terminal.Count(r.Completed), share(r.Completed, r.Jobs))
	for _, f := range []struct {
		name string
		n    int
	}{{"discarded", r.Discarded}, {"expired", r.Expired}, {"refused", r.Refused}, {"severely slowed", r.Severe}, {"paid above their value", r.Overcharge}} {
		if f.n > 0 {
			facts.Row(f.name, terminal.Count(f.n), share(f.n, r.Jobs))
		}
	}
	facts.Row("preemptions", terminal.Count(r.Preemptions), "")
	facts.Row("utilisation", terminal.Percent(r.Utilisation), "of the slots over "+span(r.Makespan))
	facts.Row("payments", amount(r.Payments), "credits")
	facts.Row("receipts", amount(r.Receipts), "credits, paid to jobs")
	balance := balances[r.Balance]
	if r.Payments == 0 && r.Receipts == 0 {
		balance = "nobody pays"
	}
	facts.Row("revenue", amount(r.Revenue), balance)
	facts.Row("welfare", amount(r.Welfare), "by "+r.Worth)
	facts.Row("surplus", amount(r.Surplus), "welfare less revenue")
	facts.Write(out, style, "  ")
	fmt.Fprintln(out)
}

// balances explains the three cases of a market's budget: payments and receipts are equal, or credits are left, or
// credits are missing.
var balances = map[string]string{
	"balanced": "the budget is balanced: what some pay others get",
	"surplus":  "credits left with the site",
	"deficit":  "credits that the site pays in",
}

func groups(out io.Writer, style terminal.Style, r *measure.Report) {
	if len(r.Groups) < 2 {
		return
	}
	t := terminal.NewTable("~BY " + r.GroupBy + "|>JOBS|>DONE|>WAIT|>RESPONSE|>SLOWDOWN|>SEVERE|>PAID|>RECEIVED|>WELFARE").Spare("SEVERE|SLOWDOWN|RECEIVED")
	for i := range r.Groups[:min(mostGroups, len(r.Groups))] {
		g := &r.Groups[i]
		t.Row(g.Name, terminal.Count(g.Jobs), share(g.Completed, g.Jobs), of(g.Completed, span)(g.Wait.Mean), of(g.Completed, span)(g.Response.Mean),
			of(g.Completed, amount)(g.Slowdown.Mean), share(g.Severe, g.Jobs), amount(g.Payments), amount(g.Receipts), amount(g.Welfare))
	}
	t.Write(out, style, "  ")
	if more := len(r.Groups) - mostGroups; more > 0 {
		fmt.Fprintf(out, "  and %s more; --json lists all\n", terminal.Count(more))
	}
	fmt.Fprintln(out)
}

// This function returns the function `write`. For n = 0 jobs, it returns a function that writes "-".
func of(n int, write func(float64) string) func(float64) string {
	if n == 0 {
		return func(float64) string { return "-" }
	}
	return write
}

func span(seconds float64) string {
	const most = 1e9 // seconds; larger values would overflow
	return terminal.Span(time.Duration(min(seconds, most) * 1e9))
}

func share(n, of int) string {
	if of == 0 {
		return ""
	}
	return terminal.Percent(float64(n) / float64(of))
}

// amount writes a number with four significant digits. Below 1e15 it does not round digits before the decimal point.
func amount(x float64) string {
	switch a := math.Abs(x); {
	case a >= 1e15:
		return strconv.FormatFloat(x, 'g', 4, 64)
	case a >= 1000:
		return terminal.Count(int64(math.Round(x)))
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}
