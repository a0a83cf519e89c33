package contract

import (
	"cmp"
	"math"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// MaxM is the largest number of replicas. The matrix of weights has a number of 8 bytes for each pair of replica and
// surrogate, so 10,000 replicas take 800 MB.
const MaxM = 10_000

// MaxWeight bounds a weight, so that sums along a path of any length stay finite.
const MaxWeight = 1e100

// Matching is an optimal assignment of surrogates to replicas, with the prices.
type Matching struct {
	Weight    float64   // the sum of the weights of the matched pairs
	Surrogate []int     // by replica: its surrogate
	Replica   []int     // by surrogate: its replica
	Prices    []float64 // by surrogate: its price
}

// Solver finds optimal matchings of replicas and surrogates. Each pair has a weight, and the sum of the weights is as
// large as possible. The zero value of Solver is ready to use. A solver keeps its memory from one call to the next. It
// is not safe for concurrent use.
//
// Internally, replicas are the rows of a matrix of weights. Surrogates are its columns, in descending order of the sum
// of their weights. If weights come from valuations and one completion time for each surrogate, this is the order of
// the times, so neighbouring columns are similar. Columns are in blocks of 2^shift, and each column has a price (its
// dual variable). A row skips a block if the row's largest weight in the block, minus the lowest price in the block, is
// too small to matter. The result is exact for any weights.
type Solver struct {
	m, blocks int
	shift     int // a block has 2^shift columns
	integral  bool
	largest   float64 // the largest weight
	weights   []float64
	columns   []int     // by column: its surrogate
	sums      []float64 // by surrogate: the sum of its weights
	peaks     []float64 // by row and block: the largest weight
	prices    []float64 // by column: prices that support the matching, when it is found
	floors    []float64 // by block: the lowest price
	rowOf     []int32   // by column: its row, or none if it is free
	colOf     []int32   // by row: its column, or none if it is free
	block     []int32   // by row: the block of its last bid
	path      path
	lowest    []float64 // by column: the lowest competitive prices
	result    Matching
}

// Solve first runs an auction for a limited number of steps, and then an exact search. few is the largest number of
// replicas for which the limit is lower (see mostBidsFew). With so few replicas, the exact search takes no longer than
// the steps that are left out.
const few = 256

// none means that there is no row or no column.
const none = -1

// Solve finds a matching of the largest weight between m replicas and m surrogates, and the lowest competitive price of
// every surrogate. The matrix weights is m×m, with a row for each replica; Solve does not change it. The result is
// valid until the next call.
func (s *Solver) Solve(m int, weights []float64) (*Matching, error) {
	var err error
	if s.largest, s.integral, err = check(m, weights); err != nil {
		return nil, err
	}
	s.reset(m)
	s.sort(weights)
	s.arrange(weights)
	if m > few || !s.reduce() {
		s.bid()
		s.keepTight()
	}
	for row := range m {
		if s.colOf[row] == none {
			s.augment(row)
		}
	}
	s.lower()
	s.report()
	return &s.result, nil
}

// check returns an error if a weight is invalid, or if there are not m×m weights. It also returns the largest weight.
// The result `integral` is true if all weights are whole numbers, and small enough that sums of them are exact.
func check(m int, weights []float64) (largest float64, integral bool, err error) {
	if err := sized(m); err != nil {
		return 0, false, err
	}
	if len(weights) != m*m {
		return 0, false, messages.Errorf(messages.Invalid, "weights: give one for each pair of a replica and a surrogate: %d replicas need %d weights; there are %d", m, m*m, len(weights))
	}
	integral = true
	for i, w := range weights {
		if !(w >= 0 && w <= MaxWeight) {
			return 0, false, messages.Errorf(messages.Invalid, "weights[%d][%d]: must be from 0 to %v, is %v", i/m, i%m, float64(MaxWeight), w)
		}
		if integral && w != math.Trunc(w) {
			integral = false
		}
		if w > largest { // the built-in max is slower, because it handles NaN
			largest = w
		}
	}
	return largest, integral && largest*float64(m) < 1<<52, nil
}

func sized(m int) error {
	if m < 1 {
		return messages.Errorf(messages.Invalid, "M: is %d: give at least one replica", m)
	}
	if m > MaxM {
		return messages.Errorf(messages.TooLarge, "M: %d is above the limit of %d: give fewer replicas", m, MaxM)
	}
	return nil
}

func (s *Solver) reset(m int) {
	s.m, s.shift = m, 5 // a block has 256 bytes of weights
	if m <= few {
		s.shift = 4
	}
	s.blocks = (m + 1<<s.shift - 1) >> s.shift
	s.weights = resize(s.weights, m*m)
	s.peaks = resize(s.peaks, m*s.blocks)
	s.floors = resize(s.floors, s.blocks)
	for _, v := range []*[]float64{&s.sums, &s.prices, &s.lowest, &s.result.Prices} {
		*v = resize(*v, m)
	}
	for _, v := range []*[]int32{&s.rowOf, &s.colOf, &s.block} {
		*v = resize(*v, m)
	}
	for _, v := range []*[]int{&s.columns, &s.result.Surrogate, &s.result.Replica} {
		*v = resize(*v, m)
	}
	s.path.resize(m, s.blocks)
	clear(s.prices)
	clear(s.floors)
	clear(s.block)
}

// resize returns a slice of length n with unspecified content, in the memory of v if there is room.
func resize[T any](v []T, n int) []T {
	return slices.Grow(v[:0], n)[:n]
}

// The method `sort` orders the columns by the sum of their weights. Columns with similar weights are then next to each
// other.
func (s *Solver) sort(weights []float64) {
	clear(s.sums)
	for i := 0; i < len(weights); i += s.m {
		for k, w := range weights[i : i+s.m] {
			s.sums[k] += w
		}
	}
	for k := range s.columns {
		s.columns[k] = k
	}
	slices.SortFunc(s.columns, func(a, b int) int {
		return cmp.Or(cmp.Compare(s.sums[b], s.sums[a]), cmp.Compare(a, b))
	})
}

// arrange copies the weights into the solver's order of the columns. It also computes the peaks: the largest weight of
// each row in each block of columns.
func (s *Solver) arrange(weights []float64) {
	for i := range s.m {
		from, row, peaks := weights[i*s.m:(i+1)*s.m], s.row(i), s.peaksOf(i)
		for c, k := range s.columns {
			row[c] = from[k]
		}
		for b := range peaks {
			peaks[b] = 0
			from, to := s.columnsOf(b)
			for _, w := range row[from:to] {
				if w > peaks[b] {
					peaks[b] = w
				}
			}
		}
	}
}

func (s *Solver) row(i int) []float64 { return s.weights[i*s.m : (i+1)*s.m : (i+1)*s.m] }

func (s *Solver) peaksOf(i int) []float64 { return s.peaks[i*s.blocks : (i+1)*s.blocks] }

// The columns of the matrix are divided into blocks. columnsOf returns the first column of a block, and the column
// after its last column.
func (s *Solver) columnsOf(block int) (from, to int) {
	return block << s.shift, min(s.m, (block+1)<<s.shift)
}

func (s *Solver) settleFloor(block int) {
	from, to := s.columnsOf(block)
	floor := math.Inf(1)
	for _, p := range s.prices[from:to] {
		if p < floor { // the built-in min takes three times as long, because it handles NaN
			floor = p
		}
	}
	s.floors[block] = floor
}

func (s *Solver) match(row, column int) {
	s.rowOf[column], s.colOf[row] = int32(row), int32(column)
}

// report writes the matching into s.result. The solver has sorted the columns, so report gives each surrogate its
// original number again.
func (s *Solver) report() {
	r := &s.result
	r.Weight = 0
	for i, c := range s.colOf {
		k := s.columns[c]
		r.Surrogate[i], r.Replica[k] = k, i
		r.Prices[k] = s.lowest[c]
		r.Weight += s.weights[i*s.m+int(c)]
	}
}
