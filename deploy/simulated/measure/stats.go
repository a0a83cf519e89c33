package measure

import (
	"math"
	"math/big"
	"slices"

	"github.com/candor-grid/candor/deploy/simulated/bids"
	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
)

// Stats are the measures of a set of jobs. The names of the JSON keys do not change.
type Stats struct {
	Jobs      int `json:"jobs"`
	Completed int `json:"completed"`
	Discarded int `json:"discarded"`
	Expired   int `json:"expired"`
	Refused   int `json:"refused"`

	Wait     Spread `json:"wait"`
	Response Spread `json:"response"`
	Slowdown Spread `json:"bounded_slowdown"`
	Severe   int    `json:"severely_slowed"`

	Used       float64 `json:"slot_seconds"`
	Payments   float64 `json:"payments"`
	Receipts   float64 `json:"receipts"`
	Revenue    float64 `json:"revenue"`
	Payment    Spread  `json:"payment"` // net payment of jobs that completed
	Welfare    float64 `json:"welfare"`
	Surplus    float64 `json:"surplus"`
	Overcharge int     `json:"paid_above_value"` // jobs that paid more than all of their value
}

// Spread describes a distribution. It is all 0 if there are no values.
type Spread struct {
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	Max    float64 `json:"max"`
}

func spread(x []float64) Spread {
	if len(x) == 0 {
		return Spread{}
	}
	slices.Sort(x)
	var sum float64
	for _, v := range x {
		sum += v
	}
	at := func(q float64) float64 { return x[int(math.Ceil(q*float64(len(x))))-1] }
	return Spread{sum / float64(len(x)), at(0.5), at(0.95), x[len(x)-1]}
}

const (
	minute = 60 // in seconds; in a slowdown, a shorter run time counts as one minute
	severe = 5
)

// Stats measures the jobs at some positions of the workload.
func (s *Study) Stats(of []int) Stats {
	t := Stats{Jobs: len(of)}
	var in, out big.Int // sums of microcredits
	var wait, response, slowdown, payment []float64
	for _, i := range of {
		r, j := &s.Outcome.Jobs[i], &s.Work.Jobs[i]
		t.Used += r.Used
		if r.Paid > 0 {
			in.Add(&in, big.NewInt(int64(r.Paid)))
		} else {
			out.Sub(&out, big.NewInt(int64(r.Paid)))
		}
		t.Welfare += s.worth(i)
		if r.Paid.Float() > s.Bids[i].Worth(j)*(1+1e-9)+1e-6 {
			t.Overcharge++
		}
		switch r.Fate {
		case core.Discarded:
			t.Discarded++
		case core.Expired:
			t.Expired++
		case core.Refused:
			t.Refused++
		}
		if r.Fate != core.Completed {
			continue
		}
		t.Completed++
		flow := r.Finish - j.Submit
		slow := flow / max(j.Runtime, minute)
		if slow >= severe {
			t.Severe++
		}
		wait, response = append(wait, r.Start-j.Submit), append(response, flow)
		slowdown, payment = append(slowdown, slow), append(payment, r.Paid.Float())
	}
	t.Wait, t.Response, t.Slowdown, t.Payment = spread(wait), spread(response), spread(slowdown), spread(payment)
	t.Payments, t.Receipts = credits(&in), credits(&out)
	t.Revenue = credits(in.Sub(&in, &out))
	t.Surplus = t.Welfare - t.Revenue
	return t
}

// credits converts a sum of microcredits, which may be beyond 64 bits.
func credits(micro *big.Int) float64 {
	x, _ := new(big.Rat).SetFrac(micro, big.NewInt(int64(messages.Credit))).Float64()
	return x
}

// Study has the inputs of the measures: a problem and its outcome.
type Study struct {
	Market  *rules.Market
	Work    *workload.Workload
	Bids    []bids.Bid
	Outcome *core.Outcome
}

func (s *Study) worth(i int) float64 {
	return Worth(s.Market.Worth, &s.Work.Jobs[i], &s.Bids[i], &s.Outcome.Jobs[i])
}

// Worth returns what an outcome is worth to the owner of a job, by one of the measures in package
// rules.
func Worth(by string, j *workload.Job, b *bids.Bid, r *core.Job) float64 {
	switch by {
	case rules.ByDeadline:
		return b.Worth(j) * r.InTime
	case rules.ByDecay:
		if r.Fate != core.Completed {
			return 0
		}
		return b.Worth(j) * b.Left(j, r.Finish)
	case rules.ByRun:
		if r.Fate != core.Completed {
			return -b.Delay(j) * (r.Finish - j.Submit)
		}
		return b.Worth(j) - b.Delay(j)*(r.Start-j.Submit)
	}
	if r.Fate != core.Completed {
		return 0
	}
	return -b.Delay(j) * (r.Finish - j.Submit)
}
