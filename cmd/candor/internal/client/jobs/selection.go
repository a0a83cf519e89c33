package jobs

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages/job"
)

// selection has the flags that select jobs. A job must match all of them.
type selection struct {
	states, labels        []string
	name, market, project string
	since, until          string
}

func (w *selection) flags(a *cli.App, cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&w.states, "state", nil, "only jobs in one of these `states`: "+strings.Join(states, ", "))
	f.StringVar(&w.name, "name", "", "only jobs of this `name`; * stands for any text, ? for any character")
	f.StringVar(&w.market, "market", "", "only jobs of this `market`")
	f.StringSliceVar(&w.labels, "label", nil, "only jobs with this label `K=V`, or K with any value; may be repeated")
	f.StringVar(&w.project, "project", "", "only jobs that this `account` pays for")
	f.StringVar(&w.since, "since", "", "only jobs that waited, ran or ended after this `time`: 2026-01-31, 2026-01-31T12:00, or how long ago, like 2d")
	f.StringVar(&w.until, "until", "", "only jobs that were submitted before this `time`")
	cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(states, cobra.ShellCompDirectiveNoFileComp))
	cmd.RegisterFlagCompletionFunc("market", a.CompleteMarkets())
	cmd.RegisterFlagCompletionFunc("project", a.CompleteAccounts())
}

var states = func() (names []string) {
	for s := job.Waiting; s <= job.Discarded; s++ {
		names = append(names, s.String())
	}
	return names
}()

func (w *selection) none() bool {
	return len(w.states) == 0 && len(w.labels) == 0 && w.name == "" && w.market == "" && w.project == "" && w.since == "" && w.until == ""
}

func (w *selection) fill(a *cli.App, r *job.JobsRequest) (err error) {
	for _, text := range w.states {
		i := slices.IndexFunc(states, func(name string) bool { return strings.EqualFold(name, strings.TrimSpace(text)) })
		if i < 0 {
			return cli.Usagef("--state %q: the states are %s", text, strings.Join(states, ", "))
		}
		r.States = append(r.States, states[i])
	}
	r.Name, r.Market, r.Project, r.Labels = w.name, w.market, w.project, w.labels
	if r.Since, err = a.Instant("--since", w.since); err != nil {
		return err
	}
	r.Until, err = a.Instant("--until", w.until)
	return err
}
