package highestbid

import (
	"fmt"
	"math"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/spelling"
)

// These are the reasons that Explain gives, in addition to the reasons of package mechanism.
const (
	Outbid         = "Outbid"         // jobs with higher bids have all slots
	WaitingForNode = "WaitingForNode" // no node that is up has the job's class, or all nodes on which it could run are full
)

// Explain says whether a job had slots after the last decision, and what bid would get it slots. Before the first
// decision, it explains the decision that the market would make now.
func (c *Mechanism) Explain(view *mechanism.View, job *mechanism.Job) mechanism.Explanation {
	r := c.roster
	if r == nil {
		r = c.newRoster(len(view.Classes))
		r.update(view, view.Jobs, nil)
	}
	if r.exhausted(job) {
		return mechanism.ExplainBudget(job)
	}
	r.decide(view)
	defer r.undo()
	at, known := r.number[job.Job]
	if !known {
		return mechanism.Explain(Outbid, "the market has not decided about this job yet")
	}
	e := mechanism.ExplainStage()
	for _, s := range r.classes {
		b := &s.auction.bidders[at]
		switch {
		case b.running > 0:
			return s.runs(view, job, b)
		case b.waiting > 0:
			e = s.waits(view, job, at)
		}
	}
	return e
}

func (s *standing) runs(view *mechanism.View, job *mechanism.Job, b *bidder) mechanism.Explanation {
	class := view.Classes[s.class]
	price := s.rule.PriceOf(s.tariff(), s.reserve, job.Rate, job.Length)
	e := mechanism.Explain(mechanism.Running, fmt.Sprintf("with its bid of %s the job has %s of %s; the price is %s an hour now, and the job owes %v credits so far",
		messages.Price(job.Rate).Words(), spelling.Number(int(b.running), "slot", "slots"), class.Name, messages.Short3(3600*price), job.Accrued))
	if b.waiting > 0 {
		e.Message += "; " + spelling.Number(int(b.waiting/b.width), "more of its tasks waits", "more of its tasks wait")
		e.Change = append(e.Change, s.enough(view, job)...)
	}
	return e
}

func (s *standing) waits(view *mechanism.View, job *mechanism.Job, at int32) mechanism.Explanation {
	class := view.Classes[s.class]
	if class.Slots == 0 {
		return mechanism.Explain(WaitingForNode, fmt.Sprintf("no node that is up has a slot of %s", class.Name), fmt.Sprintf("a node with slots of %s that is up", class.Name))
	}
	b := &s.auction.bidders[at]
	switch width := int(b.width); {
	case b.aside && job.Gang():
		e := mechanism.Explain(WaitingForNode, fmt.Sprintf("its tasks start together, and take %d slots of %s; not so many slots that suit them are free or run tasks with lower bids", width, class.Name),
			fmt.Sprintf("%d free slots of %s for all its tasks at once", width, class.Name))
		e.Change = append(e.Change, s.enough(view, job)...)
		return e
	case b.aside && width > 1 && (b.free() > 0 || nowhere(job, s.class) > 0):
		e := mechanism.Explain(WaitingForNode, fmt.Sprintf("a task takes %d slots of %s on one node, and no node has enough slots that are free or run tasks with lower bids", width, class.Name),
			fmt.Sprintf("%d free slots of %s on one node", width, class.Name))
		e.Change = append(e.Change, s.enough(view, job)...)
		return e
	case b.aside:
		return mechanism.Explain(WaitingForNode, "its tasks are suspended on nodes where other jobs have all slots of "+class.Name+"; they can only continue there",
			"a free slot of "+class.Name+" on a node that keeps a task of it")
	}
	ahead, taken := 0, 0
	for i := range s.seats {
		if b := &s.auction.bidders[i]; b.waiting > 0 && !b.aside && int32(i) != at && s.auction.better(int32(i), at) {
			ahead, taken = ahead+int(b.waiting/b.width), taken+int(b.waiting)
		}
	}
	e := mechanism.Explain(Outbid, fmt.Sprintf("other jobs use all slots of %s, and %s", class.Name, before(ahead)),
		fmt.Sprintf("%s of %s", spelling.Number(taken+int(b.width), "free slot", "free slots"), class.Name))
	e.Change = append(e.Change, s.enough(view, job)...)
	return e
}

// The function `before` returns a text for a waiting job. It says how many other waiting tasks get slots earlier, which
// is the number `ahead`.
func before(ahead int) string {
	if ahead == 0 {
		return "this job is the next"
	}
	return spelling.Number(ahead, "task with a higher or an equal earlier bid waits", "tasks with a higher or an equal earlier bid wait") + " before this job"
}

// The method enough returns a text for the owner of a job. The text says how high a bid must be for a slot. With
// preemption, this is a slot now; without it, this is the next free slot. In two cases, the text has no number. In the
// first case, the number could disclose the bid of the only other account. In the second case, the job needs several
// slots on one node, so the number depends on where other tasks run. If no other job competes, the result is nil.
func (s *standing) enough(view *mechanism.View, job *mechanism.Job) []string {
	others, gets := &s.auction.waiting, "would win the next free slot"
	if s.auction.preempt {
		others, gets = &s.auction.running, "would win a slot now"
	}
	if others.empty() || s.seats[others.first()].job.Job == job.Job {
		return nil
	}
	if mechanism.OneRival(view, job) || job.Width > 1 {
		return []string{"a higher bid " + gets}
	}
	other := others.first()
	const rounding = 1 + 1e-12 // the key is a quotient, and may be a little too small
	equal := s.auction.bidders[other].key * float64(s.rule.microseconds(job.Length)) * rounding
	least := messages.Credits(math.Floor(equal)) + 1 // bids are whole microcredits
	return []string{fmt.Sprintf("a bid of %s or more %s", messages.Price(least).Words(), gets)}
}
