package audit

import (
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Report is the result of an audit. The names of the JSON keys do not change.
type Report struct {
	Jobs    int       `json:"jobs"`    // in all samples
	Redraws int       `json:"redraws"` // number of samples, each with newly drawn bids
	Runs    int       `json:"runs"`
	Kinds   []Finding `json:"kinds"`
	Largest float64   `json:"largest"` // largest gain by any kind, as a part of the job's value
	Notes   []string  `json:"notes"`
}

// Finding has the gains of one kind of lie. A gain is a fraction of the value of the jobs.
type Finding struct {
	Kind    string     `json:"kind"`
	Jobs    int        `json:"jobs"` // number of jobs that could tell such a lie
	Lies    int        `json:"lies"` // number of lies that were told
	Gainers int        `json:"gainers"`
	Mean    float64    `json:"mean"` // mean gain of each job's best lie; 0 for jobs for which the truth is best
	CI      [2]float64 `json:"mean_95"`
	Largest float64    `json:"largest"`
	Job     int64      `json:"largest_job"`     // number in the log of the job with the largest gain; 0: no job gains
	Size    int        `json:"largest_lie"`     // position of that job's best lie among the lies of the kind
	Credits float64    `json:"largest_credits"` // the same gain in credits
	Gains   []float64  `json:"gains"`           // gain of each job that could tell such a lie
	// Fixed has the mean gain of each lie over all jobs that could tell it. A user who always tells this lie can expect
	// this gain. For each lie there is a confidence interval of its mean gain. Worst is the lie whose interval has the
	// largest lower end.
	Fixed []Fixed `json:"fixed"`
	Worst Fixed   `json:"worst,omitzero"`
	// The bounded gain of a lie for a job is its gain, but at most the job's value, and at least the negative value.
	// For each lie there is a confidence interval of the mean of these gains. Bounded is the lie whose interval has the
	// largest lower end.
	Bounded Fixed `json:"worst_bounded,omitzero"`
	// The audit tries lies of several sizes about the value. If the gain still grows at the largest or smallest size,
	// StillGrows is that size. Otherwise it is 0.
	StillGrows float64 `json:"still_grows_at,omitempty"`
	// Control checks that the audit can find a gain. It is a lie that must gain something; see controlsOf. Two such
	// lies are tried. Control has the result of the lie that gains more surely. Only the audits of the value, and of
	// the width of wide jobs, have a control.
	Control Fixed `json:"control,omitzero"`
}

// Fixed is the mean gain of one lie, as a fraction of the jobs' values.
type Fixed struct {
	Lie  int        `json:"lie"`  // its position among the lies of the kind
	Jobs int        `json:"jobs"` // 0: no such lie could be told
	Mean float64    `json:"mean"`
	CI   [2]float64 `json:"mean_95"`
	// Bounded is the mean gain, where each gain or loss counts as at most the job's value. Without this bound a few
	// short jobs could decide the mean, because waiting can cost a short job a thousand times its value.
	Bounded   float64    `json:"bounded"`
	BoundedCI [2]float64 `json:"bounded_95"`
}

// Fired reports whether a lie surely gains. Two confidence intervals are computed: for the mean gain, and for the mean
// of the bounded gains. One of them must be completely above 0.
func (f *Fixed) Fired() bool { return f.Jobs > 0 && f.sure() > Rounding }

// sure returns a bound that the mean gain surely exceeds. The fields CI and BoundedCI are two confidence intervals of
// the mean gain. The bound is the larger of their lower ends.
func (f *Fixed) sure() float64 { return max(f.CI[0], f.BoundedCI[0]) }

// Fixed has the lies that are told for every job. Above reports whether one of these lies surely gains more than x on
// average: the lower end of its confidence interval must be above x. With many lies, one interval could be above x by
// chance. So the intervals are made wider (Bonferroni). If no lie really gains more than x, at most one audit in forty
// reports such a lie.
func (f *Finding) Above(x float64, lies int) bool {
	z := distuv.UnitNormal.Quantile(1-0.025/float64(max(1, lies))) / 1.96
	return slices.ContainsFunc(f.Fixed, func(l Fixed) bool { return l.Jobs > 0 && l.Mean-z*(l.Mean-l.CI[0]) > x })
}

func (f *Finding) fix(of []*trial) {
	gains, controls := map[int][]float64{}, map[int][]float64{}
	for i := range of {
		if s := &of[i].result; s.value > 0 {
			for _, x := range s.fixed {
				gains[x.lie] = append(gains[x.lie], x.gain/s.value)
			}
			for _, x := range s.controls {
				controls[x.lie] = append(controls[x.lie], x.gain/s.value)
			}
		}
	}
	f.Fixed = fixedOf(gains)
	f.Worst = surest(f.Fixed, func(x *Fixed) float64 { return x.CI[0] })
	f.Bounded = surest(f.Fixed, func(x *Fixed) float64 { return x.BoundedCI[0] })
	f.Control = surest(fixedOf(controls), (*Fixed).sure)
}

func surest(of []Fixed, low func(*Fixed) float64) (best Fixed) {
	for i := range of {
		if x := &of[i]; best.Jobs == 0 || low(x) > low(&best) {
			best = *x
		}
	}
	return best
}

func fixedOf(gains map[int][]float64) []Fixed {
	all := []Fixed{}
	for _, lie := range slices.Sorted(maps.Keys(gains)) {
		x := Fixed{Lie: lie, Jobs: len(gains[lie])}
		x.Mean, x.CI = confidence(gains[lie])
		x.Bounded, x.BoundedCI = confidence(bounded(gains[lie]))
		all = append(all, x)
	}
	return all
}

// Rounding is the part of a job's value that can come from rounding. A smaller gain is no gain.
const Rounding = 1e-6

func (r *Report) add(kind string, of []*trial, grows float64) {
	f := Finding{Kind: kind, Gains: []float64{}, StillGrows: grows}
	for i := range of {
		s := &of[i].result
		r.Runs += s.runs
		if !s.could || s.value <= 0 {
			continue
		}
		f.Jobs++
		f.Lies += s.lies
		gain := s.gain / s.value
		f.Gains = append(f.Gains, gain)
		if gain > Rounding {
			f.Gainers++
		}
		if gain > f.Largest {
			f.Largest, f.Job, f.Size, f.Credits = gain, s.job, s.best, s.gain
		}
	}
	f.Mean, f.CI = confidence(f.Gains)
	f.fix(of)
	r.Largest = max(r.Largest, f.Largest)
	if f.Jobs == 0 {
		r.Notes = append(r.Notes, "nobody could lie about "+kind+" here")
	}
	r.Kinds = append(r.Kinds, f)
}

// confidence returns the mean with its 95 % interval, by the normal distribution.
func confidence(x []float64) (m float64, ci [2]float64) {
	if len(x) == 0 {
		return 0, ci
	}
	m = mean(x)
	var squares float64
	for _, v := range x {
		squares += (v - m) * (v - m)
	}
	if len(x) > 1 {
		d := 1.96 * math.Sqrt(squares/float64(len(x)-1)/float64(len(x)))
		return m, [2]float64{m - d, m + d}
	}
	return m, [2]float64{m, m}
}
