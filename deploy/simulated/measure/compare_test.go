package measure

import (
	"math"
	"testing"

	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
)

// Both measures of (1, 1, 1, 1), (1, 0, 0, 0) and (1, 2, 3) must have the values that were computed by hand.
func TestJainAndGini(t *testing.T) {
	for _, c := range []struct {
		x          []float64
		jain, gini float64
	}{{[]float64{1, 1, 1, 1}, 1, 0}, {[]float64{0, 1, 0, 0}, 0.25, 0.75}, {[]float64{3, 1, 2}, 36.0 / 42, 2.0 / 9}, {nil, 1, 0}} {
		if j, g := Jain(c.x), Gini(c.x); math.Abs(j-c.jain) > 1e-12 || math.Abs(g-c.gini) > 1e-12 {
			t.Errorf("%v: %v and %v, want %v and %v", c.x, j, g, c.jain, c.gini)
		}
	}
}

// The interval of the mean of 1, 2, 3, 4 must be the interval of Student's distribution. The mean is 2.5, its standard
// error √(5/3)/2, and Student's quantile for 3 degrees of freedom is 3.1824.
func TestTheJackknifeOfAMeanIsStudents(t *testing.T) {
	e := jackknife([]float64{9.0 / 3, 8.0 / 3, 7.0 / 3, 6.0 / 3}, 2.5)
	if want := 3.182446 * math.Sqrt(5.0/3) / 2; math.Abs(e.CI[1]-2.5-want) > 1e-5 || e.Mean != 2.5 || math.Abs(e.CI[0]+e.CI[1]-5) > 1e-12 {
		t.Errorf("%+v, want 2.5 ± %v", e, want)
	}
}

func crowd(t *testing.T, mechanism string) *Study {
	t.Helper()
	w := &workload.Workload{Nodes: 2, Parallel: workload.Split, Users: []int64{1, 2, 3}, Groups: []int64{7}}
	for i := range 40 {
		w.Jobs = append(w.Jobs, workload.Job{Number: int64(i), Submit: float64(20 * i), Runtime: float64(60 + i*37%200), Width: 1 + i%2, User: i % 3})
	}
	m := byDefault(mechanism)
	m.Worth = rules.ByRun
	b := m.Bids.Draw(w, 1)
	o, err := core.Run(&core.Problem{Market: m, Work: w, Bids: b})
	if err != nil {
		t.Fatal(err)
	}
	return &Study{Market: m, Work: w, Bids: b, Outcome: o}
}

// If a market is compared with itself, there must be no difference. For two different markets, Compare must report the
// difference of their measures. Both markets run the same jobs, so the confidence interval of the difference must be
// narrower than with different jobs.
func TestCompare(t *testing.T) {
	fifo, auction := crowd(t, rules.FIFO), crowd(t, rules.HighestBid)
	c := Compare([][]*Study{{fifo, fifo}, {fifo, fifo}, {auction, auction}})
	for _, name := range Measures {
		if e := c.Markets[1].Less[name]; e.Mean != 0 || e.Clear() {
			t.Errorf("%s: %+v from itself", name, e)
		}
		a, b := c.Markets[0].Measures[name], c.Markets[2].Measures[name]
		if e := c.Markets[2].Less[name]; math.Abs(e.Mean-(b.Mean-a.Mean)) > 1e-12 {
			t.Errorf("%s: %+v, %+v, difference %+v", name, a, b, e)
		}
	}
	wait := c.Markets[2].Less["wait"]
	if a, b := c.Markets[0].Measures["wait"], c.Markets[2].Measures["wait"]; wait.CI[1]-wait.CI[0] >= a.CI[1]-a.CI[0]+b.CI[1]-b.CI[0] {
		t.Errorf("%+v less %+v: %+v", b, a, wait)
	}
	jobs := 0
	for _, w := range c.Markets[0].Users {
		jobs += w.Jobs
	}
	if jobs != 40 || len(c.Markets[0].Widths) != 2 || c.Markets[0].Widths[0].Name != "up to 1" {
		t.Errorf("%+v %+v", c.Markets[0].Widths, c.Markets[0].Users)
	}
}
