package valuation

import (
	"encoding/json"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
	"github.com/candor-grid/candor/messages/job"
)

func closeTo(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= tolerance*math.Abs(want)
}

func TestSampleCases(t *testing.T) {
	for _, c := range casetest.Cases[map[string]any](t, "valuation.json") {
		t.Run(c["id"].(string), func(t *testing.T) {
			want := c["expect"].(map[string]any)
			c["t"] = want["t"]
			for _, told := range []string{"id", "informative", "expect"} {
				delete(c, told)
			}
			got := casetest.Solve[*output](t, SolveDocument, c)
			if a, falls := want["a"]; falls && (!closeTo(*got.A, a.(float64), 1e-14) || !closeTo(*got.B, want["b"].(float64), 1e-14)) {
				t.Errorf("a = %v, b = %v", *got.A, *got.B)
			}
			values := want["v"].([]any)
			if len(got.V) != len(values) {
				t.Fatalf("%d values of %d", len(got.V), len(values))
			}
			for i, v := range values {
				if !closeTo(got.V[i], v.(float64), 1e-12) {
					t.Errorf("v[%d] = %v, want %v", i, got.V[i], v)
				}
			}
		})
	}
}

func draw(t *rapid.T) job.Valuation {
	v := job.Valuation{Class: rapid.SampledFrom(job.ValuationClasses).Draw(t, "class"), Max: rapid.Float64Range(0, 1e6).Draw(t, "max")}
	seconds := rapid.Float64Range(0, 1e4)
	switch v.Class {
	case job.Sigmoidal:
		v.Epsilon = rapid.Float64Range(1e-9, 0.49).Draw(t, "eps")
		fallthrough
	case job.LinearDecay:
		v.Mu, v.Delta = seconds.Draw(t, "mu"), rapid.Float64Range(1e-3, 1e4).Draw(t, "delta")
	case job.Hard:
		v.Deadline = seconds.Draw(t, "deadline")
	case job.Recurrent:
		v.Workload, v.SecondsPerUnit = seconds.Draw(t, "workload"), rapid.Float64Range(1e-3, 10).Draw(t, "each")
	case job.Custom:
		at, part := seconds.Draw(t, "first"), 1.0
		for range rapid.IntRange(1, 5).Draw(t, "points") {
			part *= rapid.SampledFrom([]float64{1, 0.7, 0.1, 0}).Draw(t, "drop")
			v.Points = append(v.Points, job.ValuationPoint{At: at, Part: part})
			at += rapid.Float64Range(1e-3, 1e3).Draw(t, "more")
		}
	}
	return v
}

func made(t *rapid.T) *Curve {
	c, err := New(draw(t))
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

func TestAValuationNeverRises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := made(t)
		x := rapid.Float64Range(0, 3e4).Draw(t, "x")
		for _, more := range []float64{0, math.Nextafter(x, math.Inf(1)) - x, 1e-6, 1, 1e4} {
			if now, later := c.At(x), c.At(x+more); !(0 <= later && later <= now && now <= c.Max()) {
				t.Fatalf("%+v is worth %v at %v and %v at %v", c, now, x, later, x+more)
			}
		}
	})
}

// Latest returns the last time at which the value of a job still reaches a level. At this time the value must reach the
// level, and at any later time it must be below the level.
func TestLatestIsTheInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := made(t)
		level := rapid.Float64Range(0, 1).Draw(t, "level") * c.At(0)
		x, ever := c.Latest(level)
		if !ever {
			t.Fatalf("%+v never reaches %v, but starts at %v", c, level, c.At(0))
		}
		if math.IsInf(x, 1) {
			if c.At(1e15) < level {
				t.Fatalf("%+v always reaches %v, but ends at %v", c, level, c.At(1e15))
			}
			return
		}
		step := 1e-9 * (1 + x)
		if before := c.At(max(0, x-step)); before < level*(1-1e-12) {
			t.Fatalf("%+v is worth %v before %v, below %v", c, before, x, level)
		}
		if after := c.At(x + step); after > level*(1+1e-12) {
			t.Fatalf("%+v is worth %v after %v, above %v", c, after, x, level)
		}
	})
}

func TestLatestAtTheEdges(t *testing.T) {
	hard, _ := New(job.Valuation{Class: job.Hard, Max: 10, Deadline: 100})
	steps, _ := New(job.Valuation{Class: job.Custom, Max: 10, Points: []job.ValuationPoint{
		{At: 10, Part: 0.8}, {At: 20, Part: 0.8}, {At: 40, Part: 0.2}}})
	var nothing Curve
	tail, _ := New(job.Valuation{Class: job.Sigmoidal, Max: 1, Mu: 0, Delta: 2 * math.Log(99)}) // 1/(1+e^{x−b})
	for _, c := range []struct {
		curve *Curve
		level float64
		x     float64
		ever  bool
	}{
		{&hard, 10, 100, true},
		{&hard, 0.1, 100, true},
		{&hard, 0, math.Inf(1), true},
		{&hard, -1, math.Inf(1), true},
		{&hard, 10.5, 0, false},
		{&steps, 8, 20, true},
		{&steps, 5, 30, true},
		{&steps, 2, math.Inf(1), true},
		{&steps, 8.5, 0, false},
		{&tail, 1e-320, math.Log(99) + math.Log(math.MaxFloat64), true},
		{&nothing, 0, math.Inf(1), true},
		{&nothing, 1, 0, false},
	} {
		if x, ever := c.curve.Latest(c.level); x != c.x || ever != c.ever {
			t.Errorf("%+v reaches %v until %v, %v", c.curve, c.level, x, ever)
		}
	}
	if x, ever := hard.Latest(math.NaN()); !math.IsNaN(x) || ever {
		t.Errorf("NaN is reached until %v, %v", x, ever)
	}
}

// In these valuations the value falls so fast that float64 cannot represent the fall. Either the time of the fall is
// less than the distance between two neighbouring float64 numbers, or the slope is too large for a float64. The value
// must still fall from the maximum to 0. At the time Mu, when the fall begins, at least half of the maximum must be
// left. The value must never be NaN.
func TestAFallTooFastForADouble(t *testing.T) {
	for _, class := range []job.ValuationClass{job.LinearDecay, job.Sigmoidal} {
		for _, delta := range []float64{1e-15, 1e-309, math.SmallestNonzeroFloat64} {
			for _, mu := range []float64{0, 1000} {
				c, err := New(job.Valuation{Class: class, Max: 4, Mu: mu, Delta: delta})
				if err != nil {
					t.Fatal(err)
				}
				if at := c.At(mu); !(at >= 2 && at <= 4) || mu > 0 && c.At(999) != 4 || c.At(1001) != 0 {
					t.Errorf("%s, δ = %g at %g: %v, %v, %v", class, delta, mu, c.At(999), at, c.At(1001))
				}
				if x, ever := c.Latest(1); !ever || math.Abs(x-mu) > 1e-9 {
					t.Errorf("%s, δ = %g at %g: worth 1 until %v, %v", class, delta, mu, x, ever)
				}
				casetest.Solve[*output](t, SolveDocument, map[string]any{"class": class, "max": 4, "mu": mu, "delta": delta, "t": []float64{mu}})
			}
		}
	}
}

// A sigmoid falls from v(μ) = (1−ε)·max to v(μ+δ) = ε·max. In the case ε = 0, the curve must use the default, 0.01.
func TestSigmoidMeetsItsDefinition(t *testing.T) {
	for _, epsilon := range []float64{0, 1e-6, 0.01, 0.05, 0.3} {
		c, err := New(job.Valuation{Class: job.Sigmoidal, Max: 80, Mu: 300, Delta: 50, Epsilon: epsilon})
		if err != nil {
			t.Fatal(err)
		}
		if epsilon == 0 {
			epsilon = 0.01
		}
		if !closeTo(c.At(300), 80*(1-epsilon), 1e-12) || !closeTo(c.At(350), 80*epsilon, 1e-12) || c.At(325) != 40 {
			t.Errorf("ε = %v: %v at μ, %v half-way, %v at μ+δ", epsilon, c.At(300), c.At(325), c.At(350))
		}
	}
}

func TestDocumentWithLevels(t *testing.T) {
	out, err := SolveDocument([]byte(`{"class":"linear-decay","max":10,"mu":5,"delta":10,"t":[0,5,10,15,99],"levels":[0,5,10,11]}`))
	if err != nil {
		t.Fatal(err)
	}
	data, _ := json.Marshal(out)
	if want := `{"v":[10,10,5,0,0],"latest":[null,10,5,null]}`; string(data) != want {
		t.Errorf("%s, want %s", data, want)
	}
}

func TestBadDocuments(t *testing.T) {
	casetest.Refuses(t, SolveDocument, map[string]string{
		``:                                     "ends in the middle",
		`{"max":1}`:                            "class: the key is missing",
		`{"class":"hard"}`:                     "max: the key is missing",
		`{"class":"cubic","max":1}`:            `class: "cubic" is not one of`,
		`{"class":"hard","max":-1}`:            "max: must be from 0",
		`{"class":"hard","max":1,"mu":3}`:      `mu: a valuation of class "hard" does not have this field`,
		`{"class":"hard","max":1,"dead":3}`:    "dead: is no field",
		`{"class":"sigmoidal","max":1,"mu":3}`: "delta: must be positive",
		`{"class":"custom","max":1,"points":[{"at":1}]}`: "points[0].part: the key is missing",
	})
}

func BenchmarkAt(b *testing.B) {
	for _, v := range []job.Valuation{
		{Class: job.Sigmoidal, Max: 100, Mu: 2000, Delta: 1000},
		{Class: job.LinearDecay, Max: 100, Mu: 2000, Delta: 1000},
		{Class: job.Hard, Max: 100, Deadline: 2000},
	} {
		b.Run(string(v.Class), func(b *testing.B) {
			c, err := New(v)
			if err != nil {
				b.Fatal(err)
			}
			x := 0.0
			for b.Loop() {
				x += c.At(x)
			}
		})
	}
}
