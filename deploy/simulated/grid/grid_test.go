package grid

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/network"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
)

var mechanisms = []string{rules.HighestBid, rules.Proportional, rules.FIFO, rules.FairShare}

// study draws a small crowded study.
func study(t *rapid.T, mechanism string) *core.Problem {
	w := &workload.Workload{Nodes: rapid.IntRange(1, 4).Draw(t, "nodes"), Parallel: workload.Split, Users: []int64{1, 2}, Groups: []int64{1}}
	at := 0
	for i := range rapid.IntRange(1, 15).Draw(t, "jobs") {
		at += rapid.IntRange(0, 90).Draw(t, "gap")
		w.Jobs = append(w.Jobs, workload.Job{Number: int64(i + 1), Line: i + 1, Submit: float64(at), Runtime: float64(rapid.IntRange(0, 300).Draw(t, "runtime")),
			Width: rapid.IntRange(1, 3).Draw(t, "width"), User: i % 2})
	}
	m := rules.Default(mechanism)
	if mechanism == rules.Proportional {
		m.Bids.Budget = 1
	}
	p := &core.Problem{Market: m, Work: w, Bids: m.Bids.Draw(w, rapid.Uint64().Draw(t, "seed")), Seed: rapid.Uint64().Draw(t, "run")}
	for i := range p.Bids { // enough for what a task costs until its end is heard of
		p.Bids[i].Budget += 1e6
	}
	return p
}

const ms = messages.Duration(1e6)

// check is what must hold whatever the network does; Run itself checks that the
// bank's books balance, no hold is left, and the site has what jobs paid.
func check(t *rapid.T, p *core.Problem, o *core.Outcome) {
	used, last := 0.0, p.Work.Jobs[0].Submit
	for i := range o.Jobs {
		r, j := &o.Jobs[i], &p.Work.Jobs[i]
		if r.Fate == core.Refused {
			continue
		}
		if r.Fate != core.Completed || r.Start < j.Submit || r.Finish < r.Start+j.Runtime-1e-6 || r.Paid < 0 || r.Paid.Float() > p.Bids[i].Budget+1e-6 {
			t.Fatalf("job %d: %+v of %+v", i, r, j)
		}
		used, last = used+r.Used, max(last, r.Finish)
	}
	if room := float64(p.Work.Nodes) * (last - p.Work.Jobs[0].Submit); used > room+1e-6 {
		t.Fatalf("%v slot-seconds were used, there were %v", used, room)
	}
}

// TestAllGoesWellWhateverTheNetwork: every job ends, once, and is charged once,
// though messages are lost, repeated and overtake each other.
func TestAllGoesWellWhateverTheNetwork(t *testing.T) {
	for _, name := range mechanisms {
		for kind, c := range map[string]network.Config{
			"good": {Delay: ms, Jitter: ms},
			"bad":  {Delay: ms, Jitter: 300 * ms, Loss: 0.15, Repeat: 0.15},
			"cut": {Delay: ms, Cuts: []network.Cut{{From: at(20), Until: at(50), Actors: []string{"n0"}},
				{From: at(60), Until: at(75), Actors: []string{bankActor}}}},
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					p := study(t, name)
					o, traffic, err := Run(p, Config{Network: c, Lease: messages.Duration(120e9)})
					if err != nil {
						t.Fatal(err)
					}
					check(t, p, o)
					again, other, err := Run(p, Config{Network: c, Lease: messages.Duration(120e9)})
					if err != nil || fmt.Sprint(again.Jobs) != fmt.Sprint(o.Jobs) || *other != *traffic {
						t.Fatalf("another run has another outcome: %v", err)
					}
				})
			})
		}
	}
}

// TestOneSlotIsTheCore: on one slot with serial jobs, where nothing is left to
// draws, first come first served does with all actors what the core does, but
// for the time that messages take.
func TestOneSlotIsTheCore(t *testing.T) {
	for _, name := range []string{rules.FIFO, rules.HighestBid} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				p := study(t, name)
				p.Work.Nodes = 1
				for i := range p.Work.Jobs { // apart by more than messages take
					j := &p.Work.Jobs[i]
					j.Width, j.Submit, j.Runtime = 1, float64(100*i), j.Runtime*7/3+float64(i)/4+10.4
					p.Bids[i].Length, p.Bids[i].Budget = j.Runtime, 1e9
					p.Bids[i].Rate += 2 // above the reserve
				}
				want, err := core.Run(p)
				if err != nil {
					t.Fatal(err)
				}
				got, _, err := Run(p, Config{Network: network.Config{Delay: ms / 10}})
				if err != nil {
					t.Fatal(err)
				}
				for i := range want.Jobs {
					if w, g := &want.Jobs[i], &got.Jobs[i]; math.Abs(w.Start-g.Start) > 1 || math.Abs(w.Finish-g.Finish) > 1 {
						t.Fatalf("job %d: %+v with all actors, %+v in the core: %+v", i, g, w, p.Work.Jobs)
					}
				}
			})
		})
	}
}

func TestWhatCannotBeRunIsRefused(t *testing.T) {
	w := &workload.Workload{Nodes: 2, Parallel: workload.Gang, Users: []int64{1}, Groups: []int64{1}, Jobs: []workload.Job{{Number: 1, Runtime: 5, Width: 2}}}
	for _, name := range []string{rules.Reservation, rules.FIFO} {
		m := rules.Default(name)
		if _, _, err := Run(&core.Problem{Market: m, Work: w, Bids: m.Bids.Draw(w, 1)}, Config{}); messages.KindOf(err) != messages.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	m := rules.Default(rules.FIFO)
	w.Jobs[0].Width = 1
	if _, _, err := Run(&core.Problem{Market: m, Work: w, Bids: m.Bids.Draw(w, 1)}, Config{Network: network.Config{Loss: 2}}); messages.KindOf(err) != messages.Invalid {
		t.Errorf("loss: %v", err)
	}
}
