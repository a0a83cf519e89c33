package proportional

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/spelling"
)

// The reasons that Explain gives, in addition to the reasons of package mechanism.
const (
	WaitingForShare = "WaitingForShare" // the job waits for its turn at a slot
	SLONotAdmitted  = "SLONotAdmitted"  // if the job were served, its minimum utility or another job's could not be met
)

// Explain says how the job stood at the last decision, and what a larger budget would change.
func (c *Mechanism) Explain(view *mechanism.View, job *mechanism.Job) mechanism.Explanation {
	i, known := c.find(job.Job)
	if !known {
		return mechanism.Explain(WaitingForShare, "the market has not decided about this job yet")
	}
	e := c.explain(view, c.seats[i], job)
	if c.contention != nil && job.Received > 0 {
		part := 100 * min(1, float64(contended(job.Accrued))/float64(job.Received))
		had := Had{Time: job.Received, Lacked: job.Lacked, Began: job.Done + mechanism.Sum(job.Running)}
		if part == 0 {
			e.Message += "; the job owes nothing so far, because no other account waited for its slots"
		} else {
			e.Message += fmt.Sprintf("; the job owes %s%% of its budget so far: other accounts waited during %s%% of the time in which the job had slots, and the job had %s%% of the slot time of its share", twoDigits(part*had.got()), twoDigits(part), twoDigits(100*had.got()))
		}
	}
	return e
}

// twoDigits writes a percentage with its first two digits, such as 0.021, 4.5 or 100, without an exponent.
func twoDigits(x float64) string {
	switch {
	case x > 0 && x < 0.01:
		return "less than 0.01"
	case x < 10:
		return strconv.FormatFloat(x, 'g', 2, 64)
	}
	return strconv.FormatFloat(x, 'f', 0, 64)
}

func (c *Mechanism) explain(view *mechanism.View, s *seat, job *mechanism.Job) mechanism.Explanation {
	running, slots := 0, 0
	for j, n := range job.Running {
		running += n
		if s.parts[j].pending {
			slots += view.Classes[j].Slots
		}
	}
	switch {
	case running > 0 && !s.bids:
		return mechanism.Explain(mechanism.Running, mechanism.AtWork(running, 0), c.doubling(s)...)
	case running > 0:
		return mechanism.Explain(mechanism.Running, c.describe(view, s), c.doubling(s)...)
	case !s.bids:
		return mechanism.ExplainStage()
	case slots == 0:
		return mechanism.ExplainSlots(c.names(s))
	case s.rejected:
		return mechanism.Explain(SLONotAdmitted, "with this job in the pool, this job or another job would not reach its minimum utility",
			"a larger budget: jobs are admitted in the order of their budgets",
			fmt.Sprintf("a minimum utility below %.4g", job.MinUtility), "other jobs with a minimum utility ending")
	default:
		busy, due := c.busy(view, s)
		if len(busy) == 0 {
			return mechanism.Explain(WaitingForShare, c.describe(view, s), c.doubling(s)...)
		}
		change := []string{"the end of a running task: no bid ends it"}
		if !due {
			change = append(change, c.doubling(s)...)
		}
		return mechanism.Explain(WaitingForShare, c.describe(view, s)+"; running tasks have all slots of "+spelling.List(busy), change...)
	}
}

// busy returns the classes in which the job has tasks to start, if all slots of these classes are in use. If one of
// these slots is free, it returns nil. The result `due` is true if the job's share of one of the classes is at least a
// whole slot. Then a slot comes to the job soon, with any bid.
func (c *Mechanism) busy(view *mechanism.View, s *seat) (classes []string, due bool) {
	for j := range s.parts {
		if !s.parts[j].pending {
			continue
		}
		if view.Classes[j].Idle > 0 {
			return nil, false
		}
		classes = append(classes, view.Classes[j].Name)
		due = due || s.shares()[j]*c.scale[j]*float64(view.Classes[j].Slots) >= 1
	}
	return classes, due
}

// describe describes a job's shares, and what the job spends on them.
func (c *Mechanism) describe(view *mechanism.View, s *seat) string {
	var parts []string
	for j := range s.parts {
		pending := s.parts[j].pending
		if pending {
			parts = append(parts, fmt.Sprintf("%.3g%% of the %s of %s%s", 100*s.shares()[j]*c.scale[j], spelling.Number(view.Classes[j].Slots, "slot", "slots"), view.Classes[j].Name, rivals(c.pending[j]-1, s.spends()[j])))
		}
	}
	return "its share is " + strings.Join(parts, ", and ")
}

// rivals returns a clause for an explanation. The clause says what this job bids for a class, and how many other jobs
// want slots of the class.
func rivals(n int, bid float64) string {
	if n <= 0 {
		return ", which no other job wants"
	}
	amount, _ := messages.RoundCredits(bid) // no error: the bid is a part of a budget
	return fmt.Sprintf(", because it bids %s against %s", coarse(amount, 10_000).Words(), spelling.Number(n, "other job, whose bid can be computed from these numbers", "other jobs"))
}

// doubling returns a sentence for each class. It says how much more budget would about double the job's share s, if the
// other bids did not change. It uses that s/(1−s) is proportional to the sub-budget to the power alpha.
func (c *Mechanism) doubling(s *seat) (change []string) {
	alpha := c.market.problem.Alpha
	if alpha == 0 {
		return []string{"fewer jobs: in this market every job has the same share, whatever its budget"}
	}
	for j, scaled := range s.shares() {
		share := scaled * c.scale[j]
		if !s.parts[j].pending || s.spends()[j] == 0 || share >= 0.5 {
			continue
		}
		factor := math.Pow(2*(1-share)/(1-2*share), 1/alpha)
		more, ok := messages.RoundCredits(s.job.Budget.Float() * (factor - 1))
		if !ok {
			continue
		}
		change = append(change, fmt.Sprintf("a budget higher by %s would about double the job's share of %s", coarse(more, 1000).Words(), c.classes[j]))
	}
	return change
}

// coarse rounds an amount to its first digits. More digits would look more precise than the amount is. The result
// without its last zeros is at most `bound`: with the bound 100, 1234 becomes 1200.
func coarse(x, bound messages.Credits) messages.Credits {
	unit := messages.Credits(1)
	for x/unit >= bound {
		unit *= 10
	}
	return (x + unit/2) / unit * unit
}

// names returns the names of the classes in which a job has pending tasks.
func (c *Mechanism) names(s *seat) string {
	var names []string
	for j := range s.parts {
		pending := s.parts[j].pending
		if pending {
			names = append(names, c.classes[j])
		}
	}
	return strings.Join(names, " or ")
}
