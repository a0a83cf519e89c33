package contract

import "math"

// In the first step of reduce, each column goes to the row with its largest weight. If the weights of a column's
// surrogate are similar for all replicas (rows), a few rows get most columns, and an auction must spread the other
// columns over the other rows. With random weights, 37 % of the rows get no column. If more than half of the rows (the
// constant crowded) get no column, the auction is used.
const crowded = 1. / 2 // a fraction of the rows

// reduce finds start prices and a matching of most rows, with a method of Jonker and Volgenant (1987). First each
// column goes to the row with its largest weight, and this weight is the column's price. Then each row without a column
// takes its favourite column. It raises the price of this column so far that the row's second choice is equally good.
// reduce returns false if too many rows have no column after the first step.
func (s *Solver) reduce() bool {
	s.unmatch()
	free := s.m - s.giveColumns()
	if float64(free) > crowded*float64(s.m) {
		clear(s.prices)
		return false
	}
	for row, c := range s.colOf {
		if c != none {
			s.outbidAs(row)
		}
	}
	for row, c := range s.colOf {
		if c == none {
			s.displace(row)
		}
	}
	for b := range s.floors {
		s.settleFloor(b)
	}
	return true
}

// giveColumns sets each column's price to its largest weight. If the row that has this weight has no column yet,
// giveColumns matches the column to this row. It returns the number of matched columns.
func (s *Solver) giveColumns() (matched int) {
	owner := s.path.before // the slice has no other use yet
	clear(owner)
	copy(s.prices, s.row(0))
	for i := 1; i < s.m; i++ {
		for c, w := range s.row(i) {
			if w > s.prices[c] {
				s.prices[c], owner[c] = w, int32(i)
			}
		}
	}
	for c, row := range owner {
		if s.colOf[row] == none {
			s.match(int(row), c)
			matched++
		}
	}
	return matched
}

// outbidAs raises the price of the row's favourite column until the row's second choice is equally good. It returns
// this column, and whether the price changed.
func (s *Solver) outbidAs(row int) (column int, more bool) {
	column, best, second := better(s.row(row), s.prices, 0, 0, math.Inf(-1), math.Inf(-1))
	if s.m > 1 { // with a single column there is no second choice
		s.prices[column] += best - second
	}
	return column, best > second
}

// displace lets a row take its favourite column. If another row had this column, that row takes its own favourite
// column, and so on. displace stops when a row takes a free column, when a price does not change, or after m rows.
func (s *Solver) displace(row int) {
	for range s.m {
		c, more := s.outbidAs(row)
		out := s.rowOf[c]
		if out != none {
			s.colOf[out] = none
		}
		s.match(row, c)
		if out == none || !more {
			return
		}
		row = int(out)
	}
}
