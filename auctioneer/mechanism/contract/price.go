package contract

import "math"

// lower finds the lowest competitive prices. It begins with an optimal matching, and with any prices that support this
// matching. The fall of a column is its old price minus its new price. One search for longest paths finds all falls.
// The search goes through the columns in ascending order of their falls.
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

// outbid makes the lowest possible price of column c final. At this price, the row that is matched to column c might
// prefer another column. So outbid raises the lowest possible prices of such columns. Each new price is computed only
// from weights. The old prices only decide in which order the columns are taken. So if all weights are whole numbers,
// all prices are whole numbers too.
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

// Unique reports whether the last computed matching is the only optimal one. If the weights are not whole numbers, two
// sums of weights count as equal if they differ by at most 1e-14 of the largest weight.
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

// Each row of the matrix is matched to a column. The profit of a row from a column is the weight minus the column's
// lowest price. For the row of column c, ties calls the function `visit` with each other column that has the same
// profit, up to the tolerance.
func (s *Solver) ties(c int, tolerance float64, visit func(column int)) {
	row := s.row(int(s.rowOf[c]))
	least := row[c] - s.lowest[c] - tolerance
	for k, w := range row {
		if w-s.lowest[k] >= least && k != c {
			visit(k)
		}
	}
}
