package density

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

func truth(t testing.TB) *Density {
	f, err := New(&Data{Dimensions: 2, Values: []float64{2000, 1000}}, mat.NewSymDense(2, []float64{1e6, 0, 0, 250000}))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFig7(t *testing.T) {
	tr := truth(t)
	for _, rule := range []Rule{ScottFull, CrossValidated} {
		for _, n := range []int{5, 10, 20, 30, 50, 100, 200, 500} {
			m, q := 0.0, 0.0
			reps := 60
			for s := range reps {
				v, _ := tr.Draws(rand.New(rand.NewPCG(uint64(s), 9)), n, nil)
				f := estimate(t, &Data{Dimensions: 2, Values: v}, rule)
				k, _, _ := Divergence(tr, f, 500, uint64(s))
				m += k
				q += k * k
			}
			m /= float64(reps)
			fmt.Printf("%s n=%d mean %.3f var %.4f\n", rule, n, m, q/float64(reps)-m*m)
		}
	}
}

func TestPoison(t *testing.T) {
	tr := truth(t)
	box := Bounds{Low: []float64{-10000, -10000}, High: []float64{20000, 20000}}
	lies := map[string]func(r *rand.Rand) []float64{
		"corner":   func(r *rand.Rand) []float64 { return []float64{20000, 20000} },
		"shift3":   func(r *rand.Rand) []float64 { return []float64{2000 + 3000, 1000} },
		"shift4":   func(r *rand.Rand) []float64 { return []float64{2000 + 4000, 1000} },
		"shift2.5": func(r *rand.Rand) []float64 { return []float64{2000 + 2500, 1000 + 600} },
		"spread":   func(r *rand.Rand) []float64 { return []float64{r.Float64()*30000 - 10000, r.Float64()*30000 - 10000} },
	}
	for _, n := range []int{200, 2000} {
		for name, lie := range lies {
			for _, mode := range []string{"honest", "raw", "screened"} {
				r := rand.New(rand.NewPCG(1, 9))
				c, _ := NewClass(Config{Bounds: box})
				var raw []float64
				x := make([]float64, 2)
				for k := range n {
					a := k % 40
					tr.Draw(r, x)
					y := x
					reps := 1
					if a < 2 && mode != "honest" {
						y = lie(r)
						reps = 5
					}
					for range reps {
						if err := c.Add(fmt.Sprint("u", a), y); err != nil {
							t.Fatal(err)
						}
						raw = append(raw, y...)
					}
				}
				f, err := c.Estimate()
				if err != nil {
					t.Fatal(err)
				}
				if mode == "raw" {
					f = estimate(t, &Data{Dimensions: 2, Values: raw}, ScottFull)
				}
				k, _, _ := Divergence(tr, f, 3000, 1)
				fmt.Printf("n=%d %s %s KL %.3f screened %.3f sd %.0f\n", n, name, mode, k, c.screened, math.Sqrt(f.H().At(0, 0)))
			}
		}
	}
}

func TestCompact(t *testing.T) {
	for _, l := range []int{1, 2, 3} {
		n := 50000
		d := normal(n, l, 5)
		f := estimate(t, d, ScottFull)
		b := Bounds{}
		for range l {
			b.Low = append(b.Low, -10)
			b.High = append(b.High, 10)
		}
		for _, acc := range []int{1, 100, 2000} {
			c, _ := NewClass(Config{Bounds: b})
			for k := range n {
				c.Add(fmt.Sprint("u", k%acc), d.At(k))
			}
			g, _ := c.Estimate()
			k, se, _ := Divergence(f, g, 300, 1)
			one, _ := New(&Data{Dimensions: l, Values: make([]float64, l)}, eye(l))
			k1, _, _ := Divergence(one, g, 2000, 1)
			k2, _, _ := Divergence(one, f, 300, 1)
			fmt.Printf("L=%d acc=%d KL %.5f ±%.5f truth-compact %.5f truth-full %.5f H %v screened %v\n", l, acc, k, se, k1, k2, g.H().At(0, 0), c.screened)
		}
	}
}
func eye(l int) *mat.SymDense {
	m := mat.NewSymDense(l, nil)
	for i := range l {
		m.SetSym(i, i, 1)
	}
	return m
}
