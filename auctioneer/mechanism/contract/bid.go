package contract

import "math"

// The solver begins with an auction: rows bid for columns, in phases with smaller and smaller increments. The exact
// search starts from the prices of the auction. If the last increment is smaller, the exact search looks at fewer rows,
// but the auction takes more bids. The search is exact for any start prices. So a phase that takes too long can end
// early.
const (
	firstIncrement   = 1. / 4    // a fraction of the largest weight
	lastIncrement    = 1. / 1000 // a fraction of the largest weight divided by m
	lastIncrementFew = 1. / 10   // a fraction of the largest weight divided by m, if there are few rows
	shrink           = 4
	mostBids         = 5 // maximum number of bids in a phase, for each row
	mostBidsFew      = 2 // maximum number of bids in a phase, for each row, if there are few rows
)

// In the auction, each row bids for the column that gives it the largest gain, its favourite. bid runs the auction. At
// the prices that result, most rows have different favourites.
func (s *Solver) bid() {
	if s.largest == 0 {
		return
	}
	last, bids := lastIncrement, mostBids
	if s.m <= few {
		last, bids = lastIncrementFew, mostBidsFew
	}
	last *= s.largest / float64(s.m)
	for increment := firstIncrement * s.largest; increment > last; increment /= shrink {
		s.phase(increment, bids*s.m)
	}
	// The matching is optimal because certain differences between two prices are not above certain bounds. If the
	// weights are whole numbers, these bounds are whole numbers too. Then the prices can be rounded: the differences
	// are still not above the bounds.
	for c, p := range s.prices {
		if s.integral {
			s.prices[c] = math.Round(p)
		}
	}
	for b := range s.floors {
		s.settleFloor(b)
	}
}

// phase lets each row bid for its favourite column, until every row has a column. A bid raises the column's price. At
// the new price, the column is worse for the row than its second choice, by the increment. If another row had the
// column, this row must bid again. The phase ends early after `left` bids.
func (s *Solver) phase(increment float64, left int) {
	s.unmatch()
	for first := range s.m {
		for row := int32(first); row != none && left > 0; left-- {
			c, best, second := s.favourites(int(row))
			s.raise(c, best-second+increment)
			out := s.rowOf[c]
			s.match(int(row), c)
			row = out
		}
	}
}

func (s *Solver) raise(column int, by float64) {
	lowest := s.prices[column] == s.floors[column>>s.shift]
	s.prices[column] += by
	if lowest {
		s.settleFloor(column >> s.shift)
	}
}

func (s *Solver) unmatch() {
	for i := range s.m {
		s.rowOf[i], s.colOf[i] = none, none
	}
}

// favourites returns the column that a row prefers at the present prices. What a row gains from a column is its weight
// for this column minus the column's price. The results `best` and `second` are the two largest gains.
func (s *Solver) favourites(row int) (column int, best, second float64) {
	best, second = math.Inf(-1), math.Inf(-1)
	peaks := s.peaksOf(row)
	last := int(s.block[row]) // probably the best block again: if it is searched first, most other blocks can be skipped
	column, best, second = s.betterIn(row, last, column, best, second)
	for b, floor := range s.floors {
		if peaks[b]-floor > second && b != last {
			column, best, second = s.betterIn(row, b, column, best, second)
		}
	}
	s.block[row] = int32(column >> s.shift)
	if math.IsInf(second, -1) { // there is only one column
		second = best
	}
	return column, best, second
}

// better looks for columns that are worth more to a row than the columns before. The arguments `best` and `second` are
// the two largest values so far. The entries weights[0] and prices[0] belong to the column with the number `from`.
func better(weights, prices []float64, from, column int, best, second float64) (int, float64, float64) {
	weights = weights[:len(prices)]
	for t, p := range prices {
		if x := weights[t] - p; x > second {
			if x > best {
				best, second, column = x, best, from+t
			} else {
				second = x
			}
		}
	}
	return column, best, second
}

// betterIn calls the function `better` for the columns of one block.
func (s *Solver) betterIn(row, block, column int, best, second float64) (int, float64, float64) {
	from, to := s.columnsOf(block)
	return better(s.weights[row*s.m+from:], s.prices[from:to], from, column, best, second)
}

// A row's favourite is the column that is worth most to it at the present prices. keepTight gives each row its
// favourite column, unless an earlier row has it.
func (s *Solver) keepTight() {
	s.unmatch()
	for row := range s.m {
		if c, _, _ := s.favourites(row); s.rowOf[c] == none {
			s.match(row, c)
		}
	}
}
