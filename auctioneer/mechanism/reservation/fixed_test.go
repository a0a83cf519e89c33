package reservation

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// With fixed timetables, no bidder may gain by a false bid, even if value, length, width and deadline are all false.
// With timetables that are made for the bids, some false bids must gain.
func TestNoMisreportPaysOnFixedTimetables(t *testing.T) {
	gains := map[bool]int{}
	for _, fixed := range []bool{true, false} {
		r := rand.New(rand.NewPCG(7, 7))
		for k := range 2000 {
			p := &Problem{Nodes: 2 + r.IntN(6), Horizon: 10}
			for range 3 + r.IntN(6) {
				p.Bids = append(p.Bids, Bid{Length: 1 + r.IntN(6), Deadline: 1 + r.IntN(12), Value: float64(1 + r.IntN(12)), Width: 1 + r.IntN(p.Nodes)})
			}
			i, s := r.IntN(len(p.Bids)), Search{Candidates: 12, Seed: uint64(k), Fixed: fixed}
			truth, lie := p.Bids[i], p.Bids[i]
			lie.Value, lie.Length = float64(r.IntN(15)), max(1, lie.Length+r.IntN(5)-2)
			lie.Width, lie.Deadline = min(p.Nodes, max(1, lie.Width+r.IntN(5)-2)), max(1, lie.Deadline+r.IntN(7)-3)
			payoff := func(report Bid) float64 {
				q := *p
				q.Bids = slices.Clone(p.Bids)
				q.Bids[i] = report
				o, err := Find(&q, s)
				if err != nil {
					t.Fatal(err)
				}
				if o.Start[i] == Lost {
					return 0
				}
				worth := truth.Value
				if report.Length < truth.Length || report.Width < truth.Width || o.Start[i]+truth.Length > min(truth.Deadline, p.Horizon) {
					worth = 0 // the job cannot use this reservation
				}
				return worth - o.Payments[i]
			}
			if payoff(lie) > payoff(truth)+1e-9 {
				gains[fixed]++
			}
		}
	}
	if gains[true] != 0 || gains[false] == 0 {
		t.Errorf("lies that gain, of 2000: %d on fixed timetables, want none; %d on those made for the bids, want some", gains[true], gains[false])
	}
	t.Logf("of 2000 lies gain: %d on timetables made for the bids, %d on fixed ones", gains[false], gains[true])
}

// A fixed timetable does not depend on the bids. This test reports what fixed timetables are worth, compared with
// timetables made for the bids. Both have the same number of candidates.
func TestWhatFixedTimetablesAreWorth(t *testing.T) {
	for _, nodes := range []int{8, 100} {
		for _, candidates := range []int{200, 2000} {
			var made, fixed float64
			for seed := range uint64(5) {
				r := rand.New(rand.NewPCG(seed, 9))
				p := &Problem{Nodes: nodes, Horizon: 96}
				for range 60 {
					w := 1 + int(float64(nodes)*r.Float64()*r.Float64()*r.Float64())
					l := 1 + r.IntN(24)
					p.Bids = append(p.Bids, Bid{Length: l, Deadline: 96, Width: w, Value: float64(l*w) * (1 + 4*r.Float64())})
				}
				for _, f := range []bool{true, false} {
					o, err := Find(p, Search{Candidates: candidates, Seed: seed, Fixed: f})
					if err != nil {
						t.Fatal(err)
					}
					if f {
						fixed += o.Value
					} else {
						made += o.Value
					}
				}
			}
			t.Logf("60 bids on %d nodes, %d candidates: fixed timetables are worth %.2f of those made for the bids", nodes, candidates, fixed/made)
			if !(fixed > made/4 && fixed <= made*1.01) {
				t.Errorf("%v of %v", fixed, made)
			}
		}
	}
}
