package highestbid

import (
	"math"
	"math/rand/v2"
	"testing"
)

// queue draws a crowded market with the paper's distribution of values: 80 % around 30, 20 % around 150.
func queue(r *rand.Rand, jobs int, price Price) *Problem {
	p := &Problem{Nodes: 2, Rule: Rule{HB, price, false}, Reserve: 1}
	at := 0.0
	for range jobs {
		v := 30 + 15*r.NormFloat64()
		if r.Float64() < 0.2 {
			v += 120
		}
		v = math.Round(max(1, v))
		at += math.Round(550 * r.ExpFloat64())
		p.Jobs = append(p.Jobs, Job{Submit: at, Runtime: math.Ceil(min(600*math.Exp(r.NormFloat64()), 36000)), Value: v, Bid: v})
	}
	return p
}

// TestMeasuredGains measures what a fixed lie gains on average, as a part of a job's value, over 200 jobs of 40
// markets.
func TestMeasuredGains(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		for _, price := range []Price{Kth, Pivot} {
			factors := []float64{0.5, 2, 4}
			if price == Kth {
				factors = []float64{2}
			}
			for _, factor := range factors {
				mean, margin := measured(t, seed, price, factor)
				t.Logf("seed %d, %-5s bidding %-4v times the value: %+.3f [%+.3f, %+.3f] of the value", seed, price, factor, mean, mean-margin, mean+margin)
				switch {
				case price == Pivot && !(mean <= 0):
					t.Errorf("seed %d: at pivot prices bidding %v times the value gains %v", seed, factor, mean)
				case price == Kth && factor == 2 && mean-margin <= 0:
					t.Errorf("seed %d: the control has no power: at k-th prices bidding twice the value gains %v ± %v", seed, mean, margin)
				}
			}
		}
	}
}

// measured returns the mean gain, and half of its 95 % confidence interval.
func measured(t *testing.T, seed uint64, price Price, factor float64) (mean, margin float64) {
	var gains []float64
	for market := range 40 {
		r := rand.New(rand.NewPCG(seed, uint64(market)))
		p := queue(r, 60, price)
		truth := mustRun(t, p)
		for range 5 {
			i := r.IntN(len(p.Jobs))
			p.Jobs[i].Bid *= factor
			lie := mustRun(t, p)
			p.Jobs[i].Bid = p.Jobs[i].Value
			gains = append(gains, (lie.Utility[i]-truth.Utility[i])/(p.Jobs[i].Value*p.Jobs[i].Runtime))
		}
	}
	for _, g := range gains {
		mean += g / float64(len(gains))
	}
	for _, g := range gains {
		margin += (g - mean) * (g - mean)
	}
	return mean, 1.96 * math.Sqrt(margin) / float64(len(gains))
}
