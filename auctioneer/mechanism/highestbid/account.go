package highestbid

import "github.com/candor-grid/candor/auctioneer/mechanism"

// bill is what a time of running comes to, in three parts: the time at the own
// bid, the time at the reserve, and the integral of the level over the rest.
// The amount is own·bid + reserve·(the reserve) + level·length.
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

// accounts keeps the bills of all jobs that have run and have not ended: running totals
// that grow with time, of which a job notes where they stood when it began; and where
// the own bid caps the level, the tree. An open bill has a small number.
type accounts struct {
	total bill
	bills []account // by number; number 0 is not used
	free  []int32   // numbers of bills that were closed
	caps  *tree     // nil: nothing caps the level
}

// account is the bill of a job.
type account struct {
	began bill // the totals when the job last began to run, or its tasks changed
	until bill // what it came to until then
}

func newAccounts(r Rule) *accounts {
	c := &accounts{bills: make([]account, 1)}
	if r.capsLevel() {
		c.caps = &tree{}
	}
	return c
}

// pass lets time go by at a tariff. key is the level, for comparison with
// what jobs bid; integral is the level times the time.
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

// open returns the number of a new bill.
func (c *accounts) open() (number int32) {
	if last := len(c.free) - 1; last >= 0 {
		number, c.free = c.free[last], c.free[:last]
		c.bills[number] = account{}
		return number
	}
	c.bills = append(c.bills, account{})
	return int32(len(c.bills) - 1)
}

// begin has time count for a bill, from now on.
func (c *accounts) begin(number int32, key float64) {
	c.bills[number].began = c.total
	if c.caps != nil {
		c.caps.insert(number, key)
	}
}

// pause has the time since begin count for so many nodes, and no more time.
func (c *accounts) pause(number int32, nodes int) {
	a := &c.bills[number]
	b := c.total.minus(a.began)
	if c.caps != nil {
		b = b.plus(c.caps.remove(number).bill())
	}
	a.until = a.until.plus(b.times(nodes))
}

// close returns what a bill comes to. Its number goes to another.
func (c *accounts) close(number int32) bill {
	c.free = append(c.free, number)
	return c.bills[number].until
}

func (c capped) bill() bill { return bill{own: c.own, level: c.level} }
