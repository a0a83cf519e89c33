package proportional

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

func TestZZ(t *testing.T) {
	r := rand.New(rand.NewPCG(77, 78))
	var s Solver
	for _, c := range []struct {
		alpha float64
		count int
	}{{1, 2500}, {1 - 1e-13, 100}, {1 - 1e-9, 100}, {1 - 1e-6, 150}, {0.9999, 500}, {0.999, 500}, {0.99, 500}, {0.9, 400}, {.7, 300}, {.5, 300}, {.3, 300}, {.01, 200}} {
		t0, worst, beyond := time.Now(), time.Duration(0), 0
		for range c.count {
			p := extreme(r, c.alpha)
			t1 := time.Now()
			result, _ := s.Solve(p)
			worst = max(worst, time.Since(t1))
			if s.beyond {
				beyond++
			}
			if !result.Converged {
				t.Errorf("does not converge in %d passes: %+v", result.Rounds, p)
			}
			stays(t, p, result.Subbudgets)
		}
		fmt.Println(c.alpha, c.count, "beyond", beyond, "worst", worst, "all", time.Since(t0))
	}
}
