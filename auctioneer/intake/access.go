package intake

import (
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/spelling"
)

// holds returns the market for a job that names no market. It prefers a market that takes the account's jobs and has
// the classes and shapes that the job names. If there is none, it prefers a market that takes the account's jobs. Among
// equally good markets, it chooses the default market of the account or its project, or else the first one in the
// configuration. If no market takes the account's jobs, it returns the site's first market, which then refuses the job.
func (r *Rules) holds(account messages.Name, spec *job.JobSpec) messages.Name {
	best, name := -1, messages.Name("")
	for i := range r.Configs {
		m, rank := &r.Configs[i], 0
		if m.Takes(account, spec.Project) {
			rank = 1
			if hasSlotsFor(spec, m) {
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

// hasSlotsFor reports whether a market has the classes that the stages of a job name, and slots that are large enough
// for the other stages.
func hasSlotsFor(spec *job.JobSpec, m *market.Market) bool {
	return !slices.ContainsFunc(spec.Stages, func(s job.Stage) bool {
		return s.Class == "" && s.Shaped() && smallest(m, &s) == "" || s.Class != "" && !slices.Contains(m.Classes, s.Class)
	})
}

// noClass returns the error for a class that the job's market does not have.
func (r *Rules) noClass(account messages.Name, spec *job.JobSpec, m *market.Market, i int) error {
	class := spec.Stages[i].Class
	return r.elsewhere(account, spec, messages.Errorf(messages.NotFound, "stages[%d].class: market %s has no class %q; its classes are %s", i, m.Name, class, spelling.List(m.Classes)),
		func(o *market.Market) bool { return slices.Contains(o.Classes, class) })
}

// A job needs something that its market does not have. elsewhere adds to the error that another market has it. If other
// markets have it, but none of them takes the job, the error is PermissionDenied.
func (r *Rules) elsewhere(account messages.Name, spec *job.JobSpec, err error, has func(*market.Market) bool) error {
	var shut messages.Name
	for k := range r.Configs {
		switch o := &r.Configs[k]; {
		case !has(o):
		case o.Takes(account, spec.Project):
			return messages.Errorf(messages.KindOf(err), "%s; market %s has what the job needs", messages.Detail(err), o.Name)
		case shut == "":
			shut = o.Name
		}
	}
	if shut == "" {
		return err
	}
	return messages.Errorf(messages.PermissionDenied, "%s; market %s has what the job needs, but takes no jobs of %s", messages.Detail(err), shut, payers(account, spec))
}

// checkAccess returns an error for a job that its market does not take. The error names the markets that take jobs of its
// owner.
func (r *Rules) checkAccess(account messages.Name, spec *job.JobSpec, m *market.Market) error {
	if m.Takes(account, spec.Project) {
		return nil
	}
	var open []messages.Name
	for i := range r.Configs {
		if r.Configs[i].Takes(account, spec.Project) && !r.Configs[i].Closed {
			open = append(open, r.Configs[i].Name)
		}
	}
	advice := "ask an operator for a market that takes such jobs"
	if len(open) > 0 {
		advice = "markets that take jobs of " + payers(account, spec) + ": " + spelling.List(open)
	}
	return messages.Errorf(messages.PermissionDenied, "market: market %s takes no jobs of %s; %s", m.Name, payers(account, spec), advice)
}

// payers returns who pays for a job, for use in a message: the account, and the project if there is one.
func payers(account messages.Name, spec *job.JobSpec) string {
	if spec.Project == "" {
		return account
	}
	return account + " for project " + spec.Project
}
