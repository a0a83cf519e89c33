package reservation

import (
	"cmp"
	"math"
	"slices"
)

// A lane is a part of the nodes that serves one bid at a time. The type lane computes which of its bids the lane
// serves. Its memory is used again for other problems.
//
// Times are in units of the greatest common divisor of the bids' lengths. This unit is small enough, because served
// bids follow one another without gaps.
type lane struct {
	items   []item // in the order of deadlines, ties by index
	unit    int
	horizon int
	block   int // number of suffix rows in a block; one row of each block is kept

	row    []int64   // the suffix row that is computed now
	kept   [][]int64 // suffix rows 0, block, 2·block…
	rows   [][]int64 // suffix rows of one block
	prefix []int64
}

type item struct {
	bid              int // position in Problem.Bids
	length, deadline int
	value            int64
	start            int // its start in the problem's time, or Lost
}

// gather puts some of the given bids into the lane: the bids that can be served and have a positive value.
func (a *lane) gather(p *Problem, m *money, bids []int) {
	a.items, a.unit, a.horizon = a.items[:0], 0, 0
	for _, i := range bids {
		if p.fits(i) && m.amounts[i] > 0 {
			a.items = append(a.items, item{i, p.Bids[i].Length, p.latest(i), m.amounts[i], Lost})
			a.unit = gcd(a.unit, p.Bids[i].Length)
		}
	}
	a.unit = max(a.unit, 1)
	total := 0
	for k := range a.items {
		x := &a.items[k]
		x.length, x.deadline = x.length/a.unit, x.deadline/a.unit
		total = min(total+x.length, math.MaxInt/2)
		a.horizon = max(a.horizon, x.deadline)
	}
	a.horizon = min(a.horizon, total)
	for k := range a.items {
		a.items[k].deadline = min(a.items[k].deadline, a.horizon)
	}
	slices.SortFunc(a.items, func(x, y item) int {
		return cmp.Or(cmp.Compare(x.deadline, y.deadline), cmp.Compare(x.bid, y.bid))
	})
	a.block = max(1, int(math.Sqrt(float64(len(a.items)))))
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// before returns the latest time at which the items before position k can end: the deadline of the last of them.
func (a *lane) before(k int) int {
	if k == 0 {
		return 0
	}
	return a.items[k-1].deadline
}

// suffix returns the value of the best schedule. It computes one row for each position k, from the last position to the
// first, and keeps one row of each block. Row k is about the items from position k on. Its entry t is the highest value
// of these items if the first of them that is served starts at t. Row k has the entries for t from 0 to before(k).
func (a *lane) suffix() int64 {
	a.row = zeros(a.row, a.horizon+1)
	count := len(a.items)/a.block + 1
	a.kept = slices.Grow(a.kept[:0], count)[:count]
	for k := len(a.items); ; k-- {
		if k < len(a.items) {
			a.prepend(k)
		}
		if k%a.block == 0 {
			a.kept[k/a.block] = append(a.kept[k/a.block][:0], a.row[:a.before(k)+1]...)
		}
		if k == 0 {
			return a.row[0]
		}
	}
}

// For each time t, a suffix row k has the largest value that the items from k on can reach if they start at t. a.row is
// now the row k+1. prepend adds item k in front, so that a.row becomes the row k, in the same memory.
func (a *lane) prepend(k int) {
	x := &a.items[k]
	n := min(x.deadline-x.length, a.before(k)) + 1
	if x.length == 0 { // the bid takes no time, so it is served if its deadline allows
		for t := range n {
			a.row[t] += x.value
		}
		return
	}
	if n <= 0 {
		return
	}
	here, after := a.row[:n], a.row[x.length:]
	after = after[:len(here)]
	for t, skip := range here { // in ascending order, so that entries of row k+1 are read before they are overwritten
		here[t] = max(skip, after[t]+x.value)
	}
}

// trace goes through the items from front to back, block by block. It decides which items are served, and when each
// starts. An item is served if this makes the total value strictly higher. The argument `without` has an element for
// each bid. If it is not nil, trace computes the value of the best schedule without a served bid, and stores it in the
// element of this bid.
func (a *lane) trace(without []int64) {
	if without != nil {
		a.prefix = zeros(a.prefix, a.horizon+1)
	}
	t := 0
	for from := 0; from < len(a.items); from += a.block {
		a.unfold(from)
		for k := from; k < min(from+a.block, len(a.items)); k++ {
			x := &a.items[k]
			next := a.rows[k+1-from]
			if end := t + x.length; end <= x.deadline && x.value+next[end] > next[t] {
				x.start = t * a.unit
				t = end
				if without != nil {
					without[x.bid] = combine(a.prefix[:a.before(k)+1], next)
				}
			}
			if without != nil {
				a.append(k)
			}
		}
	}
}

// The lane's table has one row for each item. Row k is about the items from k to the last. To save memory, only one row
// of each block of rows is stored. unfold computes all rows of one block again, from the last to the first. Afterwards,
// a.rows[i] is row from+i.
func (a *lane) unfold(from int) {
	last := min(from+a.block, len(a.items))
	for len(a.rows) <= a.block {
		a.rows = append(a.rows, nil)
	}
	a.row = zeros(a.row, a.horizon+1)
	if last%a.block == 0 {
		copy(a.row, a.kept[last/a.block])
	}
	for k := last; k >= from; k-- {
		if k < last {
			a.prepend(k)
		}
		a.rows[k-from] = append(a.rows[k-from][:0], a.row[:a.before(k)+1]...)
	}
}

// The method `append` adds item k to the prefix row, in place. Entry t of the row is the highest value that can be
// served from the items so far if the last served item ends by t. The row ends at the latest deadline of these items,
// because a later t gives no higher value.
func (a *lane) append(k int) {
	x := &a.items[k]
	last := a.before(k)
	for t := last + 1; t <= x.deadline; t++ {
		a.prefix[t] = a.prefix[last]
	}
	row := a.prefix[:x.deadline+1]
	for t := x.deadline; t >= x.length; t-- { // in descending order, so that entries are read before they are overwritten
		row[t] = max(row[t], row[t-x.length]+x.value)
	}
}

// combine joins a prefix and a suffix, two parts of a schedule: the suffix starts when the prefix ends. It returns the
// highest sum of their values.
func combine(prefix, suffix []int64) (best int64) {
	suffix = suffix[:len(prefix)]
	for t, x := range prefix {
		best = max(best, x+suffix[t])
	}
	return best
}

// zeros returns a slice of n zeros, in the memory of s if it is large enough.
func zeros(s []int64, n int) []int64 {
	if cap(s) < n {
		return make([]int64, n)
	}
	s = s[:n]
	clear(s)
	return s
}
