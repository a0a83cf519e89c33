package contract

import (
	"math"
	"slices"
)

// path is a search for the shortest path from a free row to a free column. On a path, rows move to other columns. The
// length of a path is what these rows lose in total, at the present prices.
type path struct {
	lengths []float64 // by column: length of the shortest path found to it so far
	nearest []float64 // by block: the shortest length among its columns that are not done
	done    []bool    // by column: its length is final, and its row was searched
	before  []int32   // by column: the row before it on the path
	visited []int32   // columns that are done, in order
	raised  []bool    // by block: the prices of its done columns are raised
	goal    int       // the nearest free column found so far
	reach   float64   // length of the path to goal; only shorter paths matter
}

func (q *path) resize(m, blocks int) {
	q.lengths, q.nearest = resize(q.lengths, m), resize(q.nearest, blocks)
	q.done, q.before = resize(q.done, m), resize(q.before, m)
	q.visited, q.raised = slices.Grow(q.visited[:0], m), resize(q.raised, blocks)
}

func (q *path) reset() {
	for c := range q.lengths {
		q.lengths[c] = math.Inf(1)
	}
	for b := range q.nearest {
		q.nearest[b] = math.Inf(1)
	}
	clear(q.done)
	clear(q.raised)
	q.visited, q.goal, q.reach = q.visited[:0], none, math.Inf(1)
}

// augment matches a free row, and moves other rows to other columns along a shortest path. It raises prices, so that
// each matched row still prefers its own column at the new prices.
func (s *Solver) augment(row int) {
	q := &s.path
	q.reset()
	_, best, _ := s.favourites(row)
	s.relax(row, -best)
	for {
		c, length := s.closest()
		if length >= q.reach {
			break
		}
		s.finish(c)
		next := int(s.rowOf[c])
		s.relax(next, s.prices[c]-s.weights[next*s.m+c]-length)
	}
	for _, c := range q.visited {
		s.prices[c] += q.reach - q.lengths[c]
		q.raised[c>>s.shift] = true
	}
	for b, raised := range q.raised {
		if raised {
			s.settleFloor(b)
		}
	}
	s.flip(row)
}

// The solver searches for the shortest path from a free row to each column. relax checks whether the paths through the
// given row are shorter than the paths found so far. The length of the path through this row to column c is price −
// weight − base.
func (s *Solver) relax(row int, base float64) {
	q := &s.path
	peaks := s.peaksOf(row)
	for b, floor := range s.floors {
		if floor-peaks[b]-base >= q.reach {
			continue
		}
		from, to := s.columnsOf(b)
		prices := s.prices[from:to]
		weights := s.weights[row*s.m+from:][:len(prices)]
		lengths, done := q.lengths[from:][:len(prices)], q.done[from:][:len(prices)]
		for t, p := range prices {
			x := p - weights[t] - base
			if x >= q.reach || x >= lengths[t] || done[t] {
				continue
			}
			lengths[t] = x
			q.before[from+t] = int32(row)
			q.nearest[b] = min(q.nearest[b], x)
			if s.rowOf[from+t] == none {
				q.goal, q.reach = from+t, x
			}
		}
	}
}

// closest returns the column with the shortest path among the columns whose paths are not final yet. It also returns
// the length of this path.
func (s *Solver) closest() (column int, length float64) {
	q := &s.path
	block, length := 0, math.Inf(1)
	for b, x := range q.nearest {
		if x < length {
			block, length = b, x
		}
	}
	from, to := s.columnsOf(block)
	for c := from; c < to; c++ {
		if q.lengths[c] == length && !q.done[c] {
			return c, length
		}
	}
	return q.goal, math.Inf(1) // each column whose path is not final is at least as far as the goal
}

// finish makes the length of the path to a column final. It then continues the search from the row to which the column
// belongs.
func (s *Solver) finish(column int) {
	q := &s.path
	q.done[column] = true
	q.visited = append(q.visited, int32(column))
	block := column >> s.shift
	from, to := s.columnsOf(block)
	least := math.Inf(1)
	for c := from; c < to; c++ {
		if !q.done[c] {
			least = min(least, q.lengths[c])
		}
	}
	q.nearest[block] = least
}

// flip gives each row on the augmenting path its new column.
func (s *Solver) flip(first int) {
	for c := s.path.goal; ; {
		row := int(s.path.before[c])
		next := s.colOf[row]
		s.match(row, c)
		if row == first {
			return
		}
		c = int(next)
	}
}
