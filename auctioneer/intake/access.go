package intake

import (
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/spelling"
)

// holds returns the market for a job that names no market. It prefers a market that takes the account's jobs and has a
// class for each shape that the job asks for. Among such markets it prefers the default market of the account or of its
// project, and otherwise the first. If there is no such market, it returns the first market that takes the account's
// jobs. If no market takes the account's jobs, it returns the site's first market, which then refuses the job.
func (r *Rules) holds(account messages.Name, spec *job.JobSpec) messages.Name {
	best, name := -1, messages.Name("")
	for i := range r.Configs {
		m, rank := &r.Configs[i], 0
		if m.Takes(account, spec.Project) {
			rank = 1
			if !slices.ContainsFunc(spec.Stages, func(s job.Stage) bool { return s.Class == "" && s.Shaped() && smallest(m, &s) == "" }) {
				rank = 3
			}
			if m.DefaultOf(account, spec.Project) {
				rank++
			}
		}
		if rank > best {
			best, name = rank, m.Name
		}
	}
	return name
}

// checkAccess returns an error for a job that its market does not take. The error names the markets that take it.
func (r *Rules) checkAccess(account messages.Name, spec *job.JobSpec, m *market.Market) error {
	if m.Takes(account, spec.Project) {
		return nil
	}
	var open []messages.Name
	for i := range r.Configs {
		if r.Configs[i].Takes(account, spec.Project) {
			open = append(open, r.Configs[i].Name)
		}
	}
	who, advice := account, "ask an operator for a market that takes them"
	if spec.Project != "" {
		who += " for project " + spec.Project
	}
	if len(open) > 0 {
		advice = "these markets do: " + spelling.List(open)
	}
	return messages.Errorf(messages.PermissionDenied, "market: market %s takes no jobs of %s; %s", m.Name, who, advice)
}
