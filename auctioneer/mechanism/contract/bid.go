package contract

import "math"

// Prices to start from are found by an auction with increments that shrink:
// the smaller the last, the fewer rows the exact search must look at, and the
// more bids it takes. Whatever the prices, the search after it is exact; so a
// phase that takes long, as some contrived weights make it, is broken off.
const (
	firstIncrement   = 1. / 4    // of the largest weight
	lastIncrement    = 1. / 1000 // of the largest weight, divided by m
	lastIncrementFew = 1. / 10   // of the largest weight, divided by m, if rows are few
	shrink           = 4
	mostBids         = 5 // in a phase, for each row
	mostBidsFew      = 2 // in a phase, for each row, if rows are few
)

// bid finds prices at which the rows' favourites are spread over the columns.
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
	// Prices that are optimal for whole weights are so when rounded: they obey
	// inequalities between differences of two prices and whole numbers.
	for c, p := range s.prices {
		if s.integral {
			s.prices[c] = math.Round(p)
		}
	}
	for b := range s.floors {
		s.settleFloor(b)
	}
}

// phase lets each row bid for the column it likes best, until all have one:
// the price rises to where its second choice would do as well, and by the
// increment; who had the column must bid again. It is broken off after so many
// bids.
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

// unmatch frees all rows and columns.
func (s *Solver) unmatch() {
	for i := range s.m {
		s.rowOf[i], s.colOf[i] = none, none
	}
}

// favourites returns the column a row likes best at the prices, and how much
// it and the next best are worth to the row after their price.
func (s *Solver) favourites(row int) (column int, best, second float64) {
	best, second = math.Inf(-1), math.Inf(-1)
	peaks := s.peaksOf(row)
	last := int(s.block[row]) // likely again: looking there first excludes most others
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

// better looks for columns, numbered from the one given, that a row likes better than
// the best and the second best known.
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

// betterIn looks for columns that a row likes better in a block.
func (s *Solver) betterIn(row, block, column int, best, second float64) (int, float64, float64) {
	from, to := s.columnsOf(block)
	return better(s.weights[row*s.m+from:], s.prices[from:to], from, column, best, second)
}

// keepTight matches the rows whose favourite column nobody else has taken.
func (s *Solver) keepTight() {
	s.unmatch()
	for row := range s.m {
		if c, _, _ := s.favourites(row); s.rowOf[c] == none {
			s.match(row, c)
		}
	}
}
