package contract

import "math"

// lower finds the lowest competitive prices from an optimal matching and any
// prices that support it: one search for longest paths, in the order of the
// distance below those prices.
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

// outbid raises the prices of other columns to what the row of column c, whose
// price is known, would give for them rather than what it has. Sums are of
// weights alone, not of the prices that gave the order: whole weights have
// whole prices.
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

// Unique reports whether the matching found last is the only optimal one. Weights
// that are not whole numbers count as equal if they are within 1e-14 of the
// largest.
func (s *Solver) Unique() bool {
	if s.m == 0 {
		return true
	}
	tolerance := 0.
	if !s.integral {
		tolerance = 1e-14 * s.largest
	}
	// Were it not, some rows would like each other's columns as well as their
	// own, in a circle. There is none if and only if the columns can be put in an
	// order that all such liking follows.
	likes := s.path.visited[:s.m] // by column: rows that like it and were not put in order
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

// ties visits the other columns that the row of column c likes as well at the
// lowest prices.
func (s *Solver) ties(c int, tolerance float64, visit func(column int)) {
	row := s.row(int(s.rowOf[c]))
	least := row[c] - s.lowest[c] - tolerance
	for k, w := range row {
		if w-s.lowest[k] >= least && k != c {
			visit(k)
		}
	}
}
