package intake

import (
	"fmt"
	"slices"
	"strings"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// bidFields are the fields of a bid that only some mechanisms read. Every mechanism reads the budget, and every
// market's estimates read the length.
var bidFields = []struct {
	name  string
	given func(*job.JobSpec) bool
}{
	{"rate", func(s *job.JobSpec) bool { return s.Rate != 0 }},
	{"value", func(s *job.JobSpec) bool { return s.Value != 0 }},
	{"delay", func(s *job.JobSpec) bool { return s.Delay != 0 }},
	{"deadline", func(s *job.JobSpec) bool { return s.Deadline != 0 }},
	{"valuation", func(s *job.JobSpec) bool { return s.Valuation != nil }},
	{"contract", func(s *job.JobSpec) bool { return s.Contract != "" }},
	{"utility", func(s *job.JobSpec) bool { return s.Utility != nil }},
}

// Heeds returns an error for a bid with fields that its market ignores, because its user probably meant another market.
// A job that may go to any site is not checked: its value is used to choose the site, even if the market does not use
// it.
func Heeds(spec *job.JobSpec, m *market.Market, markets *desk.Markets) error {
	traits := registry.Of(m)
	for _, f := range bidFields {
		if !f.given(spec) || traits.Reads(f.name) {
			continue
		}
		advice := fmt.Sprintf("leave %s out", f.name)
		if others := markets.Running(func(t *mechanism.Traits) bool { return t.Reads(f.name) }); others != "" {
			advice += ", or submit to " + others
		}
		return messages.Errorf(messages.Invalid, "%s: market %s (%s) does not use this field: a bid there has %s; %s",
			f.name, m.Name, m.Mechanism, strings.Join(traits.Bid, ", "), advice)
	}
	return nil
}

// Chained returns a warning if the job waits for other jobs and its market has pivot prices. At these prices, each job
// of a chain pays for its own place in the order. In all other cases it returns "".
func Chained(s *Submission) string {
	if s.Market.Price != market.PricePivot || len(s.Spec.Predecessors()) == 0 {
		return ""
	}
	return fmt.Sprintf("in market %s each job of a chain pays for its own place in the order: submit one job with a stage for each step, and name the previous stage in `after`; such a job pays only once and far less", s.Market.Name)
}

// Unenforced warns about each memory limit of the job that some of the possible nodes do not enforce.
func Unenforced(b *book.Book, s *Submission) (warnings []string) {
	for i := range s.Spec.Stages {
		stage := &s.Spec.Stages[i]
		if i >= len(s.bounds) || !s.bounds[i] { // the user did not set this limit; it is the memory of the slots
			continue
		}
		all, cannot := 0, 0
		for _, n := range b.Nodes() {
			if !n.Up || !desk.Serves(s.Market, n.Name) || !slices.ContainsFunc(n.Slots, func(c job.ClassSlots) bool { return c.Class == stage.Class }) {
				continue
			}
			if all++; !slices.Contains(n.Abilities, agent.AbilityMemory) {
				cannot++
			}
		}
		switch {
		case cannot == 0:
		case cannot == all:
			warnings = append(warnings, fmt.Sprintf("stages[%d].memory: no node with slots of class %s can bound the memory of a task: the limit is not enforced", i, stage.Class))
		default:
			warnings = append(warnings, fmt.Sprintf("stages[%d].memory: %d of the %d nodes with slots of class %s cannot bound the memory of a task: the limit is not enforced there", i, cannot, all, stage.Class))
		}
	}
	return warnings
}
