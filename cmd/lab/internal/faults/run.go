package faults

import (
	"strings"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// Outcome is the result of a run with one seed.
type Outcome struct {
	Seed      uint64
	Steps     uint64            // number of events that happened
	Span      messages.Duration // simulated time
	Faults    map[string]int    // number of faults by kind
	Applied   int               // number of committed entries; each was checked
	Jobs      int               // number of jobs that were entered at all sites
	Visits    int               // how many of these jobs belong to users of other sites
	Alone     int               // how many of these jobs ended and were charged while their site was cut off
	Moved     uint64            // number of answered instructions between banks
	Steered   [6]int            // numbers of jobs: released, with a raised budget, requeued, partly cancelled, run again, ended by their budgets
	Violation error             // nil means none
}

// Invariant returns the number of the violated invariant, such as "5", or "".
func (o *Outcome) Invariant() string {
	if o.Violation == nil {
		return ""
	}
	_, after, _ := strings.Cut(o.Violation.Error(), "invariant ")
	number, _, _ := strings.Cut(after, ":")
	return number
}

// Run runs a plan with a seed. It ends at a violation, or when all faults are over, every job has ended and all books
// agree.
func Run(p *Plan, seed uint64, bug Bug) Outcome { return run(p, p.draw(seed), seed, bug, nil) }

func run(p *Plan, events []Event, seed uint64, bug Bug, told *story) Outcome {
	w := newWorld(p, events, seed, bug)
	w.story = told
	out := Outcome{Seed: seed, Faults: map[string]int{}}
	calm := epoch.Add(p.Duration + 40*second) // at this time, everything is submitted
	for _, e := range events {
		out.Faults[e.Kind]++
		w.strike(e)
		calm = max(calm, epoch.Add(e.At+e.For))
	}
	w.run(calm)
	out.Steps, out.Span, out.Violation = w.steps, w.now.Sub(epoch), w.failed
	for _, s := range w.sites {
		out.Applied += len(s.books.history) + len(s.banks.history)
		out.Alone += s.seen.alone
		for _, j := range jobs(s.books.reference.(*bookState).Book) {
			out.Jobs++
			if j.Visit != nil {
				out.Visits++
			}
			for k, did := range []bool{j.Released != 0 && len(j.Spec.Predecessors()) == 0, j.Changes > 0, j.Stages[0].Requeued > 0, j.CancelledTasks() > 0, j.Spec.RerunOf != 0, j.Reason == mechanism.BudgetSpent} {
				if did {
					out.Steered[k]++
				}
			}
		}
		for _, p := range s.clearing().Peers().Peers {
			out.Moved += p.Sent.Number
		}
	}
	return out
}

// patience returns how long the sites may take to recover: the constant with the same name, plus the largest difference
// between two clocks of a site.
func (w *World) patience() messages.Duration {
	most := messages.Duration(0)
	for _, s := range w.sites {
		most = max(most, s.apart())
	}
	return patience + most
}

// run handles events until all sites have recovered. At the time `calm`, all jobs are submitted and all faults have
// ended. The sites must recover within a limited time after that, or the run fails.
func (w *World) run(calm messages.Time) {
	for _, s := range w.sites {
		w.queue.Push(calm.Add(5*second), func() { s.closeCycle(lastCycle) })
	}
	for w.failed == nil {
		before := w.now
		w.now = max(w.now, w.queue.Next())
		w.steps++
		w.queue.Pop()()
		if before/1e6 == w.now/1e6 {
			continue
		}
		w.look()
		switch err := w.healed(); {
		case err == nil && w.now >= calm:
			for _, s := range w.sites {
				s.books.same()
				s.banks.same()
			}
			return
		case err != nil && w.now > calm.Add(w.patience()):
			w.violate("%v after %v without faults", err, w.patience())
		}
	}
}
