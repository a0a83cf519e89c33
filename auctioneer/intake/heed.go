package intake

import (
	"fmt"
	"slices"
	"strings"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/messages"
)

// bidFields are the fields of a bid that some mechanisms read and others ignore. Every
// mechanism reads the budget, and estimates and offers of every market read the length.
var bidFields = []struct {
	name    string
	given   func(*messages.JobSpec) bool
	readers []messages.Name
}{
	{"rate", func(s *messages.JobSpec) bool { return s.Rate != 0 }, []messages.Name{messages.HighestBid}},
	{"value", func(s *messages.JobSpec) bool { return s.Value != 0 }, []messages.Name{messages.DeadlineBid, messages.BatchQueue, messages.Reservation}},
	{"delay", func(s *messages.JobSpec) bool { return s.Delay != 0 }, []messages.Name{messages.BatchQueue}},
	{"deadline", func(s *messages.JobSpec) bool { return s.Deadline != 0 }, []messages.Name{messages.DeadlineBid, messages.Reservation}},
	{"valuation", func(s *messages.JobSpec) bool { return s.Valuation != nil }, []messages.Name{messages.ContractMenu}},
	{"contract", func(s *messages.JobSpec) bool { return s.Contract != "" }, []messages.Name{messages.ContractMenu}},
	{"utility", func(s *messages.JobSpec) bool { return s.Utility != nil }, []messages.Name{messages.Proportional}},
}

// needLength are the mechanisms whose bids must have a length.
var needLength = []messages.Name{messages.DeadlineBid, messages.BatchQueue, messages.Reservation}

// Heeds refuses a job that bids with what its market ignores: a user who bids so takes
// the market for another. A job that may go to any site is not asked, since its value
// chooses the site.
func Heeds(spec *messages.JobSpec, m *messages.Market, markets *desk.Markets) error {
	wants := []string{"budget"}
	if slices.Contains(needLength, m.Mechanism) {
		wants = append(wants, "length")
	}
	for _, f := range bidFields {
		if slices.Contains(f.readers, m.Mechanism) {
			wants = append(wants, f.name)
		}
	}
	for _, f := range bidFields {
		if !f.given(spec) || slices.Contains(f.readers, m.Mechanism) {
			continue
		}
		advice := fmt.Sprintf("leave %s out", f.name)
		if others := markets.Running(f.readers); others != "" {
			advice += ", or submit to " + others
		}
		return messages.Errorf(messages.Invalid, "%s: market %s (%s) does not use this field: a bid there has %s; %s",
			f.name, m.Name, m.Mechanism, strings.Join(wants, ", "), advice)
	}
	return nil
}

// Chained says what a job pays that waits for others, where each job pays for the waiting that it
// spares itself; "" where jobs pay otherwise.
func Chained(s *Submission) string {
	if s.Market.Price != messages.PricePivot || len(s.Spec.AfterJobs)+len(s.Spec.AfterOK) == 0 {
		return ""
	}
	return fmt.Sprintf("in market %s each job of a chain pays for the waiting that it spares itself: one job with a script that runs the steps one after the other pays far less than a job for each", s.Market.Name)
}

// Unenforced says which of a job's limits on memory no node, or not every node, that
// could run the tasks enforces.
func Unenforced(b *book.Book, s *Submission) (warnings []string) {
	for i := range s.Spec.Stages {
		stage := &s.Spec.Stages[i]
		if stage.Memory == 0 {
			continue
		}
		all, cannot := 0, 0
		for _, n := range b.Nodes() {
			if !n.Up || !desk.Serves(s.Market, n.Name) || !slices.ContainsFunc(n.Slots, func(c messages.ClassSlots) bool { return c.Class == stage.Class }) {
				continue
			}
			if all++; !slices.Contains(n.Abilities, messages.AbilityMemory) {
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
