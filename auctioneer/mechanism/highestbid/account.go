package highestbid

import "github.com/candor-grid/candor/auctioneer/mechanism"

// adder is a number to keep running sums in: double for what comes as float64,
// wide for the microcredits and microseconds of a live market.
type adder[A any] interface {
	comparable
	plus(A) A
	minus(A) A
}

// bill is what a time of running comes to, in three parts: the time at the own
// bid, the time at the reserve, and the integral of the level over the rest.
// The amount is own·bid + reserve·(the reserve) + level·length.
type bill[A adder[A]] struct{ own, reserve, level A }

func (b bill[A]) plus(c bill[A]) bill[A] {
	return bill[A]{b.own.plus(c.own), b.reserve.plus(c.reserve), b.level.plus(c.level)}
}

func (b bill[A]) minus(c bill[A]) bill[A] {
	return bill[A]{b.own.minus(c.own), b.reserve.minus(c.reserve), b.level.minus(c.level)}
}

// accounts keeps the bills of all running jobs at once: running totals that
// grow with time, of which a job notes where they stood when it began; and
// where the own bid caps the level, the tree. An open bill has a small number.
type accounts[A adder[A]] struct {
	total bill[A]
	began []bill[A] // by number; number 0 is not used
	free  []int32   // numbers of bills that were closed
	caps  *tree[A]  // nil: nothing caps the level
}

func newAccounts[A adder[A]](r Rule) *accounts[A] {
	c := &accounts[A]{began: make([]bill[A], 1)}
	if r.capsLevel() {
		c.caps = &tree[A]{}
	}
	return c
}

// pass lets time go by at a tariff. key is the level, for comparison with
// what jobs bid; integral is the level times the time.
func (c *accounts[A]) pass(basis mechanism.Basis, key float64, time, integral A) {
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
func (c *accounts[A]) open(key float64) int32 {
	number := int32(len(c.began))
	if last := len(c.free) - 1; last >= 0 {
		number, c.free = c.free[last], c.free[:last]
	} else {
		c.began = append(c.began, bill[A]{})
	}
	c.began[number] = c.total
	if c.caps != nil {
		c.caps.insert(number, key)
	}
	return number
}

// read returns an open bill as of now.
func (c *accounts[A]) read(number int32) bill[A] {
	b := c.total.minus(c.began[number])
	if c.caps != nil {
		b = b.plus(c.caps.read(number).bill())
	}
	return b
}

// close ends a bill and returns it. Its number goes to another.
func (c *accounts[A]) close(number int32) bill[A] {
	b := c.total.minus(c.began[number])
	if c.caps != nil {
		b = b.plus(c.caps.remove(number).bill())
	}
	c.free = append(c.free, number)
	return b
}

func (c capped[A]) bill() bill[A] { return bill[A]{own: c.own, level: c.level} }
