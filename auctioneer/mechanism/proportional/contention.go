package proportional

import (
	"math"
	"math/bits"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// Contention says how much accounts compete for a class of slots; all accounts of another site are one. The level is 0
// while there is a slot for every task that could run. Else it is the chance that
// two draws, each of an account in proportion to the powers of its jobs' budgets,
// fall on different accounts: 0 with one account, 1 − 1/n with n equal ones. A job
// with next to no budget raises the level by next to nothing.
//
// Sums are whole numbers, so that jobs that come and go leave nothing behind.
type Contention struct {
	alpha    float64
	tasks    int
	accounts map[messages.Name]uint64 // sum of its jobs' powers
	total    uint64
	hi, lo   uint64 // sum of the squares of the accounts' powers
}

// NewContention returns the contention of a class without jobs, in a market whose
// shares are in proportion to budgets to the power alpha.
func NewContention(alpha float64) *Contention {
	return &Contention{alpha: alpha, accounts: map[messages.Name]uint64{}}
}

// Enter adds a job that comes to have tasks in the class.
func (c *Contention) Enter(account messages.Name, budget messages.Credits) {
	c.weigh(account, c.accounts[account]+c.power(budget))
}

// Leave takes a job out that entered with the same budget.
func (c *Contention) Leave(account messages.Name, budget messages.Credits) {
	c.weigh(account, c.accounts[account]-c.power(budget))
}

// Count adds to the number of tasks that run in the class or could.
func (c *Contention) Count(tasks int) { c.tasks += tasks }

// power is a budget's, in units of 2⁻²⁰ of a credit's.
func (c *Contention) power(budget messages.Credits) uint64 {
	const unit, most = 1 << 20, 1 << 44 // a million jobs of the largest power can be added up
	return uint64(max(1, min(most, math.Round(math.Pow(budget.Float(), c.alpha)*unit))))
}

// weigh gives an account another power.
func (c *Contention) weigh(account messages.Name, to uint64) {
	was := c.accounts[account]
	c.total += to - was
	var borrow, carry uint64
	hi, lo := bits.Mul64(was, was)
	c.lo, borrow = bits.Sub64(c.lo, lo, 0)
	c.hi, _ = bits.Sub64(c.hi, hi, borrow)
	hi, lo = bits.Mul64(to, to)
	c.lo, carry = bits.Add64(c.lo, lo, 0)
	c.hi, _ = bits.Add64(c.hi, hi, carry)
	if c.accounts[account] = to; to == 0 {
		delete(c.accounts, account)
	}
}

// steps is how finely levels are told apart: each change of a level is committed.
const steps = 20

// Level is the contention for a number of slots, in [0, 1], a multiple of 1/20.
func (c *Contention) Level(slots int) float64 {
	if c.tasks <= slots || len(c.accounts) < 2 {
		return 0
	}
	total := float64(c.total)
	same := (float64(c.hi)*(1<<64) + float64(c.lo)) / (total * total)
	return math.Round(max(0, 1-same)*steps) / steps
}

// WholeAfter is the slot time after which a job owes for its whole budget: a job that
// had less owes less, in proportion. It is short, since jobs of less owe less for the same work.
const WholeAfter = messages.Duration(1e9)

// Had is what a job had of its slots.
type Had struct {
	Time      messages.Duration
	Contended messages.Duration // Time, each moment times the level of contention
	Lacked    messages.Duration // slot time that it bought beyond Time; below 0: none
	Began     int               // tasks that had a slot
}

// turn is how long a task that had a slot counts at least, where what a job had is compared with
// what it bought. Tasks that end at once have many turns, and what they had is next to nothing.
const turn = messages.Duration(1e8)

// got is the part of the slot time it bought that a job had, in [0, 1].
func (h Had) got() float64 {
	time := max(float64(h.Time), float64(h.Began)*float64(turn))
	return time / (time + max(0, float64(h.Lacked)))
}

// Owed is what a job with a budget owes for what it had: the budget times the mean
// contention in its slot time, and less if it had little, or less than it bought. How the job ended makes no
// difference, nor of how many tasks it is: tasks that do nothing would make all of them cheap.
func (h Had) Owed(budget messages.Credits) messages.Credits {
	if h.Time <= 0 || h.Contended <= 0 {
		return 0
	}
	level := min(1, float64(h.Contended)/float64(h.Time))
	part := min(1, float64(h.Time)/float64(WholeAfter))
	return min(budget, messages.Credits(math.RoundToEven(float64(budget)*part*level*h.got())))
}

// part is what a seat has in a class: whether work is pending there, and what it has added
// to the contention.
type part struct {
	budget  messages.Credits
	tasks   int32
	pending bool
}

// join brings the contention of a class in line with so many tasks of a seat's job there.
func (c *Mechanism) join(s *seat, j, tasks int) {
	level, was := c.contention[j], &s.parts[j]
	level.Count(tasks - int(was.tasks))
	switch {
	case was.tasks == 0 && tasks > 0:
		was.budget = s.job.Budget
		level.Enter(messages.Participant(s.job.Account), was.budget)
	case was.tasks > 0 && tasks == 0:
		level.Leave(messages.Participant(s.job.Account), was.budget)
	}
	was.tasks = int32(tasks) // a job has at most messages.MaxTasks
}

// tariffs are the levels of contention, by class; nil where jobs owe their budgets on
// completion.
func (c *Mechanism) tariffs(view *mechanism.View) []mechanism.Tariff {
	if c.contention == nil {
		return nil
	}
	out := make([]mechanism.Tariff, len(c.contention))
	for j, level := range c.contention {
		rate, _ := messages.RoundCredits(level.Level(view.Classes[j].Slots))
		out[j] = mechanism.Tariff{Basis: mechanism.Contention, Rate: rate}
	}
	return out
}
