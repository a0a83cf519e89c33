package profile

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
)

func TestMain(m *testing.M) { casetest.Main(m, 1000) }

// slow is a simple profile: a list of everything that is taken. For each question, it adds up the whole list.
type slow struct {
	nodes int
	taken []taken
}

type taken struct {
	start, end float64
	n          int
}

func (s *slow) free(t float64) int {
	free := s.nodes
	for _, x := range s.taken {
		if x.start <= t && t < x.end {
			free -= x.n
		}
	}
	return free
}

// soonest returns the first time, from t on, at which n nodes are free for a time of the given length. Only at the
// start or the end of an entry in s.taken can the number of free nodes grow. (At its start, because an entry with a
// negative n frees nodes.) So soonest tries t, and the start and the end of each entry.
func (s *slow) soonest(t, length float64, n int) float64 {
	best := math.Inf(1)
	at := []float64{t}
	for _, x := range s.taken {
		at = append(at, x.start, x.end)
	}
	for _, start := range at {
		if start >= t && start < best && s.window(start, length, n) {
			best = start
		}
	}
	return best
}

func (s *slow) window(start, length float64, n int) bool {
	if s.free(start) < n {
		return false
	}
	for _, x := range s.taken {
		for _, t := range []float64{x.start, x.end} {
			if t > start && t < start+length && s.free(t) < n {
				return false
			}
		}
	}
	return true
}

// instant draws random times. Several of them are often equal, and some are whole numbers.
func instant(most float64) *rapid.Generator[float64] {
	return rapid.Custom(func(t *rapid.T) float64 {
		x := math.Floor(rapid.Float64Range(0, most).Draw(t, "x"))
		return x / rapid.SampledFrom([]float64{1, 1, 3, 10}).Draw(t, "unit")
	})
}

// The test makes the same random changes to a Profile and to a slow reference implementation. All answers must be
// equal.
func TestFastIsSlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 12).Draw(t, "nodes")
		most := rapid.SampledFrom([]float64{10, 100, 1000}).Draw(t, "most")
		p, s, past := New(nodes), &slow{nodes: nodes}, math.Inf(-1)
		for range rapid.IntRange(0, 150).Draw(t, "steps") {
			start, length := instant(most).Draw(t, "start"), instant(most/4).Draw(t, "length")
			n := rapid.IntRange(1, nodes).Draw(t, "n")
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0, 1, 2, 3:
				start = p.Soonest(max(start, past), length, n)
				p.Insert(start, length, n)
				s.taken = append(s.taken, taken{start, start + length, n})
			case 4: // overbooks, and has no end
				if start >= past {
					p.Take(start, math.Inf(1), n)
					s.taken = append(s.taken, taken{start, math.Inf(1), n})
				}
			case 5, 6:
				for i, x := range s.taken {
					if x.start >= past {
						p.Take(x.start, x.end, -x.n)
						s.taken = slices.Delete(s.taken, i, i+1)
						break
					}
				}
			case 7:
				p.pack()
			case 8:
				q := New(1)
				q.Insert(0, 5, 1)
				q.Copy(p)
				p.Insert(past, 1e9, 1) // a change of the original must not change the copy
				p = q
			case 9:
				if most == 100 {
					past = max(past, start/8)
					p.Forget(past)
				}
			}
			if !agree(t, p, s, past, most) {
				return
			}
		}
	})
}

func agree(t *rapid.T, p *Profile, s *slow, past, most float64) bool {
	at, length := max(past, instant(1.2*most).Draw(t, "at")), instant(most/2).Draw(t, "length")
	n := rapid.IntRange(-1, s.nodes+1).Draw(t, "n")
	if got, want := p.Free(at), s.free(at); got != want {
		t.Fatalf("free(%v) = %d, want %d; %+v", at, got, want, s)
	}
	want := s.soonest(at, length, n)
	if got := p.Soonest(at, length, n); got != want {
		t.Fatalf("soonest(%v, %v, %d) = %v, want %v; %+v", at, length, n, got, want, s)
	}
	deadline := at + instant(most).Draw(t, "deadline")
	got, ok := p.Within(at, deadline, length, n)
	if fits := want+length <= deadline; ok != fits || ok && got != want || !ok && !math.IsInf(got, 1) {
		t.Fatalf("within(%v, %v, %v, %d) = %v, %v; soonest is %v; %+v", at, deadline, length, n, got, ok, want, s)
	}
	return true
}

// The tree must have hundreds of nodes on several levels. The test makes so many changes that the method pack rebuilds
// the tree many times.
func TestLargeProfile(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const nodes, span = 16, 4000
	p, array := New(nodes), make([]int, span)
	for i := range array {
		array[i] = nodes
	}
	var live []taken
	for step := range 20_000 {
		if len(live) > 0 && rng.IntN(100) < 45+step/5000 {
			i := rng.IntN(len(live))
			x := live[i]
			live[i] = live[len(live)-1]
			live = live[:len(live)-1]
			p.Insert(x.start, x.end-x.start, -x.n)
			fill(array, x, 1)
			continue
		}
		from, length, n := rng.IntN(span/2), 1+rng.IntN(40), 1+rng.IntN(nodes)
		want := firstFit(array, from, length, n)
		start := p.Soonest(float64(from), float64(length), n)
		if want < 0 {
			if start+float64(length) <= span {
				t.Fatalf("step %d: found %v where nothing is", step, start)
			}
			continue
		}
		if start != float64(want) {
			t.Fatalf("step %d: soonest(%d, %d, %d) = %v, want %d", step, from, length, n, start, want)
		}
		x := taken{start, start + float64(length), n}
		p.Insert(start, float64(length), n)
		fill(array, x, -1)
		live = append(live, x)
	}
	for i, free := range array {
		if got := p.Free(float64(i) + 0.5); got != free {
			t.Fatalf("free(%d) = %d, want %d", i, got, free)
		}
	}
	if p.steps > 5*len(live)+300 {
		t.Errorf("%d breakpoints for %d jobs", p.steps, len(live))
	}
}

// The array has an entry for each unit of time. fill adds n nodes to the entries for the time of x (with sign −1, it
// subtracts them). The function firstFit searches in such an array.
func fill(array []int, x taken, sign int) {
	for i := int(x.start); i < int(x.end); i++ {
		array[i] += sign * x.n
	}
}

func firstFit(array []int, from, length, n int) int {
	run := 0
	for i := from; i < len(array); i++ {
		run++
		if array[i] < n {
			run = 0
		}
		if run == length {
			return i - length + 1
		}
	}
	return -1
}

func TestEdges(t *testing.T) {
	p, inf := New(4), math.Inf(1)
	p.Insert(10, 5, 3)
	for _, c := range []struct {
		t, length float64
		n         int
		want      float64
	}{
		{0, 10, 2, 0},                  // ends when the other window begins
		{0, 10.5, 2, 15},               // would overlap with the other window
		{0, 10.5, 1, 0},                // runs at the same time, on other nodes
		{12, 0, 1, 12}, {12, 0, 2, 15}, // at an instant
		{0, inf, 2, 15}, {0, inf, 1, 0}, // without an end
		{-inf, 1, 4, -inf}, {20, 1, 4, 20},
		{0, 1, 5, inf}, {0, 1, math.MaxInt, inf}, // wider than the machine
		{0, 1, 0, 0}, {12, 9, -1, 12},
	} {
		if got := p.Soonest(c.t, c.length, c.n); got != c.want {
			t.Errorf("soonest(%v, %v, %d) = %v, want %v", c.t, c.length, c.n, got, c.want)
		}
	}
	for _, x := range []float64{math.NaN(), 0, -3} { // the interval is empty
		p.Insert(1, x, 4)
		p.Insert(math.NaN(), x, 4)
	}
	if p.Free(1) != 4 || p.steps != 3 {
		t.Errorf("%d free, %d breakpoints", p.Free(1), p.steps)
	}
	p.Insert(math.Inf(-1), inf, 1) // −∞+∞ is NaN
	if p.Free(0) != 4 {
		t.Errorf("%d free", p.Free(0))
	}
	p.Reset(2)
	if p.Free(12) != 2 || p.nodes != 2 || p.steps != 1 {
		t.Errorf("after Reset: %d of %d free", p.Free(12), p.nodes)
	}
}

func TestScaling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q := New(8), New(8)
		for range rapid.IntRange(1, 60).Draw(t, "jobs") {
			length, n := instant(30).Draw(t, "length"), rapid.IntRange(1, 8).Draw(t, "n")
			a, b := p.Soonest(0, length, n), q.Soonest(0, 2*length, n)
			if 2*a != b {
				t.Fatalf("%v and %v", a, b)
			}
			p.Insert(a, length, n)
			q.Insert(b, 2*length, n)
		}
	})
}

func TestNothingIsAllocatedAgain(t *testing.T) {
	p, q := New(64), New(64)
	rebuild := func() {
		p.Reset(64)
		for i := range 500 {
			length, n := float64(1+i*7%13), 1+i*11%32
			p.Insert(p.Soonest(0, length, n), length, n)
		}
		q.Copy(p)
	}
	rebuild()
	if n := testing.AllocsPerRun(10, rebuild); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
