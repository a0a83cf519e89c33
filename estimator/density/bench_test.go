package density

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// normal draws n samples of L independent normal coordinates.
func normal(n, l int, seed uint64) *Data {
	r := rand.New(rand.NewPCG(seed, 1))
	d := &Data{Dimensions: l, Values: make([]float64, n*l)}
	for i := range d.Values {
		d.Values[i] = r.NormFloat64()
	}
	return d
}

func must[T any](tb testing.TB) func(T, error) T {
	return func(v T, err error) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return v
	}
}

func estimate(tb testing.TB, d *Data, rule Rule) *Density {
	tb.Helper()
	return must[*Density](tb)(New(d, must[*mat.SymDense](tb)(Bandwidth(d, rule))))
}

func BenchmarkLog(b *testing.B) {
	for _, l := range []int{1, 2, 3, 5} {
		b.Run(fmt.Sprintf("samples=1000/L=%d", l), func(b *testing.B) {
			f := estimate(b, normal(1000, l, 1), ScottFull)
			points := normal(64, l, 2)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				f.Log(points.At(i % 64))
			}
		})
	}
}

func BenchmarkDraws(b *testing.B) {
	f := estimate(b, normal(1000, 3, 1), ScottFull)
	bounds := &Bounds{Low: []float64{-2, -2, -2}, High: []float64{2, 2, 2}}
	for name, within := range map[string]*Bounds{"unbounded": nil, "within": bounds} {
		b.Run("10000/"+name, func(b *testing.B) {
			for b.Loop() {
				f.Draws(generator(1), 10_000, within)
			}
		})
	}
}

func BenchmarkBandwidth(b *testing.B) {
	d := normal(1000, 3, 1)
	for b.Loop() {
		must[*mat.SymDense](b)(Bandwidth(d, ScottFull))
	}
}

// fill returns a class with n samples, and the data from which they were taken. The samples have three coordinates.
// They come from 100 accounts.
func fill(tb testing.TB, n int) (*Class, *Data) {
	box := Bounds{Low: []float64{-10, -10, -10}, High: []float64{10, 10, 10}}
	c := must[*Class](tb)(NewClass(Config{Bounds: box}))
	d := normal(4096, 3, 3)
	for k := range n {
		if !c.Add(fmt.Sprintf("user-%d", k%100), d.At(k%4096)) {
			tb.Fatal("is outside")
		}
	}
	return c, d
}

func BenchmarkClassAdd(b *testing.B) {
	names := make([]string, 100)
	for a := range names {
		names[a] = fmt.Sprintf("user-%d", a)
	}
	for _, accounts := range []int{1, 100} {
		b.Run(fmt.Sprintf("accounts=%d", accounts), func(b *testing.B) {
			c, d := fill(b, 0)
			for i := 0; b.Loop(); i++ {
				if !c.Add(names[i%accounts], d.At(i%4096)) {
					b.Fatal("is outside")
				}
			}
		})
	}
}

func BenchmarkClassLog(b *testing.B) {
	c, d := fill(b, 1_000_000)
	must[*Density](b)(c.Estimate())
	for i := 0; b.Loop(); i++ {
		f, err := c.Estimate()
		if err != nil {
			b.Fatal(err)
		}
		f.Log(d.At(i % 4096))
	}
}

func BenchmarkClassBuild(b *testing.B) {
	for _, n := range []int{100, 1000, 100_000} {
		b.Run(fmt.Sprintf("samples=%d", n), func(b *testing.B) {
			c, _ := fill(b, n)
			for b.Loop() {
				if err := c.build(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
