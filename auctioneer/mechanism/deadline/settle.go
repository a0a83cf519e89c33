package deadline

import (
	"fmt"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/spelling"
)

// SettleAt returns when a job is settled: at its deadline, because all its competitors are known only then. An earlier
// price would be too low, and would reward jobs that overstate their value to finish early. A job is settled at once if
// it certainly owes nothing, because it was not served or because no job lacked slots during its time.
func (m *Mechanism) SettleAt(_ messages.Time, job *mechanism.Job, end mechanism.End) messages.Time {
	served := m.served(job.Bid, end.Completed, job.Received)
	if served {
		m.past.served[job.Job] = true
		m.past.skipped(m.units.unitOf(end.At-1)+1, m.past.lastSlots())
	}
	if !served || m.past.unmet(job.Job) {
		return 0
	}
	return job.Deadline
}

// served reports whether a job must pay. A job must pay if it was complete for prices by its deadline, that is, its
// program or its owner had ended an attempt. In a market that does not settle on completion, a job must also pay if it
// had all its declared units. In this case it does not matter how the job ended.
func (m *Mechanism) served(bid *mechanism.Bid, completed messages.Time, received messages.Duration) bool {
	return completed != 0 && completed <= bid.Deadline || m.config.Settle != marketmsg.SettleOnCompletion && m.units.full(bid, received)
}

// full reports whether a job had all the units of time that it declared. If the program started in the middle of a
// unit, the job counts as having had the whole unit.
func (c calendar) full(bid *mechanism.Bid, received messages.Duration) bool {
	_, had := c.had(bid, received)
	return had >= c.taskOf(bid).Length
}

// Settle charges a job its critical value in two cases. First, the job was complete by its deadline. For prices, a job
// is complete when its program or its owner has ended an attempt of it. The exit code and later attempts do not matter,
// because the owner controls them. Second, the job has had all the units that it declared, even if the market discards
// it at its deadline. In all other cases the job owes nothing. Amounts are rounded half to even, to a microcredit.
func (m *Mechanism) Settle(view *mechanism.View, job *mechanism.Job, end mechanism.End) []mechanism.Payment {
	p := mechanism.Payment{From: job.Job}
	switch served := m.served(job.Bid, end.Completed, job.Received); {
	case served && m.past.unmet(job.Job):
		p.Reason = "nobody was without a slot while the job competed, so any value would have been enough"
	case served:
		if len(m.past.slots) == 0 { // the new leader has made no decision yet, but the job had a slot
			m.past.note(m.units.unitOf(view.Now), max(1, view.Classes[0].Slots))
		}
		p.Amount = m.owed(job)
		p.Reason = fmt.Sprintf("%s: the smallest value that would have been enough (the job's value is %v)", how(job.Bid, end), job.Value)
	default:
		switch p.Reason = "the job never had a slot"; {
		case end.Completed != 0:
			p.Reason = "the job ended after its deadline, without the time that it had declared"
		case m.config.Settle == marketmsg.SettleOnCompletion:
			p.Reason = "the job was not completed"
		case job.Received > 0:
			p.Reason = "the market took the slots away before the job had its time, and such a job owes nothing"
		}
		m.past.withdrawn(job.Job)
	}
	return []mechanism.Payment{p}
}

func how(bid *mechanism.Bid, end mechanism.End) string {
	switch {
	case end.Completed == 0 || end.Completed > bid.Deadline:
		return "it had the time it declared by its deadline"
	case end.State == job.Completed:
		return "completed by its deadline"
	}
	return "had slots until its owner's program or its owner ended it"
}

func (m *Mechanism) owed(job *mechanism.Job) messages.Credits {
	amount, ok := messages.RoundCredits(m.past.critical(m, job.Job))
	if !ok {
		return 0
	}
	return min(amount, job.Value, job.Budget)
}

// Explain says why a job has a slot or not. It also says which value of the job would change this, and what the job
// would owe if nothing changed. If only one other account competes, it leaves out both amounts, because they would
// disclose the other account's bid.
func (m *Mechanism) Explain(view *mechanism.View, job *mechanism.Job) mechanism.Explanation {
	s := m.seats[job.Job]
	switch {
	case s == nil || !m.ranking.decided || s.rank < 0 && !s.hopeless(m.ranking.unit):
		unit := m.units.unitOf(view.Now) + 1
		return mechanism.Explanation{Reason: "WaitingForUnit",
			Message: fmt.Sprintf("slots are given in units of %v; the job competes from the unit that starts at %v", m.config.Slot, m.units.starts(unit))}
	case s.hopeless(m.ranking.unit):
		return mechanism.Explanation{Reason: "CannotMakeDeadline",
			Message: fmt.Sprintf("the job still needs %s of %v, and the number of units left before its deadline is %d", spelling.Number(s.needs(), "unit", "units"), m.config.Slot, max(0, s.left(m.ranking.unit))),
			Change:  []string{"a later deadline, in a new submission"}}
	case s.holds:
		return m.explainHolder(s, !mechanism.OneRival(view, job))
	default:
		return m.explainOutranked(s, !mechanism.OneRival(view, job))
	}
}

func (m *Mechanism) explainHolder(s *seat, tells bool) mechanism.Explanation {
	e := mechanism.Explanation{Reason: "HoldsSlot", Message: fmt.Sprintf("the job has rank %d of %d for %d slots, and %d of its %d units are done", s.rank+1, len(m.ranking.seats), m.ranking.slots, s.done, s.task.Length)}
	if tells {
		e.Message += fmt.Sprintf("; a value above %s would be enough in this unit of time, and the price so far is %s", m.ranking.enough(s).Words(), m.owed(s.job).Words())
	}
	return e
}

func (m *Mechanism) explainOutranked(s *seat, tells bool) mechanism.Explanation {
	e := mechanism.Explanation{Reason: "Outranked", Message: fmt.Sprintf("the job has rank %d of %d for %d slots, %d of its %d units are done, and it can wait %d units more",
		s.rank+1, len(m.ranking.seats), m.ranking.slots, s.done, s.task.Length, s.left(m.ranking.unit)-s.needs())}
	switch {
	case m.ranking.slots < s.task.slots():
	case !tells:
		e.Change = append(e.Change, "a higher value")
	default:
		e.Change = append(e.Change, fmt.Sprintf("a value above %s would have been enough in this unit", m.ranking.enough(s).Words()))
	}
	e.Change = append(e.Change, "a later deadline, in a new submission: then the job can wait longer")
	return e
}
