package proportional

import (
	"math"
	"math/bits"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// Contention measures how much accounts compete for a class of slots. All accounts of another site count as one
// account. The level is 0 while there is a slot for every task that could run.
//
// Otherwise the level is a probability: draw two accounts at random; the level is the probability that they differ. An
// account is drawn in proportion to the sum of the powers of its jobs' budgets. Examples:
//
//	one account       0
//	n equal accounts  1 − 1/n
//
// The sums are kept as whole numbers. So a job that has left leaves no rounding error in them.
type Contention struct {
	alpha    float64
	tasks    int
	accounts map[messages.Name]uint64 // by account: sum of the powers of its jobs
	total    uint64
	hi, lo   uint64 // sum of the squares of the accounts' powers, in 128 bits
}

// NewContention returns the contention of a class without jobs. Shares are in proportion to budgets to the power alpha.
func NewContention(alpha float64) *Contention {
	return &Contention{alpha: alpha, accounts: map[messages.Name]uint64{}}
}

// Enter adds a job that has tasks in the class, with the account and the budget of the job.
func (c *Contention) Enter(account messages.Name, budget messages.Credits) {
	c.weigh(account, c.accounts[account]+c.power(budget))
}

// Leave removes a job that entered with the same budget.
func (c *Contention) Leave(account messages.Name, budget messages.Credits) {
	c.weigh(account, c.accounts[account]-c.power(budget))
}

// Count adds to the number of tasks that run or could run in the class.
func (c *Contention) Count(tasks int) { c.tasks += tasks }

// power returns a budget to the power alpha, in units of 2⁻²⁰, rounded to a whole number.
func (c *Contention) power(budget messages.Credits) uint64 {
	const unit, most = 1 << 20, 1 << 44 // the sum of a million jobs with the largest power does not overflow
	return uint64(max(1, min(most, math.Round(math.Pow(budget.Float(), c.alpha)*unit))))
}

// weigh sets the power of an account in the class. Shares are in proportion to powers, which are computed from budgets.
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

// The level of contention has only 20 steps from 0 to 1, because each change of the level must be committed.
const steps = 20

// Level returns the contention if the class has the given number of slots: a multiple of 1/20 in [0, 1].
func (c *Contention) Level(slots int) float64 {
	if c.tasks <= slots || len(c.accounts) < 2 {
		return 0
	}
	total := float64(c.total)
	same := (float64(c.hi)*(1<<64) + float64(c.lo)) / (total * total)
	return math.Round(max(0, 1-same)*steps) / steps
}

// WholeAfter is the slot time after which a job may owe its whole budget. A job with less slot time owes less, in
// proportion. The time is short: otherwise many tiny jobs would pay less than one large job for the same work.
const WholeAfter = messages.Duration(1e9)

// Had has the numbers from which a job's price is computed: the slot time that the job received, and what it lacked.
type Had struct {
	Time      messages.Duration
	Contended messages.Duration // integral of the level of contention over Time
	Lacked    messages.Duration // slot time that the job bought and did not receive; negative if it received more than it bought
	Began     int               // number of tasks that had a slot
}

// The slot time that a job received is compared with the slot time that it bought. In this comparison, each task counts
// for at least 100 ms (`turn`). Otherwise a job whose tasks end at once would seem to have received almost nothing, and
// would pay almost nothing.
const turn = messages.Duration(1e8)

// got returns a number in [0, 1]: the slot time that the job received, divided by the slot time that its budget bought.
func (h Had) got() float64 {
	time := max(float64(h.Time), float64(h.Began)*float64(turn))
	return time / (time + max(0, float64(h.Lacked)))
}

// Owed returns what a job with a budget owes: the budget multiplied by the mean contention during its slot time. A job
// owes less if its slot time was very short, or if it got fewer slots than its bid would have bought. How the job ended
// does not matter. The number of its tasks does not matter either; otherwise tasks that do nothing would make a job
// cheaper.
func (h Had) Owed(budget messages.Credits) messages.Credits {
	if h.Time <= 0 || h.Contended <= 0 {
		return 0
	}
	level := min(1, float64(h.Contended)/float64(h.Time))
	part := min(1, float64(h.Time)/float64(WholeAfter))
	return min(budget, messages.Credits(math.RoundToEven(float64(budget)*part*level*h.got())))
}

// part is the data of one job in one class. The field `pending` says whether the job has pending tasks in this class.
// The fields `budget` and `tasks` are what the job has added to the contention of the class. They are stored because
// the market must subtract exactly the same amounts later.
type part struct {
	budget  messages.Credits
	tasks   int32
	pending bool
}

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
	was.tasks = int32(tasks) // a job has at most job.MaxTasks
}

// tariffs returns the price level of each class, from which jobs are charged for their slot time. In some markets a job
// owes its whole budget on completion; then tariffs returns nil.
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
