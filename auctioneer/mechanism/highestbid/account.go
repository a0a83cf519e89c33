package highestbid

import "github.com/candor-grid/candor/auctioneer/mechanism"

// bill has the three parts of what a job owes for running. `own` is the time that is billed at the job's own bid, and
// `reserve` is the time that is billed at the reserve price. The job is billed at the level for all other time, and
// `level` is the integral of the level over this time. The amount is own·bid + reserve·(the reserve price) +
// level·length.
type bill struct{ own, reserve, level double }

func (b bill) plus(c bill) bill {
	return bill{b.own.plus(c.own), b.reserve.plus(c.reserve), b.level.plus(c.level)}
}

func (b bill) minus(c bill) bill {
	return bill{b.own.minus(c.own), b.reserve.minus(c.reserve), b.level.minus(c.level)}
}

func (b bill) times(n int) bill {
	if n == 1 {
		return b
	}
	x := float64(n)
	return bill{b.own.times(x), b.reserve.times(x), b.level.times(x)}
}

// accounts keeps the bills of all jobs that have run and have not ended. The field `total` grows with time: a job that
// ran since the beginning would owe it. A bill notes the total when its job begins to run. At any time, the job owes
// the difference between the present total and the noted one. The market's price is called the level. A job's own bid
// can cap the level for this job. For such jobs, the field `caps` computes the part that depends on the level. Each
// open bill has a small number.
type accounts struct {
	total bill
	bills []account // by number of the bill; number 0 is not used
	free  []int32   // numbers of closed bills, to be used again
	caps  *tree     // nil if nothing caps the level
}

// account has the state of a job's bill.
type account struct {
	began bill // the totals when the job last began to run, or when its number of tasks changed
	until bill // the amount up to that time
}

func newAccounts(r Rule) *accounts {
	c := &accounts{bills: make([]account, 1)}
	if r.capsLevel() {
		c.caps = &tree{}
	}
	return c
}

// pass adds a period in which the tariff did not change. If the tariff is a price level, `key` is this level, in the
// unit of the keys of the jobs. `integral` is the level multiplied by the length of the period, and `time` is the
// length.
func (c *accounts) pass(basis mechanism.Basis, key float64, time, integral double) {
	switch {
	case basis == mechanism.OwnBid:
		c.total.own = c.total.own.plus(time)
	case basis == mechanism.AtReserve:
		c.total.reserve = c.total.reserve.plus(time)
	case c.caps != nil:
		c.caps.pass(key, time, integral)
	default:
		c.total.level = c.total.level.plus(integral)
	}
}

func (c *accounts) open() (number int32) {
	if last := len(c.free) - 1; last >= 0 {
		number, c.free = c.free[last], c.free[:last]
		c.bills[number] = account{}
		return number
	}
	c.bills = append(c.bills, account{})
	return int32(len(c.bills) - 1)
}

// begin starts to count time for a bill. The bill is charged for the time from now until the method pause is called.
func (c *accounts) begin(number int32, key float64) {
	c.bills[number].began = c.total
	if c.caps != nil {
		c.caps.insert(number, key)
	}
}

// pause is called when a job stops running. It computes the cost of one node since the job began to run, multiplies it
// by the number of nodes, and adds the result to the job's bill.
func (c *accounts) pause(number int32, nodes int) {
	a := &c.bills[number]
	b := c.total.minus(a.began)
	if c.caps != nil {
		b = b.plus(c.caps.remove(number).bill())
	}
	a.until = a.until.plus(b.times(nodes))
}

// close closes a bill and returns it. Its number may then be given to another bill.
func (c *accounts) close(number int32) bill {
	c.free = append(c.free, number)
	return c.bills[number].until
}

func (c capped) bill() bill { return bill{own: c.own, level: c.level} }
