package bids

import (
	"math"
	"math/rand/v2"

	"github.com/candor-grid/candor/deploy/simulated/workload"
)

// draw draws one bid. It always draws the same numbers in the same order: a change of one parameter must not change the
// numbers that depend on other parameters.
func (m *Model) draw(j *workload.Job, u *user, rng *rand.Rand) Bid {
	high, aggressive := rng.Float64() < m.Value.Share, rng.Float64() < m.Shading.Aggressive
	shade, slack, noise := rng.Float64(), rng.ExpFloat64(), rng.NormFloat64()
	if m.Users.By == "user" {
		high = u.high
	}
	b := Bid{High: high && m.Value.Distribution == "bimodal", Aggressive: aggressive}
	b.Value = micro(max(1e-6, u.factor*m.value(high, rng)))
	beta := m.Shading.Others
	if aggressive {
		beta = m.Shading.Beta
	}
	b.Rate = micro(max(1e-6, b.Value*(1-beta*shade)))
	b.Length = m.length(j, noise)
	b.Deadline = m.deadline(j, slack)
	b.Budget = max(1e-6, micro(m.Budget*b.Rate*b.Length*float64(j.Width)))
	return b
}

// micro rounds an amount to the microcredit, the smallest amount that a bid can state.
func micro(x float64) float64 {
	if x > 1e9 {
		return math.Round(x)
	}
	return math.RoundToEven(x*1e6) / 1e6
}

func (m *Model) value(high bool, rng *rand.Rand) float64 {
	v := &m.Value
	switch v.Distribution {
	case "normal":
		return Normal{v.Mean, v.Deviation}.positive(rng)
	case "lognormal":
		s2 := math.Log1p(v.Deviation * v.Deviation / (v.Mean * v.Mean))
		return v.Mean * math.Exp(math.Sqrt(s2)*rng.NormFloat64()-s2/2)
	case "exponential":
		return v.Mean * rng.ExpFloat64()
	case "uniform":
		return v.Min + (v.Max-v.Min)*rng.Float64()
	case "constant":
		return v.Mean
	}
	if high {
		return v.High.positive(rng)
	}
	return v.Low.positive(rng)
}

// positive draws until the number is positive. If this almost never happens, it returns the mean.
func (n Normal) positive(rng *rand.Rand) float64 {
	const tries = 1000
	for range tries {
		if x := n.Mean + n.Deviation*rng.NormFloat64(); x > 0 {
			return x
		}
	}
	return n.Mean
}

func (m *Model) length(j *workload.Job, noise float64) float64 {
	const least = 1 // in seconds; a job with a run time of 0 counts as this long
	switch m.Length.Declared {
	case "asked":
		if j.Asked > 0 {
			return j.Asked
		}
	case "noisy":
		return min(workload.MostTime, max(least, math.Round(j.Runtime*math.Exp(m.Length.Spread*noise))))
	}
	return max(least, j.Runtime)
}

// deadline returns a deadline that fits the job's real run time, not the declared one.
func (m *Model) deadline(j *workload.Job, slack float64) float64 {
	switch m.Deadline.Slack {
	case "none":
		return math.Inf(1)
	case "fixed":
		slack = 1
	}
	return j.Submit + math.Ceil(max(m.Deadline.Least, j.Runtime*(1+m.Deadline.Mean*slack)))
}
