package simulate

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/deploy/simulated/audit"
	"github.com/candor-grid/candor/messages"
)

type strategicDocument struct {
	Trace   string               `json:"trace"`
	Nodes   int                  `json:"nodes"`
	Jobs    int                  `json:"jobs"`
	Seed    uint64               `json:"seed"`
	Worth   string               `json:"worth"`
	Markets []*audit.Equilibrium `json:"markets"`
	Notes   []string             `json:"notes"`
}

const (
	mostPasses  = 1000
	mostPlayers = 5 // number of users in the tables of largest gains and most frequent lies
)

// strategic runs each market with users who lie when a lie pays.
func (o *options) strategic(show *Progress) (*strategicDocument, error) {
	defer show.End()
	show.Step("reading " + o.Trace)
	files := o.compared
	if len(files) == 0 {
		files = []string{o.Market}
	}
	problems, err := o.problems(files)
	if err != nil {
		return nil, err
	}
	work := problems[0].Work
	d := &strategicDocument{Trace: o.Trace, Nodes: work.Nodes, Jobs: len(work.Jobs), Seed: o.Seed, Worth: o.worth, Notes: slices.Clone(work.Notes)}
	for m, p := range problems {
		show.Step(fmt.Sprintf("%s, %s", p.Market.Name, terminal.Plural(len(p.Work.Users), "user")))
		own, err := o.drawn(p, problems[0].Market.Bids, 0)
		if err != nil {
			return nil, err
		}
		e, err := audit.Play(own, o.passes, show.At)
		if err != nil {
			return nil, messages.Errorf(messages.KindOf(err), "%s: %s", files[m], messages.Detail(err))
		}
		d.Markets = append(d.Markets, e)
	}
	return d, nil
}

func writeStrategic(out io.Writer, style terminal.Style, d *strategicDocument) {
	fmt.Fprintf(out, "%s: %s, %s, seed %d\n", style.Bold(d.Trace), terminal.Plural(d.Jobs, "job"), terminal.Plural(d.Nodes, "slot"), d.Seed)
	fmt.Fprintf(out, "Every user tells the truth or one lie about all its jobs. The users choose again\nuntil no user would gain more than %s of its jobs' value. Welfare (worth by\n%s) and revenue are fractions of the value of all jobs. The first number is\nfor users who all tell the truth; the number after → is for users at rest.\n\n",
		terminal.Percent(audit.Least), d.Worth)
	t := terminal.NewTable("~MARKET|>WELFARE|>REVENUE|>LIARS|>GAIN|>LOSE|REST")
	for _, e := range d.Markets {
		rest := fmt.Sprintf("pass %d", e.Passes)
		if !e.Rest {
			rest = "no"
		}
		t.Row(e.Market, amount3(e.Honest.Welfare)+" → "+amount3(e.Resting.Welfare), amount3(e.Honest.Revenue)+" → "+amount3(e.Resting.Revenue),
			fmt.Sprintf("%d of %d", e.Liars, len(e.Users)), fmt.Sprint(e.Gainers), fmt.Sprint(e.Losers), rest)
	}
	t.Write(out, style, "  ")
	for _, e := range d.Markets {
		fmt.Fprintf(out, "\n%s\n", style.Bold(e.Market))
		names, users := e.Lies()
		t := terminal.NewTable("LIE|>USERS")
		for _, name := range names[:min(mostPlayers, len(names))] {
			t.Row(name, fmt.Sprint(users[name]))
		}
		t.Write(out, style, "  ")
		if n := len(names) - mostPlayers; n > 0 {
			fmt.Fprintf(out, "  and %s; --json lists all\n", terminal.Plural(n, "more lie"))
		}
		fmt.Fprintln(out)
		t = terminal.NewTable("USER|>JOBS|~LIE|>PAYOFF, ALL TRUE|>AT REST|>GAIN")
		for _, p := range mostMoved(e.Users) {
			t.Row(fmt.Sprint(p.User), terminal.Count(p.Jobs), p.Lie, amount3(p.Honest), amount3(p.Rest), amount3(p.Rest-p.Honest))
		}
		t.Write(out, style, "  ")
	}
	fmt.Fprintln(out)
	for _, note := range d.Notes {
		fmt.Fprintf(out, "note: %s\n", terminal.Safe(note))
	}
	for _, e := range d.Markets {
		for _, note := range e.Notes {
			fmt.Fprintf(out, "note: %s: %s\n", e.Market, terminal.Safe(note))
		}
	}
}

// mostMoved returns the users who gain most and the users who lose most.
func mostMoved(users []audit.Player) []audit.Player {
	by := slices.Clone(users)
	slices.SortStableFunc(by, func(a, b audit.Player) int { return cmp.Compare(b.Rest-b.Honest, a.Rest-a.Honest) })
	if len(by) > 2*mostPlayers {
		by = slices.Concat(by[:mostPlayers], by[len(by)-mostPlayers:])
	}
	return by
}

func (o *options) checkStrategic() error {
	switch {
	case o.passes < 1 || o.passes > mostPasses:
		return messages.Errorf(messages.Invalid, "--passes: must be from 1 to %d, is %d", mostPasses, o.passes)
	case o.AllActors:
		return messages.Errorf(messages.Invalid, "--actors: --strategic needs thousands of runs, and with all actors they take too long; leave out --actors or --strategic")
	case o.events != "":
		return messages.Errorf(messages.Invalid, "--events: --strategic has no events; leave out --events")
	case len(o.compared) == 0 && o.Market == "":
		return messages.Errorf(messages.Invalid, "--market: name the market, or several with --compare")
	}
	return nil
}
