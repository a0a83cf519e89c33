package audit

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/deploy/simulated/core"
)

// A lie multiplies the value by one of the factors in `sizes`. If the smallest factor gains most, the audit continues
// with the factors in beyond[0]. If the largest factor gains most, it continues with the factors in beyond[1]. It stops
// at the first factor that gains less than the factor before.
var (
	sizes  = []float64{0.01, 0.25, 0.5, 0.75, 0.9, 0.97, 1.03, 1.1, 1.5, 4}
	beyond = [2][]float64{{0.001, 0.0001}, {10, 32, 100, 316, 1000, 3162, 10_000}}
)

// The audit of lies about the value first tries the factors in the list `sizes`. The list `beyond` has more factors for
// both ends: smaller ones and larger ones. The function `further` tries them one after the other, as long as each gains
// more than the one before. If the gain still grows at the last factor of one end, it returns this factor. Otherwise it
// returns 0.
func further(of []*trial, o Options) (grows float64, err error) {
	at := len(sizes) // position of the next lie
	for end, more := range beyond {
		inner, outer := 1, 0
		if end == 1 {
			inner, outer = len(sizes)-2, len(sizes)-1
		}
		told := 0
		for k := range more {
			if !larger(of, outer, inner) {
				break
			}
			l := each(more[k:k+1], anotherRate)[0]
			err := inParallel(len(of), o.Progress, o.Until, func(i int) error {
				a, liars, err := of[i].audit.from(of[i].sample, Value)
				if err != nil {
					return err
				}
				return a.tell(liars, Value, at+k, l, &of[i].result)
			})
			if err != nil {
				return 0, err
			}
			inner, outer, told = outer, at+k, k+1
		}
		if told == len(more) && larger(of, outer, inner) {
			grows = more[told-1]
		}
		at += len(more)
	}
	return grows, nil
}

// larger compares two lies by their positions in the list. It reports whether the mean gain of the first lie is
// positive, and larger than the mean gain of the second lie.
func larger(of []*trial, lie, than int) bool {
	var sums [2]float64
	for _, t := range of {
		for _, f := range t.fixed {
			switch {
			case t.value <= 0:
			case f.lie == lie:
				sums[0] += f.gain / t.value
			case f.lie == than:
				sums[1] += f.gain / t.value
			}
		}
	}
	return sums[0] > Rounding*float64(len(of)) && sums[0] > sums[1]
}

// ring returns a lie that several users tell together. Each of them lowers the rate of its job until it is just above
// the next lower rate of an outsider. Outsiders are users whose jobs arrive while jobs of the ring may wait.
func (s *sample) ring(p *core.Problem, liars []int) lie {
	var outsiders []float64
	first, last := p.Work.Jobs[liars[0]].Submit, p.Work.Jobs[liars[len(liars)-1]].Submit
	for i := range p.Bids {
		if at := p.Work.Jobs[i].Submit; !slices.Contains(liars, i) && at >= first-near && at <= last+near {
			outsiders = append(outsiders, p.Bids[i].Value)
		}
	}
	slices.Sort(outsiders)
	return func(told []entry, _ int) []entry {
		if len(told) < 2 || len(told) < len(liars) {
			return nil
		}
		byRate := slices.SortedFunc(slices.Values(told), func(x, y entry) int { return cmp.Compare(x.bid.Rate, y.bid.Rate) })
		for k := range byRate {
			e := &byRate[k]
			if at, _ := slices.BinarySearch(outsiders, e.bid.Rate); at > 0 { // there is an outsider with a lower rate
				x := outsiders[at-1] / e.bid.Rate
				*e = e.rated(x + (1-x)*float64(k+1)/1000)
			}
		}
		return byRate
	}
}

// A ring is a group of users who lie together, and an outsider is a user who belongs to no ring. The constant `near` is
// a time in seconds: an outsider's job arrives at most this long before or after the ring's jobs.
const near = 6 * 3600
