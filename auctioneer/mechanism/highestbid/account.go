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

// accounts keeps the bills of all running jobs at once: running totals that
// grow with time, of which a job notes where they stood when it began; and
// where the own bid caps the level, the tree. An open bill has a small number.
type accounts struct {
	total bill
	began []bill  // by number; number 0 is not used
	free  []int32 // numbers of bills that were closed
	caps  *tree   // nil: nothing caps the level
}

func newAccounts(r Rule) *accounts {
	c := &accounts{began: make([]bill, 1)}
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

// open begins the bill of a job that starts to run, and returns its number.
func (c *accounts) open(key float64) int32 {
	number := int32(len(c.began))
	if last := len(c.free) - 1; last >= 0 {
		number, c.free = c.free[last], c.free[:last]
	} else {
		c.began = append(c.began, bill{})
	}
	c.began[number] = c.total
	if c.caps != nil {
		c.caps.insert(number, key)
	}
	return number
}

// close ends a bill and returns it. Its number goes to another.
func (c *accounts) close(number int32) bill {
	b := c.total.minus(c.began[number])
	if c.caps != nil {
		b = b.plus(c.caps.remove(number).bill())
	}
	c.free = append(c.free, number)
	return b
}

func (c capped) bill() bill { return bill{own: c.own, level: c.level} }
