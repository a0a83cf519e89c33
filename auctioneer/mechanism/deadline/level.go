package deadline

import (
	"cmp"
	"math"
	"slices"
)

// contender is a task with what it competes with in a unit.
type contender struct {
	task  int32
	done  int32 // units it has received before
	level float64
}

// slack is the relative difference of levels at which the payer, in the search
// for its critical value, is taken to lose a tie: its report is then a quotient
// of products that rounding has moved by a few units in the last place.
const slack = 1e-12

// initial is the level of a task that reports a value.
func (p *Problem) initial(i int32, value float64) float64 { return value / p.Tasks[i].area() }

// area is the units of slots that a task asks for.
func (t *Task) area() float64 { return float64(t.Length) * float64(t.slots()) }

// raised is the level after one more unit of a task that reported value, after
// which it has received done.
func (s *schedule) raised(c contender, value float64, unit int) contender {
	c.done++
	if s.p.Rule == Monotone {
		c.level = min(c.level*s.growth[unit], math.MaxFloat64)
		return c
	}
	if rest := s.p.remaining(c); rest > 0 {
		c.level = value / rest
	}
	return c
}

// remaining is l − λe, what divides the value in the paper's priority.
func (p *Problem) remaining(c contender) float64 {
	return float64(p.Tasks[c.task].Length) - p.Lambda*float64(c.done)
}

// before says whether a ranks before b: by level, then the earlier arrival,
// then the smaller index. Quotients that agree as doubles are told apart by
// their exact cross products.
func (p *Problem) before(a, b contender) bool {
	if a.level != b.level {
		return a.level > b.level
	}
	x, y := &p.Tasks[a.task], &p.Tasks[b.task]
	if p.Rule == Paper {
		if c := compareProducts(x.Value, p.remaining(b), y.Value, p.remaining(a)); c != 0 {
			return c > 0
		}
	}
	if x.Arrival != y.Arrival {
		return x.Arrival < y.Arrival
	}
	return a.task < b.task
}

func (p *Problem) compare(a, b contender) int {
	switch {
	case a.task == b.task:
		return 0
	case p.before(a, b):
		return -1
	default:
		return 1
	}
}

// compareProducts compares a·b with c·d exactly, short of underflow.
func compareProducts(a, b, c, d float64) int {
	ab, cd := a*b, c*d
	if ab != cd {
		return cmp.Compare(ab, cd)
	}
	return cmp.Compare(math.FMA(a, b, -ab), math.FMA(c, d, -cd)) // what rounding took away
}

// The scale that is learned starts as if priorWeight had been seen of it.
const (
	priorScale  = 4
	priorWeight = 16
)

// growths returns, for each unit from the first, the factor by which the level
// of a task served then rises: 1 + λ/S. S is the mean length of the tasks whose
// deadlines have passed, each weighted by the square of its length, unless the
// problem fixes it. It depends on declared lengths and deadlines only and never on a task
// whose time is not over, so nobody's report moves the growth while it matters
// to them.
func (p *Problem) growths() []float64 {
	if p.Rule != Monotone {
		return nil
	}
	first, end := p.span()
	growth := make([]float64, end-first)
	left := make([]int32, len(p.Tasks))
	for i := range left {
		left[i] = int32(i)
	}
	slices.SortFunc(left, func(a, b int32) int { return p.Tasks[a].Deadline - p.Tasks[b].Deadline })
	weight, sum := float64(priorWeight), float64(priorWeight*priorScale)
	for k := range growth {
		for len(left) > 0 && p.Tasks[left[0]].Deadline < first+k {
			l := float64(p.Tasks[left[0]].Length)
			weight, sum, left = weight+l*l, sum+l*l*l, left[1:]
		}
		growth[k] = 1 + p.Lambda*weight/sum
		if p.Scale > 0 {
			growth[k] = 1 + p.Lambda/p.Scale
		}
	}
	return growth
}
