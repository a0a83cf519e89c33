package intake

import (
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/spelling"
)

// checkLicenses returns an error for licences that the site never has enough of. If a market promises start times, it
// returns an error for all licences, because a licence may not be free at the promised time.
func checkLicenses(site job.Licenses, spec *job.JobSpec, m *market.Market) error {
	for i := range spec.Stages {
		s := &spec.Stages[i]
		if t := registry.Of(m); len(s.Licenses) > 0 && t.FixesTimes() {
			return messages.Errorf(messages.Invalid, "stages[%d].licenses: market %s (%s) promises times, and the licences may not be free then; use a market of %s", i, m.Name, m.Mechanism,
				spelling.List(registry.Names(func(t *mechanism.Traits) bool { return !t.FixesTimes() })))
		}
		for _, of := range s.Licenses {
			has, needs, who := site.Of(of.Name), of.Count, "a task takes"
			if s.Gang && !s.Allocation {
				needs, who = of.Count*s.TaskCount(), "the tasks of the gang together take"
			}
			switch {
			case has == 0 && len(site) == 0:
				return messages.Errorf(messages.Invalid, "stages[%d].licenses: the site has no licences; leave %s out", i, of.Name)
			case has == 0:
				return messages.Errorf(messages.Invalid, "stages[%d].licenses: the site has no licence %s; it has %s", i, of.Name, spelling.List(site.Names()))
			case needs > has:
				return messages.Errorf(messages.TooLarge, "stages[%d].licenses: %s %d of licence %s, and the site has %d; ask for less", i, who, needs, of.Name, has)
			}
		}
	}
	return nil
}
