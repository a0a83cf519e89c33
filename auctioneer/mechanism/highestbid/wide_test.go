package highestbid

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// wider draws problems in which some tasks take several nodes.
func wider(t *rapid.T, most int) *Problem {
	p := instances(t, most)
	for i := range p.Jobs {
		p.Jobs[i].Width = rapid.IntRange(0, p.Nodes).Draw(t, "width")
	}
	return p
}

// The test computes random markets in two ways: with Run, and with the type slow, which goes from second to second. The
// results must be equal. In each second, the tasks choose nodes in the order of their ranks. Each task takes nodes that
// are left, and pays for each of them.
func TestWideJobsAgainstSecondBySecond(t *testing.T) {
	passed := 0
	for range 20 {
		rapid.Check(t, func(t *rapid.T) {
			p := wider(t, 12)
			s := &slow{p: p, left: make([]float64, len(p.Jobs)), payment: make([]float64, len(p.Jobs)), seconds: make([][]float64, len(p.Jobs))}
			for i, j := range p.Jobs {
				s.left[i] = j.Runtime
			}
			s.run()
			passed += s.passed
			same(t, mustRun(t, p), s)
		})
	}
	if passed == 0 {
		t.Error("no job was ever passed over: this shows nothing")
	}
}

// With any widths, a job with a higher bid must not end later. Under HB no job may pay more than its bid.
func TestAHigherBidOfAWideJobNeverEndsLater(t *testing.T) {
	for range 5 {
		rapid.Check(t, func(t *rapid.T) {
			p := wider(t, 10)
			p.Rule.Algorithm = HB
			if len(p.Jobs) == 0 {
				return
			}
			for i := range p.Jobs {
				p.Jobs[i].Bid += p.Reserve
			}
			before, i := mustRun(t, p), rapid.IntRange(0, len(p.Jobs)-1).Draw(t, "who")
			for k, j := range p.Jobs {
				if most := j.Bid * j.Runtime * float64(j.width()); before.Payment[k] > most*(1+1e-12) {
					t.Fatalf("job %d pays %v, above %v: %+v", k, before.Payment[k], most, p)
				}
			}
			q := *p
			q.Jobs = slices.Clone(p.Jobs)
			q.Jobs[i].Bid += float64(rapid.IntRange(1, 8).Draw(t, "more")) / 2
			if after := mustRun(t, &q); after.Finish[i] > before.Finish[i] {
				t.Fatalf("job %d ends at %v with a bid of %v, and at %v with %v: %+v", i, before.Finish[i], p.Jobs[i].Bid, after.Finish[i], q.Jobs[i].Bid, p)
			}
		})
	}
}

// Two of three jobs of equal width can run at the same time. So the price of a slot is the third bid, 3. If the first
// job bids less than 3, it must wait, and if it bids more, it must run.
func TestOfEqualWidthsThePriceIsWhatIsEnough(t *testing.T) {
	p := &Problem{Nodes: 4, Rule: Rule{Algorithm: HB, Price: Kth}, Reserve: 1, Jobs: []Job{
		{Runtime: 1, Bid: 5, Width: 2}, {Runtime: 1, Bid: 4, Width: 2}, {Runtime: 1, Bid: 3, Width: 2}}}
	if o := mustRun(t, p); o.Payment[0] != 6 || o.Payment[1] != 6 || o.Payment[2] != 2 {
		t.Errorf("they pay %v, want 3 and 3 for a node-second, then the reserve", o.Payment)
	}
	for bid, start := range map[float64]float64{2.9: 1, 3.1: 0} {
		p.Jobs[0].Bid = bid
		if o := mustRun(t, p); o.Start[0] != start {
			t.Errorf("a bid of %v starts at %v, want %v", bid, o.Start[0], start)
		}
	}
}

// These are the examples of doc.go on 3 nodes. A and B take two nodes each, and C takes one. A and C run. B does not
// run, although it bids more than C. A pays the reserve, although A would not run with a bid below 4. If a job D, which
// takes 3 nodes, has the lowest bid of all, C pays D's bid, although C would also run with a lower bid.
func TestOfUnequalWidthsThePriceIsNotWhatIsEnough(t *testing.T) {
	p := &Problem{Nodes: 3, Rule: Rule{Algorithm: HB, Price: Kth}, Reserve: 1, Jobs: []Job{
		{Runtime: 1, Bid: 5, Width: 2}, {Runtime: 1, Bid: 4, Width: 2}, {Runtime: 1, Bid: 3}}}
	if o := mustRun(t, p); o.Payment[0] != 2 || o.Start[1] != 1 || o.Payment[2] != 1 {
		t.Errorf("they pay %v", o.Payment)
	}
	p.Jobs[0].Bid = 3.5
	if o := mustRun(t, p); o.Start[0] != 1 {
		t.Errorf("with 3.5 A starts at %v", o.Start[0])
	}
	p.Jobs[0].Bid, p.Jobs[1] = 5, Job{Runtime: 1, Bid: 2, Width: 3}
	if o := mustRun(t, p); o.Payment[0] != 4 || o.Payment[2] != 2 {
		t.Errorf("they pay %v", o.Payment)
	}
	p.Jobs[2].Bid = 1.5
	if o := mustRun(t, p); o.Start[2] != 0 {
		t.Errorf("with 1.5 C starts at %v", o.Start[2])
	}
}
