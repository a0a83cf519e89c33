package reservation

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

func TestQ(t *testing.T) {
	for _, c := range [][4]int{{2000, 64, 96, 16}, {2000, 64, 1440, 100}, {2000, 128, 200, 100}, {200, 64, 96, 16}, {60, 64, 96, 16}, {30, 8, 50, 16}, {2000, 512, 1440, 100}, {12, 8, 50, 16}} {
		r := rand.New(rand.NewPCG(1, 2))
		p := &Problem{Nodes: c[1], Horizon: c[2]}
		for range c[0] {
			p.Bids = append(p.Bids, Bid{Length: 1 + r.IntN(c[3]), Deadline: 1 + r.IntN(c[2]), Value: float64(1 + r.IntN(1000)), Width: 1 + r.IntN(c[1])})
		}
		m := newMoney(p.Bids)
		a := newPlacer(p)
		l := newLedger(m)
		t0 := time.Now()
		for k := range 1000 {
			o := r.Perm(c[0])
			a.place(o)
			l.add(k, l.value(a.start), a.start)
		}
		dt := time.Since(t0)
		pl := newPlan(p, 1)
		out := fmt.Sprint(c, " stride ", pl.stride, " random1000 ", l.best, " in ", dt)
		for _, kind := range []string{"order", "lanes"} {
			tr := newTrial(pl, p, m)
			t0 := time.Now()
			n := 0
			for c := 0; n < 200; c++ {
				if pl.kind(c) == kind {
					n++
					tr.try(c)
				}
			}
			out += fmt.Sprint("; ", kind, " ", tr.ledger.best, " which ", tr.ledger.which, " in ", time.Since(t0)/200)
			if kind == "lanes" {
				d := division{}
				pl.divide(tr.ledger.which, &d)
				out += fmt.Sprint(" ", len(d.widths), " lanes ", d.widths[:min(12, len(d.widths))])
			}
		}
		fmt.Println(out)
	}
}
