package accounts

import (
	"slices"
	"strings"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/money"
)

func selectors(o *statementOptions) (out []job.LabelSelector, err error) {
	for _, text := range o.labels {
		selector, err := job.ParseLabelSelector(text)
		if err != nil {
			return nil, cli.Usagef("--label: %s", messages.Detail(err))
		}
		out = append(out, selector)
	}
	if o.byLabel != "" && job.CheckLabel(o.byLabel, "") != nil {
		return nil, cli.Usagef("--by-label %q: is not the name of a label: use at most 63 letters, digits, '-', '_' or '.'", o.byLabel)
	}
	return out, nil
}

// labelsOf returns the labels of the job that an entry charged. A hold has no labels, because held credits are no cost.
func labelsOf(e money.Entry) job.Labels {
	if e.Job == 0 || e.Change == 0 {
		return nil
	}
	return job.LabelsOf(e.Reason)
}

// labelCosts is the cost of an account's jobs, summed by the value of one label.
type labelCosts struct {
	Account messages.Name    `json:"account"`
	Label   string           `json:"label"`
	Values  []labelCost      `json:"values"`
	Without messages.Credits `json:"without"` // cost of jobs without the label
	More    bool             `json:"more"`    // the site has older entries, which are not counted
}

type labelCost struct {
	Value string           `json:"value"`
	Jobs  int              `json:"jobs"`
	Cost  messages.Credits `json:"cost"`
}

// byLabel adds up the costs of the jobs in a statement for each value of a label. The value with the highest cost comes
// first.
func byLabel(r money.StatementReply, name string) labelCosts {
	out := labelCosts{Account: r.Account, Label: name, Values: []labelCost{}, More: r.More}
	jobs := map[string]map[messages.JobID]bool{}
	cost := map[string]messages.Credits{}
	for _, e := range r.Entries {
		value, has := labelsOf(e).Get(name)
		switch {
		case e.Job == 0:
		case !has:
			out.Without -= e.Change
		default:
			if jobs[value] == nil {
				jobs[value] = map[messages.JobID]bool{}
			}
			jobs[value][e.Job] = true
			cost[value] -= e.Change
		}
	}
	for value := range jobs {
		out.Values = append(out.Values, labelCost{value, len(jobs[value]), cost[value]})
	}
	slices.SortFunc(out.Values, func(a, b labelCost) int {
		if a.Cost != b.Cost {
			return int(max(-1, min(1, b.Cost-a.Cost)))
		}
		return strings.Compare(a.Value, b.Value)
	})
	return out
}

func writeCosts(p *cli.Page, c labelCosts) {
	p.Printf("%s  cost of jobs by label %s\n", p.Bold("Account "+c.Account), c.Label)
	if len(c.Values) == 0 {
		p.Printf("  No job with label %s was charged.\n", c.Label)
	} else {
		t := terminal.NewTable("~" + strings.ToUpper(c.Label) + "|>JOBS|>COST")
		for _, v := range c.Values {
			t.Row(v.Value, terminal.Count(v.Jobs), v.Cost.String())
		}
		p.Table(t, "  ")
	}
	if c.Without != 0 {
		p.Printf("Jobs without label %s cost %s\n", c.Label, cli.Credits(c.Without))
	}
	writeOlder(p, c.More)
}

func writeLabelled(p *cli.Page, r money.StatementReply, labels []string, facts map[messages.JobID]jobFacts) {
	p.Printf("%s  jobs with label %s\n", p.Bold("Account "+r.Account), terminal.Safe(strings.Join(labels, ", ")))
	if !entries(p, r.Entries, facts) {
		return
	}
	var moved messages.Credits
	for _, e := range r.Entries {
		moved += e.Change
	}
	p.Printf("%s %s\n", p.Bold("Together"), cli.Credits(-moved))
	writeOlder(p, r.More)
}
