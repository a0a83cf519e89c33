package contract

import "math"

// lower finds the lowest competitive prices. It begins with an optimal matching and any prices that support the
// matching, and makes one search for longest paths. It visits the columns in the order in which their prices fall: the
// column with the smallest fall first.
func (s *Solver) lower() {
	low, done := s.lowest, s.path.done
	clear(low)
	clear(done)
	for range s.m {
		c, least := none, math.Inf(1)
		for k, p := range s.prices {
			if d := p - low[k]; d < least && !done[k] {
				c, least = k, d
			}
		}
		done[c] = true
		s.outbid(c)
	}
}

// outbid makes the lowest possible price of column c final. At this price, the bidder of c's row might prefer another
// column, so outbid raises the prices of such columns. Each new price is a sum of weights: the old prices only
// determine the order of the columns. If all weights are whole numbers, all prices are whole numbers too.
func (s *Solver) outbid(c int) {
	row := s.row(int(s.rowOf[c]))
	low, done := s.lowest[:len(row)], s.path.done[:len(row)]
	base := low[c] - row[c]
	for k, w := range row {
		if x := w + base; x > low[k] && !done[k] {
			low[k] = x
		}
	}
}

// Unique reports whether the matching that was computed last is the only optimal one. Sums of weights that are not
// whole numbers count as equal if they differ by at most 1e-14 of the largest weight.
func (s *Solver) Unique() bool {
	if s.m == 0 {
		return true
	}
	tolerance := 0.
	if !s.integral {
		tolerance = 1e-14 * s.largest
	}
	// A row likes two columns equally if its weight minus the price is equal for both. Draw an arrow from each column
	// to the other columns that the column's row likes equally. Another optimal matching exists if and only if some
	// arrows form a circle. There is no circle if and only if the columns can be ordered so that all arrows point
	// forwards.
	likes := s.path.visited[:s.m] // by column: number of arrows to it from columns that are not in order yet
	ready := make([]int, 0, s.m)
	clear(likes)
	for c := range s.m {
		s.ties(c, tolerance, func(k int) { likes[k]++ })
	}
	for c, n := range likes {
		if n == 0 {
			ready = append(ready, c)
		}
	}
	for i := 0; i < len(ready); i++ {
		s.ties(ready[i], tolerance, func(k int) {
			if likes[k]--; likes[k] == 0 {
				ready = append(ready, k)
			}
		})
	}
	return len(ready) == s.m
}

// ties compares columns for the row that is matched to column c, at the lowest prices. It calls visit for each other
// column that is worth as much to this row as column c: its weight minus its price is the same, up to the tolerance.
func (s *Solver) ties(c int, tolerance float64, visit func(column int)) {
	row := s.row(int(s.rowOf[c]))
	least := row[c] - s.lowest[c] - tolerance
	for k, w := range row {
		if w-s.lowest[k] >= least && k != c {
			visit(k)
		}
	}
}
