// Package series stores the history of a few numbers in bounded memory: the last minutes in short steps, and the last
// days in long steps. It has no clock.
package series

import (
	"math"
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// Unknown stands for a secret value. A step with such a value has an unknown mean, so that no mean reveals the secret.
const Unknown = -1

// MaxValue is the largest value that a series can store. A larger value is stored as MaxValue.
const MaxValue = 1 << 50

// A series divides the time into steps. Step says how long each step is, and how many steps are kept.
type Step struct {
	Every messages.Duration
	Keep  int
}

// Span returns how much time the kept steps cover.
func (s Step) Span() messages.Duration { return s.Every * messages.Duration(s.Keep) }

// Series stores, for each step, the mean of each of several values. Values are 0 or more, or [Unknown].
type Series struct {
	width int
	rings []ring
}

// ring has the latest steps of a series. All steps in a ring have the same length of time. When the ring is full, a new
// step overwrites the oldest step.
type ring struct {
	Step
	buckets []market.PastStep
	next    int // position of the next bucket, once the ring has Keep buckets
}

// New returns an empty series. Each of its samples has `width` values. The list `steps` begins with the shortest step.
func New(width int, steps ...Step) *Series {
	s := &Series{width: width}
	for _, step := range steps {
		s.rings = append(s.rings, ring{Step: step})
	}
	return s
}

// Width returns the number of values in a sample.
func (s *Series) Width() int { return s.width }

// A series divides the time into steps of equal length. Add adds a sample to the step that contains the sample's time.
// If the clock was set back, this time may be before the last step. Then the sample is added to the last step.
func (s *Series) Add(at messages.Time, values []int64) {
	for i := range s.rings {
		s.rings[i].add(at, values[:s.width])
	}
}

func (r *ring) add(at messages.Time, values []int64) {
	start := at - at%messages.Time(r.Every.Std().Microseconds())
	b := r.last()
	if b == nil || b.At < start {
		b = r.push()
		b.At, b.Samples = start, 0
		b.Sums = append(b.Sums[:0], make([]int64, len(values))...)
	}
	b.Samples++
	for i, v := range values {
		if v < 0 || b.Sums[i] < 0 {
			b.Sums[i] = Unknown
		} else {
			b.Sums[i] += min(v, MaxValue)
		}
	}
}

func (r *ring) last() *market.PastStep {
	if len(r.buckets) == 0 {
		return nil
	}
	if len(r.buckets) < r.Keep {
		return &r.buckets[len(r.buckets)-1]
	}
	return &r.buckets[(r.next+r.Keep-1)%r.Keep]
}

func (r *ring) push() *market.PastStep {
	if len(r.buckets) < r.Keep {
		r.buckets = append(r.buckets, market.PastStep{})
		return &r.buckets[len(r.buckets)-1]
	}
	b := &r.buckets[r.next]
	r.next = (r.next + 1) % r.Keep
	return b
}

// Row has the mean of each value during one step of time. At is the beginning of the step.
type Row struct {
	At     messages.Time
	Values []int64
}

// The series keeps rows with steps of several lengths. Rows with shorter steps are kept for a shorter time. Since
// returns the rows from the instant `from` until now. It takes the shortest steps whose rows are kept for this whole
// time. If no rows are kept for this whole time, it takes the longest steps.
func (s *Series) Since(from, now messages.Time) (step messages.Duration, rows []Row) {
	at := slices.IndexFunc(s.rings, func(r ring) bool { return now.Sub(from) <= r.Span() })
	if at < 0 {
		at = len(s.rings) - 1
	}
	r := &s.rings[at]
	for i := range r.buckets {
		b := &r.buckets[(r.next+i)%len(r.buckets)]
		if b.At.Add(r.Every) <= from {
			continue
		}
		row := Row{At: b.At, Values: make([]int64, len(b.Sums))}
		for k, sum := range b.Sums {
			if row.Values[k] = Unknown; sum >= 0 {
				row.Values[k] = (sum + b.Samples/2) / b.Samples
			}
		}
		rows = append(rows, row)
	}
	return r.Every, rows
}

// Last returns the time at which the latest step began. It returns 0 if there is no step.
func (s *Series) Last() messages.Time {
	if b := s.rings[0].last(); b != nil {
		return b.At
	}
	return 0
}

// A series keeps steps of several lengths. Part returns, for each length, the steps that ended after an instant. The
// result shares no memory with the series.
func (s *Series) Part(from messages.Time) []market.PastSteps {
	part := make([]market.PastSteps, len(s.rings))
	for i := range s.rings {
		r := &s.rings[i]
		for k := range r.buckets {
			if b := &r.buckets[(r.next+k)%len(r.buckets)]; b.At.Add(r.Every) > from {
				part[i].Steps = append(part[i].Steps, market.PastStep{At: b.At, Samples: b.Samples, Sums: slices.Clone(b.Sums)})
			}
		}
	}
	return part
}

// Merge adds steps that another replica recorded for the same series. It adds the steps that are later than the last
// step here. If the other replica has more samples of this last step, Merge replaces the step. If the steps do not fit
// this series, it returns false and changes nothing.
func (s *Series) Merge(part []market.PastSteps) bool {
	if len(part) != len(s.rings) {
		return false
	}
	for i := range part {
		last := messages.Time(math.MinInt64)
		for _, b := range part[i].Steps {
			if len(b.Sums) != s.width || b.Samples < 1 || b.At <= last || slices.ContainsFunc(b.Sums, func(v int64) bool { return v < Unknown }) {
				return false
			}
			last = b.At
		}
	}
	for i := range part {
		for _, b := range part[i].Steps {
			s.rings[i].merge(b)
		}
	}
	return true
}

func (r *ring) merge(b market.PastStep) {
	at := r.last()
	switch {
	case at == nil || at.At < b.At:
		at = r.push()
	case at.At > b.At || at.Samples >= b.Samples: // the last step of the series, or an earlier one
		return
	}
	at.At, at.Samples, at.Sums = b.At, b.Samples, append(at.Sums[:0], b.Sums...)
}
