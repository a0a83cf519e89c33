package runtime

import (
	"hash/fnv"
	"slices"
)

// Run is an observed run as the predictor stores it.
type Run struct {
	Ended  int64     // when it ended, in microseconds
	Owner  uint64    // hash of the user
	Values []float64 // run times in ascending order, at most mostValues
}

const (
	mostRuns   = 24 // largest number of runs of one context
	mostValues = 4  // largest number of values of one run
	// The constant `own` is a weight: each run of a user counts 0.8 times as much as the user's next run.
	own = 0.8
)

// A value of the type context has the latest runs of similar jobs, in the order of their ends. The weight of each run
// is the weight of the next run multiplied by the field `fade`. There are two kinds of context. If `fade` is below 1,
// all runs are of the same user. If `fade` is 1, the context has only the last run of each user, so a user with more
// jobs has no more weight.
type context struct {
	runs []Run
	fade float64
}

func newContext(l *level) *context {
	if l.user {
		return &context{fade: own}
	}
	return &context{fade: 1}
}

// add adds a run. If there are then too many runs, it removes an older one.
func (c *context) add(r Run) {
	at, _ := slices.BinarySearchFunc(c.runs, r.Ended+1, func(r Run, ended int64) int {
		if r.Ended < ended {
			return -1
		}
		return 1
	})
	c.runs = slices.Insert(c.runs, at, r)
	if c.fade == 1 && c.drop(r.Owner) || len(c.runs) <= mostRuns {
		return
	}
	c.runs = slices.Delete(c.runs, 0, 1)
}

// drop removes the older of two runs of an owner, and reports whether there were two.
func (c *context) drop(owner uint64) bool {
	older := -1
	for i := range c.runs {
		switch {
		case c.runs[i].Owner != owner:
		case older < 0:
			older = i
		default:
			c.runs = slices.Delete(c.runs, older, older+1)
			return true
		}
	}
	return false
}

// weight returns the sum of the weights of a context's runs, and the sum of the squares of these weights. The latest
// run has the weight 1. Each earlier run has c.fade times the weight of the next later run.
func (c *context) weight() (sum, squares float64) {
	w := 1.0
	for range c.runs {
		sum += w
		squares += w * w
		w *= c.fade
	}
	return sum, squares
}

// atom is a run time and its probability.
type atom struct{ value, part float64 }

// atoms appends the run times to `out`, multiplied by `scale`, but each at most `most`. The sum of their probabilities
// is `total`.
func (c *context) atoms(out []atom, total, scale, most float64) []atom {
	sum, _ := c.weight()
	w := total / sum
	for i := len(c.runs) - 1; i >= 0; i-- {
		values := c.runs[i].Values
		for _, v := range values {
			out = append(out, atom{min(v*scale, most), w / float64(len(values))})
		}
		w *= c.fade
	}
	return out
}

// Each run has one or several values in ascending order, and the middle one counts for the run. middle returns the
// weighted median of these values over all runs. It takes O(mostRuns²) and allocates no memory.
func (c *context) middle() float64 {
	var sorted [mostRuns]atom
	n, total, w := 0, 0.0, 1.0
	for i := len(c.runs) - 1; i >= 0; i-- {
		values := c.runs[i].Values
		a := atom{values[len(values)/2], w}
		at := n
		for ; at > 0 && sorted[at-1].value > a.value; at-- {
			sorted[at] = sorted[at-1]
		}
		sorted[at] = a
		n, total, w = n+1, total+w, w*c.fade
	}
	sum := 0.0
	for _, a := range sorted[:n] {
		if sum += a.part; sum >= total/2 {
			return a.value
		}
	}
	return sorted[n-1].value
}

func ownerOf(user string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(user))
	return h.Sum64()
}

// few chooses at most mostValues of the sorted values. It divides the values into mostValues parts of equal size, and
// takes the middle value of each part.
func few(sorted []float64) []float64 {
	if len(sorted) <= mostValues {
		return sorted
	}
	out := make([]float64, mostValues)
	for k := range out {
		out[k] = sorted[(2*k+1)*len(sorted)/(2*mostValues)]
	}
	return out
}
