package reservation

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func BenchmarkSolve(b *testing.B) {
	for _, c := range [][2]int{{2000, 1440}, {10000, 10080}} {
		b.Run(fmt.Sprint(c), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			p := &Problem{Horizon: c[1]}
			for range c[0] {
				p.Bids = append(p.Bids, Bid{Length: 1 + r.IntN(100), Deadline: 1 + r.IntN(c[1]), Value: float64(1 + r.IntN(1000))})
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, e := Solve(p); e != nil {
					b.Fatal(e)
				}
			}
		})
	}
}
