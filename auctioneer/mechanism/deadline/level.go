package deadline

import (
	"cmp"
	"math"
	"slices"
)

// contender is a task that competes for a unit of time. Tasks with a higher `level` rank before tasks with a lower one.
type contender struct {
	task  int32
	done  int32 // units that the task has received so far
	level float64
}

// In the search for a critical value, two levels count as equal if their relative difference is at most slack. The task
// that pays then ranks last among equal tasks. An exact comparison would not work: the search changes a task's value in
// small steps, and rounding changes the last digits.
const slack = 1e-12

// initial returns the level of a task before it was first served, if its owner reports the given value.
func (p *Problem) initial(i int32, value float64) float64 { return value / p.Tasks[i].area() }

// area returns the slot units that a task asks for: its length times its width.
func (t *Task) area() float64 { return float64(t.Length) * float64(t.slots()) }

// raised returns the state of a contender after it was served in a unit of time. The argument `value` is the value that
// the contender reported.
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

// remaining returns l − λe, where l is the task's length and e is the number of units that it has received. The
// priority in the paper is the value divided by this number.
func (p *Problem) remaining(c contender) float64 {
	return float64(p.Tasks[c.task].Length) - p.Lambda*float64(c.done)
}

// This method reports whether contender a ranks before contender b: by level, then by earlier arrival, then by smaller
// index. Under the rule Paper, the level is a quotient. If two levels are equal as float64, the method compares the
// exact cross products of the quotients.
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

// compareProducts compares a·b with c·d. The result is exact if nothing underflows.
func compareProducts(a, b, c, d float64) int {
	ab, cd := a*b, c*d
	if ab != cd {
		return cmp.Compare(ab, cd)
	}
	return cmp.Compare(math.FMA(a, b, -ab), math.FMA(c, d, -cd)) // compares the parts that rounding removed
}

// The scale S is the weighted mean length of past tasks. At the start there are no past tasks. S is then computed as if
// there had been tasks of length priorScale, with the total weight priorWeight.
const (
	priorScale  = 4
	priorWeight = 16
)

// growths returns the factor 1 + λ/S for each unit. If a task is served in a unit, its level rises by this factor. S is
// fixed by the problem, or it is the mean length of the tasks whose deadlines have passed, weighted by the squares of
// their lengths. Since S depends only on past tasks, a task cannot change the growth while it competes.
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
