package proportional

import (
	"math/rand/v2"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// workload draws budgets and weights from the paper's ranges: U[50, 200] and U[0.5, 2].
func workload(n, m int, alpha, logs float64) *Problem {
	r := rand.New(rand.NewPCG(1, 2))
	p := &Problem{Alpha: alpha, Classes: m, Log: make([]bool, n)}
	for i := range n {
		p.Log[i] = r.Float64() < logs
		p.Budgets = append(p.Budgets, 50+150*r.Float64())
		for range m {
			p.Weights = append(p.Weights, 0.5+1.5*r.Float64())
		}
	}
	return p
}

func filled(t testing.TB, p *Problem, n int) *Market {
	k, err := NewMarket(p.Alpha, p.Classes, 1e-6)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := k.Arrive(p.Budgets[i], p.log(i), p.Weights[i*p.Classes:(i+1)*p.Classes]); err != nil {
			t.Fatal(err)
		}
	}
	k.Refresh()
	return k
}

// BenchmarkLive measures decisions when a job comes to a live market of 100,000 jobs, and when it leaves. In one case,
// Update is told which job changed. In the other, Allocate itself must find the change.
func BenchmarkLive(b *testing.B) {
	p := workload(100_001, 4, 0.5, 0.3)
	c, err := New(market.Market{Name: "main", Classes: []messages.Name{"a", "b", "c", "d"}})
	if err != nil {
		b.Fatal(err)
	}
	v := &mechanism.View{Classes: make([]mechanism.Class, 4)}
	for i, budget := range p.Budgets {
		credits, _ := messages.RoundCredits(budget)
		v.Jobs = append(v.Jobs, &mechanism.Job{Pending: []int{1, 1, 1, 1}, Running: make([]int, 4),
			Bid: &mechanism.Bid{Job: messages.JobID(i + 1), Budget: credits, Form: jobmsg.Linear, Weights: p.Weights[i*4 : i*4+4]}})
	}
	all, last := v.Jobs, v.Jobs[100_000]
	v.Jobs = all[:100_000]
	c.Allocate(v)
	b.Run("update", func(b *testing.B) {
		for b.Loop() {
			c.Update(v, []*mechanism.Job{last}, nil)
			c.Update(v, nil, []messages.JobID{last.Job})
		}
	})
	b.Run("allocate", func(b *testing.B) {
		for b.Loop() {
			v.Jobs = all
			c.Allocate(v)
			v.Jobs = all[:100_000]
			c.Allocate(v)
		}
	})
}
