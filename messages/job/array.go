package job

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// Count returns the number of indices, at most math.MaxInt64. For an empty array, it returns 0.
func (a Array) Count() int64 {
	var total int64
	for _, r := range a {
		n := r.count()
		if total > math.MaxInt64-n {
			return math.MaxInt64
		}
		total += n
	}
	return total
}

// count returns the number of indices of a range, or 0 if the range is invalid.
func (r Range) count() int64 {
	if r.First < 0 || r.Last < r.First || r.Step <= 0 {
		return 0
	}
	n := (r.Last - r.First) / r.Step
	return min(n, math.MaxInt64-1) + 1
}

// At returns the index of task i: i itself for an empty array, or -1 if i is too large.
func (a Array) At(i int64) int64 {
	if len(a) == 0 {
		return i
	}
	if i < 0 {
		return -1
	}
	for _, r := range a {
		n := r.count()
		if i < n {
			return r.First + i*r.Step
		}
		i -= n
	}
	return -1
}

// Indices calls the function `yield` for each index, in order. An empty array has no indices.
func (a Array) Indices(yield func(int64) bool) {
	for _, r := range a {
		for i := range r.count() {
			if !yield(r.First + i*r.Step) {
				return
			}
		}
	}
}

// Positions returns the positions that the given indices have in the array. The indices must ascend.
func (a Array) Positions(indices Array) (out Array, err error) {
	at, position, wanted := int64(0), int64(0), []int64{}
	for index := range indices.Indices {
		wanted = append(wanted, index)
	}
	for index := range a.Indices {
		if at < int64(len(wanted)) && index == wanted[at] {
			out, at = out.With(position), at+1
		}
		position++
	}
	if at < int64(len(wanted)) {
		return nil, messages.Errorf(messages.NotFound, "array: the job has no task with the index %d", wanted[at])
	}
	return out, nil
}

// With adds an index that is larger than all others, and returns the new array. Indices with equal distances are stored
// as one range.
func (a Array) With(index int64) Array {
	if n := len(a); n > 0 {
		r := &a[n-1]
		switch {
		case r.First == r.Last:
			r.Last, r.Step = index, index-r.First
			return a
		case index == r.Last+r.Step:
			r.Last = index
			return a
		}
	}
	return append(a, Range{First: index, Last: index, Step: 1})
}

func (a Array) validate(path string) error {
	if len(a) > MaxRanges {
		return messages.Errorf(messages.TooLarge, "%s: %d ranges are more than the limit of %d; write runs of indices as first-last", path, len(a), MaxRanges)
	}
	for i, r := range a {
		where := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case r.First < 0 || r.Last < r.First:
			return messages.Errorf(messages.Invalid, "%s: %d to %d is no range; give a first index of 0 or above, and a last index that is not smaller", where, r.First, r.Last)
		case r.Step <= 0:
			return messages.Errorf(messages.Invalid, "%s: step %d must be above 0", where, r.Step)
		case i > 0 && r.First <= a[i-1].last():
			return messages.Errorf(messages.Invalid, "%s: begins at %d, which is not after the end of the previous range; put ranges in order, without overlap", where, r.First)
		}
	}
	if n := a.Count(); n > MaxTasks {
		return messages.Errorf(messages.TooLarge, "%s: %d indices are more than the limit of %d tasks for a job; submit several jobs", path, n, MaxTasks)
	}
	return nil
}

// last returns the last index of a range. It can be below Last: the range 0-10:4 has the indices 0, 4 and 8.
func (r Range) last() int64 { return r.First + (r.count()-1)*r.Step }

// overlaps reports whether some range of the array begins before the previous range in the list has ended.
func (a Array) overlaps() bool {
	for i := range a {
		if i > 0 && a[i].First <= a[i-1].last() {
			return true
		}
	}
	return false
}

// set returns an array that has each index once, in ascending order.
func (a Array) set() (out Array) {
	for _, index := range slices.Compact(slices.Sorted(a.Indices)) {
		out = out.With(index)
	}
	return out
}

// maxArrayText bounds the text of an array, in bytes.
const maxArrayText = 64 << 10

// ParseArray reads an array as Slurm writes it: indices and ranges separated by commas, as in "0-15" or "1,3,5". A
// range may have a step: "0-15:4". At the end, "%4" says how many tasks may run at once; without it, maxRunning is 0.
// Ranges may come in any order and overlap, as under Slurm: "1-3,2-5" is 1 to 5.
func ParseArray(text string) (a Array, maxRunning int, err error) {
	refuse := func(format string, args ...any) (Array, int, error) {
		e := messages.Errorf(messages.Invalid, format, args...)
		e.Message = fmt.Sprintf("array %q: %s", messages.Clipped(text), e.Message)
		return nil, 0, e
	}
	if len(text) > maxArrayText {
		return nil, 0, messages.Errorf(messages.TooLarge, "array: its text of %d bytes is above the limit of %d; write runs of indices as first-last", len(text), maxArrayText)
	}
	list, bound, bounded := strings.Cut(text, "%")
	if bounded {
		n, err := strconv.ParseInt(bound, 10, 32)
		if err != nil || n <= 0 {
			return refuse("after '%%' write how many tasks may run at once, a number above 0")
		}
		maxRunning = int(n)
	}
	for part := range strings.SplitSeq(list, ",") {
		r, ok := parseRange(strings.Trim(part, "[]")) // Slurm too takes "[1-3]"
		if ok && r.First > r.Last {
			return refuse("%q goes down: write the smaller index first, %d-%d", messages.Clipped(part), r.Last, r.First)
		}
		if !ok {
			return refuse("%q is neither an index, nor first-last, nor first-last:step", messages.Clipped(part))
		}
		a = append(a, r)
	}
	slices.SortStableFunc(a, func(x, y Range) int { return cmp.Compare(x.First, y.First) })
	if a.overlaps() && a.Count() <= MaxTasks {
		a = a.set()
	}
	if err := a.validate("array"); err != nil {
		return nil, 0, err
	}
	return a, maxRunning, nil
}

func parseRange(s string) (r Range, ok bool) {
	span, step, stepped := strings.Cut(s, ":")
	first, last, spanned := strings.Cut(span, "-")
	if !spanned {
		last = first
	}
	r.Step = 1
	ok = parseIndex(first, &r.First) && parseIndex(last, &r.Last)
	if stepped {
		ok = ok && spanned && parseIndex(step, &r.Step) && r.Step > 0
	}
	return r, ok
}

func parseIndex(s string, into *int64) bool {
	n, err := strconv.ParseUint(s, 10, 63)
	*into = int64(n)
	return err == nil
}
