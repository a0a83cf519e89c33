package audit

import "math"

// Report is the result. The names of the keys are stable.
type Report struct {
	Jobs    int       `json:"jobs"` // in the sample
	Runs    int       `json:"runs"`
	Kinds   []Finding `json:"kinds"`
	Largest float64   `json:"largest"` // gain of any kind, as a part of the job's value
	Notes   []string  `json:"notes"`
}

// Finding is what a kind of lie gains. Gains are parts of the jobs' values.
type Finding struct {
	Kind    string     `json:"kind"`
	Jobs    int        `json:"jobs"` // that could tell such a lie
	Lies    int        `json:"lies"` // told
	Gainers int        `json:"gainers"`
	Mean    float64    `json:"mean"` // of each job's best, 0 where the truth is
	CI      [2]float64 `json:"mean_95"`
	Largest float64    `json:"largest"`
	Job     int64      `json:"largest_job"`     // its number in the log; 0: none gains
	Size    int        `json:"largest_lie"`     // position among the lies of the kind
	Credits float64    `json:"largest_credits"` // the same gain in credits
	Gains   []float64  `json:"gains"`           // of each job that could
}

// rounding is how much of a job's value payments in whole microcredits and sums
// in floating point can look like.
const rounding = 1e-6

// add sums up a kind of lie.
func (r *Report) add(kind string, of []result) {
	f := Finding{Kind: kind, Gains: []float64{}}
	for i := range of {
		s := &of[i]
		r.Runs += s.runs
		if !s.could || s.value <= 0 {
			continue
		}
		f.Jobs++
		f.Lies += s.lies
		gain := s.gain / s.value
		f.Gains = append(f.Gains, gain)
		if gain > rounding {
			f.Gainers++
		}
		if gain > f.Largest {
			f.Largest, f.Job, f.Size, f.Credits = gain, s.job, s.best, s.gain
		}
	}
	f.Mean, f.CI = confidence(f.Gains)
	r.Largest = max(r.Largest, f.Largest)
	if f.Jobs == 0 {
		r.Notes = append(r.Notes, "nobody could lie about "+kind+" here")
	}
	r.Kinds = append(r.Kinds, f)
}

// confidence is the mean with its 95 % interval, by the normal distribution.
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
