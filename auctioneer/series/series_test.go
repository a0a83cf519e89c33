package series

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
)

const second = messages.Duration(time.Second)

// means computes the rows that a series must have. It computes each row from all samples, without the shortcuts of the
// series.
func means(samples []Row, step Step, from messages.Time, width int) (rows []Row) {
	every := messages.Time(step.Every.Std().Microseconds())
	for _, s := range samples {
		start := s.At - s.At%every
		if n := len(rows); n == 0 || rows[n-1].At < start {
			rows = append(rows, Row{At: start})
		}
	}
	rows = rows[max(0, len(rows)-step.Keep):]
	rows = slices.DeleteFunc(rows, func(r Row) bool { return r.At+every <= from })
	for i := range rows {
		for k := range width {
			sum, n, unknown := int64(0), int64(0), false
			for _, s := range samples {
				if s.At-s.At%every == rows[i].At {
					sum, n, unknown = sum+s.Values[k], n+1, unknown || s.Values[k] < 0
				}
			}
			if value := (sum + n/2) / max(1, n); unknown {
				rows[i].Values = append(rows[i].Values, Unknown)
			} else {
				rows[i].Values = append(rows[i].Values, value)
			}
		}
	}
	return rows
}

func TestMeans(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	steps := []Step{{2 * second, 5}, {10 * second, 4}, {60 * second, 3}}
	for range 200 {
		s := New(2, steps...)
		var samples []Row
		at := messages.Time(1e15)
		for range random.IntN(200) {
			at = at.Add(messages.Duration(random.IntN(5)) * second)
			values := []int64{random.Int64N(100), random.Int64N(100)}
			if random.IntN(20) == 0 {
				values[0] = Unknown
			}
			s.Add(at, values)
			samples = append(samples, Row{at, values})
		}
		for _, back := range []messages.Duration{second, 10 * second, 11 * second, 40 * second, 100 * second, 10000 * second} {
			from := at.Add(-back)
			which := steps[len(steps)-1]
			for _, step := range slices.Backward(steps) {
				if back <= step.Span() {
					which = step
				}
			}
			every, rows := s.Since(from, at)
			want := means(samples, which, from, 2)
			if every != which.Every || !slices.EqualFunc(rows, want, func(a, b Row) bool { return a.At == b.At && slices.Equal(a.Values, b.Values) }) {
				t.Fatalf("%v back, in steps of %v: %v, want %v", back, every, rows, want)
			}
		}
	}
}

func TestClockSetBackAndLargeValues(t *testing.T) {
	s := New(1, Step{second, 2})
	s.Add(5e6, []int64{10})
	s.Add(1e6, []int64{20})
	if _, rows := s.Since(0, 5e6); len(rows) != 1 || rows[0].At != 5e6 || rows[0].Values[0] != 15 {
		t.Errorf("after the clock was set back: %v", rows)
	}
	for range 4000 {
		s.Add(6e6, []int64{1 << 62})
	}
	if _, rows := s.Since(6e6, 6e6); rows[len(rows)-1].Values[0] != MaxValue {
		t.Errorf("large values: %v", rows)
	}
	if _, rows := New(1, Step{second, 2}).Since(0, 1); rows != nil {
		t.Errorf("an empty series has %v", rows)
	}
}
