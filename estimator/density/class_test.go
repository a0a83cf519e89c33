package density

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/candor-grid/candor/messages"
)

// truthful returns the distribution of types of section IV of Huang et al.
func truthful(t testing.TB) *Density {
	f, err := New(&Data{Dimensions: 2, Values: []float64{2000, 1000}}, mat.NewSymDense(2, []float64{1e6, 0, 0, 250_000}))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

var template = Bounds{Low: []float64{-10_000, -10_000}, High: []float64{20_000, 20_000}}

// lies are functions that draw what liars submit, by name.
var lies = map[string]func(r *rand.Rand) []float64{
	"corner": func(*rand.Rand) []float64 { return []float64{20_000, 20_000} },
	"far":    func(*rand.Rand) []float64 { return []float64{12_000, 1000} },
	"edge":   func(*rand.Rand) []float64 { return []float64{6000, 1000} },
	"anywhere": func(r *rand.Rand) []float64 {
		return []float64{-10_000 + 30_000*r.Float64(), -10_000 + 30_000*r.Float64()}
	},
}

// poisoned makes an estimate from types that 40 accounts submit. There are n turns, and in each turn one account
// submits a type. If `lie` is not nil, two of the accounts lie, and submit five lies in each of their turns. poisoned
// returns two estimates: one with capped weights and screening, and one without.
func poisoned(t *testing.T, n int, lie func(*rand.Rand) []float64) (screened, raw *Density) {
	t.Helper()
	truth, r := truthful(t), rand.New(rand.NewPCG(5, 5))
	c := must[*Class](t)(NewClass(Config{Bounds: template}))
	all := &Data{Dimensions: 2}
	add := func(account int, x []float64) {
		if !c.Add(fmt.Sprintf("user-%d", account), x) {
			t.Fatal("is outside")
		}
		all.Values = append(all.Values, x...)
	}
	for k := range n {
		if account := k % 40; account >= 2 || lie == nil {
			x := make([]float64, 2)
			truth.DrawWithin(r, &template, x)
			add(account, x)
			continue
		}
		for range 5 {
			add(k%40, lie(r))
		}
	}
	return must[*Density](t)(c.Estimate()), estimate(t, all, ScottFull)
}

// 5 % of the accounts lie. They submit a fifth of all types. Lies far from all honest types must not move the estimate.
// Lies at the edge of the honest types may move it a little. For comparison, an estimate can include all samples with
// full weight. The move must be at most three quarters of the move of this other estimate.
func TestPoisoning(t *testing.T) {
	truth := truthful(t)
	from := func(f *Density) float64 {
		k, _, err := Divergence(truth, f, 3000, 1)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	for _, n := range []int{200, 2000} {
		f, _ := poisoned(t, n, nil)
		honest := from(f)
		for name, lie := range lies {
			screened, raw := poisoned(t, n, lie)
			s, r := from(screened), from(raw)
			t.Logf("%d turns, %s: divergence from the truth %.3f screened, %.3f not, %.3f without lies", n, name, s, r, honest)
			if limit := honest + 0.05; name != "edge" && s > limit || name == "edge" && s-honest > 0.75*(r-honest) {
				t.Errorf("%d turns, %s: divergence %.3f, raw %.3f, honest %.3f", n, name, s, r, honest)
			}
		}
	}
}

// The samples have two modes that are far apart. If a fifth of the accounts have the second mode, only samples at the
// edge of this mode may be removed. If a tenth of the accounts have the second mode, all its samples must be removed.
func TestMinoritiesStay(t *testing.T) {
	for minority, atLeast := range map[int]float64{30: 0.98, 20: 0.9, 10: 0} {
		d, accounts := normal(1000, 2, 3), make([]messages.Name, 1000)
		for k := range accounts {
			accounts[k] = fmt.Sprintf("user-%d", k%100)
			if k%100 < minority {
				d.At(k)[0] += 30
			}
		}
		majority, stay := 0, 0
		for k, kept := range must[[]bool](t)(Screen(d, accounts, DefaultInfluence)) {
			if kept && k%100 < minority {
				stay++
			} else if kept {
				majority++
			}
		}
		part := float64(stay) / float64(10*minority)
		if part < atLeast || atLeast == 0 && stay > 0 || majority < 10*(100-minority)-3 {
			t.Errorf("of a minority of %d %% stay %.3f (%d), want %.3f; of the others stay %d", minority, part, stay, atLeast, majority)
		}
	}
}

// In any number of dimensions, about one in a thousand of honest normal samples must be screened out.
func TestFalseAlarms(t *testing.T) {
	for _, l := range []int{1, 2, 3, 5} {
		lost := 0
		for seed := range uint64(5) {
			d := normal(1000, l, seed+10)
			for _, kept := range must[[]bool](t)(Screen(d, make([]messages.Name, 1000), DefaultInfluence)) {
				if !kept {
					lost++
				}
			}
		}
		if lost < 1 || lost > 40 {
			t.Errorf("L=%d: %d of 5000 screened out", l, lost)
		}
	}
}

func TestFewSamplesAreNotScreened(t *testing.T) {
	d := normal(Enough-1, 1, 1)
	d.Values[0] = 1e6
	if slices.Contains(must[[]bool](t)(Screen(d, make([]messages.Name, d.Len()), 2)), false) {
		t.Error("screened")
	}
	d.Values = append(d.Values, 0)
	if keep := must[[]bool](t)(Screen(d, make([]messages.Name, d.Len()), 2)); keep[0] {
		t.Error("not screened")
	}
}

// TestInfluence checks the limit on an account's weight. No account may have more than the limit. Accounts below the
// limit must keep their weights, and all other accounts must have exactly the limit.
func TestInfluence(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		n := 1 + r.IntN(40)
		accounts := make([]messages.Name, n)
		for k := range accounts {
			accounts[k] = fmt.Sprintf("user-%d", int(math.Abs(r.NormFloat64()*4)))
		}
		multiple := 1 + r.Float64()*3
		weights := must[[]float64](t)(Influence(accounts, nil, multiple))
		totals, counts, sum := map[string]float64{}, map[string]float64{}, 0.0
		for k, w := range weights {
			totals[accounts[k]] += w
			counts[accounts[k]]++
			sum += w
		}
		most := multiple * sum / float64(len(totals))
		for a, w := range totals {
			if w > most*(1+1e-9) || w < counts[a]*(1-1e-9) && w < most*(1-1e-9) {
				t.Fatalf("%s has %v of %v samples, may have %v", a, w, counts[a], most)
			}
		}
	}
	if _, err := Influence([]messages.Name{"a"}, []float64{1, 2}, 2); messages.KindOf(err) != messages.Invalid {
		t.Errorf("%v", err)
	}
}

// Without samples the estimate must be the prior, and 20 samples must replace it.
func TestClassBeginsWithThePrior(t *testing.T) {
	c := must[*Class](t)(NewClass(Config{Bounds: Bounds{Low: []float64{0}, High: []float64{100}}, Prior: []float64{70, 80, 90}}))
	last := 2.0
	for k := range 25 {
		s := must[*Summary](t)(c.Summary())
		if want := max(0, 1-float64(k)/20); !alike(s.Prior, want, 1e-12) || s.Samples != float64(k) || s.Effective != float64(k) {
			t.Fatalf("%d samples: %+v", k, s)
		}
		above := 0.0
		for _, x := range must[[]float64](t)(c.Draws(1, 2000)) {
			if x < 0 || x > 100 {
				t.Fatalf("drew %v", x)
			}
			if x > 60 {
				above += 1.0 / 2000
			}
		}
		if k%5 == 0 && above > last-0.02 && above > 0 {
			t.Errorf("%d samples: %.3f of the draws are near the prior, %.3f before", k, above, last)
		}
		if k%5 == 0 {
			last = above
		}
		if !c.Add("u", []float64{20 + float64(k%5)}) {
			t.Fatal("is outside")
		}
	}
}

// After a thousand samples of the same type, the density must be a narrow peak.
func TestConstantClass(t *testing.T) {
	for _, rule := range []Rule{"", SilvermanDiag} {
		c := must[*Class](t)(NewClass(Config{Bounds: Bounds{Low: []float64{0, 0}, High: []float64{1, 1000}}, Rule: rule}))
		for range 1500 {
			if !c.Add("u", []float64{0.5, 500}) {
				t.Fatal("is outside")
			}
		}
		values := must[[]float64](t)(c.Draws(1, 1000))
		_, mean, covariance := (&Data{Dimensions: 2, Values: values}).moments()
		if !alike(mean[0], 0.5, 1e-3) || !alike(mean[1], 500, 1e-3) || !alike(covariance.At(0, 0), 1e-6, 1e-6) || !alike(covariance.At(1, 1), 1, 0.2) {
			t.Errorf("mean %v, covariance %v", mean, mat.Formatted(covariance))
		}
	}
}

// The number of kernels must stay bounded, whether the samples come from one account or from thousands. All samples
// must be counted. The estimate must be about as good as one with a separate kernel for each sample.
func TestCompactFormIsBounded(t *testing.T) {
	truth := must[*Density](t)(New(&Data{Dimensions: 2, Values: []float64{0, 0, 6, 3}}, mat.NewSymDense(2, []float64{1, 0.5, 0.5, 1})))
	for _, accounts := range []int{1, 30, 3000} {
		c := must[*Class](t)(NewClass(Config{Bounds: Bounds{Low: []float64{-100, -100}, High: []float64{100, 100}}, Kernels: 512}))
		r, x := rand.New(rand.NewPCG(1, 1)), make([]float64, 2)
		const n = 20_000
		for k := range n {
			truth.Draw(r, x)
			if !c.Add(fmt.Sprintf("user-%d", k%accounts), x) {
				t.Fatal("is outside")
			}
		}
		sum := 0.0
		for _, g := range c.store.Groups {
			for _, w := range g.Weights {
				sum += w
			}
		}
		if f := must[*Density](t)(c.Estimate()); sum != n || c.store.used != 512 || f.Kernels() > 512 || len(c.store.Groups) > 257 {
			t.Errorf("%d accounts: weight %v, %d kernels, %d groups", accounts, sum, f.Kernels(), len(c.store.Groups))
		}
		values, _ := truth.Draws(r, 512, nil)
		sample, _, err := Divergence(truth, estimate(t, &Data{Dimensions: 2, Values: values}, ScottFull), 2000, 1)
		k, _, err2 := Divergence(truth, must[*Density](t)(c.Estimate()), 2000, 1)
		if t.Logf("%d accounts: divergence %.4f, of 512 samples %.4f", accounts, k, sample); err != nil || err2 != nil || k > 1.5*sample {
			t.Errorf("%d accounts: divergence %.4f, of 512 samples %.4f", accounts, k, sample)
		}
	}
}

// A class that was restored from a snapshot must give the same results for later samples as the class that was saved.
func TestSnapshot(t *testing.T) {
	config := Config{Bounds: Bounds{Low: []float64{-10, -10, -10}, High: []float64{10, 10, 10}}, Kernels: 64}
	c := must[*Class](t)(NewClass(config))
	d := normal(600, 3, 1)
	var restored *Class
	for k := range d.Len() {
		if k == 300 {
			restored = must[*Class](t)(RestoreClass(config, c.Snapshot()))
		}
		for _, class := range []*Class{c, restored} {
			if class == nil {
				continue
			}
			if !class.Add(fmt.Sprintf("user-%d", k%7), d.At(k)) {
				t.Fatal("is outside")
			}
		}
	}
	if err := errors.Join(c.build(), restored.build()); err != nil {
		t.Fatal(err)
	}
	for k := range d.Len() {
		if a, b := c.built.Log(d.At(k)), restored.built.Log(d.At(k)); a != b {
			t.Fatalf("log-density %v restored, %v", b, a)
		}
	}
}

func TestSnapshotRefuses(t *testing.T) {
	config := Config{Bounds: Bounds{Low: []float64{0}, High: []float64{10}}, Kernels: 64}
	c := must[*Class](t)(NewClass(config))
	for k := range 10 {
		if !c.Add(fmt.Sprintf("user-%d", k%2), []float64{float64(k)}) {
			t.Fatal("is outside")
		}
	}
	for name, harm := range map[string]func(s *Snapshot){
		"count":    func(s *Snapshot) { s.Count = math.NaN() },
		"widths":   func(s *Snapshot) { s.Widths = nil },
		"width":    func(s *Snapshot) { s.Widths[0] = 0 },
		"account":  func(s *Snapshot) { s.Groups[1].Account = s.Groups[0].Account },
		"value":    func(s *Snapshot) { s.Groups[1].Values[2] = 11 },
		"NaN":      func(s *Snapshot) { s.Groups[1].Values[2] = math.NaN() },
		"weight":   func(s *Snapshot) { s.Groups[0].Weights[0] = -1 },
		"lengths":  func(s *Snapshot) { s.Groups[0].Weights = s.Groups[0].Weights[:2] },
		"too many": func(s *Snapshot) { s.Groups[0].Weights, s.Groups[0].Values = ones(100), ones(100) },
	} {
		s := c.Snapshot()
		harm(s)
		if _, err := RestoreClass(config, s); messages.KindOf(err) != messages.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func ones(n int) []float64 { return slices.Repeat([]float64{1}, n) }

func TestClassRefuses(t *testing.T) {
	c := must[*Class](t)(NewClass(Config{Bounds: Bounds{Low: []float64{0}, High: []float64{1}}}))
	for _, x := range [][]float64{{0.5, 0.5}, {math.NaN()}, {-1}, {math.Inf(1)}, nil} {
		if c.Add("u", x) || c.store.Count != 0 {
			t.Errorf("%v is within", x)
		}
	}
}
