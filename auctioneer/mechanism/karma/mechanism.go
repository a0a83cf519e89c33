package karma

import (
	"fmt"
	"time"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/posted"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// Mechanism runs a live market by karma.
type Mechanism struct {
	*posted.Desk
	ledgers []*Ledger // by class
	changed bool      // karma has changed since notes were last saved
}

// Describe returns the traits of the mechanism.
func Describe(*market.Market) mechanism.Traits {
	t := posted.Traits(market.Karma, "accounts by karma, earned by giving up slots and spent by using more than an equal share; nobody can buy it", "alpha", "slot")
	t.Make, t.Solve, t.Wide, t.Assembles = mechanism.Maker(New), SolveDocument, true, true
	return t
}

// New makes the mechanism of a valid market.
func New(m market.Market) (*Mechanism, error) {
	if m.Slot != 0 && m.Slot < messages.Duration(time.Second) {
		return nil, messages.Errorf(messages.Invalid, "slot: must be at least 1s, is %v", m.Slot)
	}
	alpha := 0.5
	if m.Alpha != nil {
		alpha = *m.Alpha
	}
	k := &Mechanism{Desk: posted.NewDesk(m)}
	for range m.Classes {
		k.ledgers = append(k.ledgers, NewLedger(alpha, m.Slot))
	}
	return k, nil
}

var _ mechanism.Remembering = (*Mechanism)(nil)

// Allocate ends each quantum (decision period) that is over, and decides how many slots each account gets in the next
// one. It gives weight to the accounts that hold fewer slots than the decision gave them.
func (k *Mechanism) Allocate(view *mechanism.View) *mechanism.Allocation {
	a := k.Allocation(view)
	for j, l := range k.ledgers {
		k.changed = l.Pass(view.Now) || k.changed
		l.Slots = view.Classes[j].Slots
		k.divide(view, j, a)
		if len(view.Jobs) > 0 {
			a.Wake = messages.Earlier(a.Wake, l.since.Add(l.Quantum))
		}
	}
	return a
}

func (k *Mechanism) divide(view *mechanism.View, j int, a *mechanism.Allocation) {
	l := k.ledgers[j]
	for _, m := range l.Members {
		m.Demand, m.Held = 0, 0
	}
	of := make([]*Member, len(view.Jobs))
	jobs := map[messages.Name]float64{} // by account: number of jobs with pending tasks
	names := map[*Member]float64{}      // by member: number of accounts with pending tasks; another site may have many
	for i, job := range view.Jobs {
		of[i] = l.Join(messages.Participant(job.Account), view.Now)
		of[i].Held += job.Running[j]
		of[i].Demand += job.Running[j] + job.Pending[j]
		if job.Pending[j] > 0 {
			if jobs[job.Account]++; jobs[job.Account] == 1 {
				names[of[i]]++
			}
		}
	}
	l.Share()
	lacks := l.lacks(func(m *Member) bool { return names[m] > 0 })
	for i, job := range view.Jobs {
		if job.Pending[j] > 0 {
			a.Weights[i][j] = lacks[of[i]] / names[of[i]] / jobs[job.Account]
		}
	}
}

// lacks returns the part of the freed slots that each waiting member gets. The parts sum to one. A member should have
// Given slots and has Held slots; the difference is what it lacks. The parts are in proportion to this difference. If
// no member lacks slots, the waiting members with the most karma get equal parts.
func (l *Ledger) lacks(waits func(m *Member) bool) map[*Member]float64 {
	out, sum, richest := map[*Member]float64{}, 0.0, int64(-most-1)
	for _, m := range l.Members {
		if waits(m) {
			out[m] = max(0, float64(m.Given-m.Held))
			sum += out[m]
			richest = max(richest, m.Karma)
		}
	}
	if sum == 0 {
		for m := range out { // members are independent, so the order does not matter
			if m.Karma == richest {
				out[m] = 1
				sum++
			}
		}
	}
	for m := range out {
		out[m] /= max(1, sum)
	}
	return out
}

// Explain says how much karma the job's account has.
func (k *Mechanism) Explain(view *mechanism.View, job *mechanism.Job) mechanism.Explanation {
	rule, ahead := "the market has not decided about this job yet", 0
	for j, l := range k.ledgers {
		if job.Pending[j] == 0 {
			continue
		}
		mine := l.find(messages.Participant(job.Account))
		if mine == nil {
			continue
		}
		rule = fmt.Sprintf("%s is given %d of %d slots of %s, holds %d, and has %d karma, where the mean is %d", mine.Name, mine.Given, l.Slots, k.Classes[j], mine.Held,
			mine.Karma/One, l.mean()/One)
		for _, other := range view.Jobs {
			if m := l.find(messages.Participant(other.Account)); mine.Given <= mine.Held && m != nil && other.Pending[j] > 0 && m.Given > m.Held {
				ahead++
			}
		}
	}
	return k.Desk.Explain(view, job, ahead, rule)
}

func (l *Ledger) find(name messages.Name) *Member {
	for _, m := range l.Members {
		if m.Name == name {
			return m
		}
	}
	return nil
}
