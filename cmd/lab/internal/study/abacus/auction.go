package abacus

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/candor-grid/candor/auctioneer/mechanism/proportional"
	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

const auctionName = "abacus-auction"

// Auction is the study of figures 6 to 8.
var Auction = study.Study{
	Name:  auctionName,
	About: "figures 6-8: rounds and time against users, resources and α, means and 95 % quantiles over 1,000 runs",
	Run:   auction,
}

// A point of a figure is measured in many auctions. setting has the parameters that these auctions have in common.
type setting struct {
	users, classes int
	alpha          float64
	log            bool
}

// usual is the paper's default setting. Each figure varies one value.
var usual = setting{users: 32, classes: 4, alpha: 0.5}

// sweep is the axis of a figure. It has the values on the axis, and a function that puts one of these values into a
// setting.
type sweep struct {
	name, label string
	at          []float64
	set         func(*setting, float64)
}

var sweeps = []sweep{
	{"users", "users", []float64{8, 16, 32, 64, 128}, func(s *setting, x float64) { s.users = int(x) }},
	{"resources", "types of resources", []float64{2, 4, 6, 8, 10}, func(s *setting, x float64) { s.classes = int(x) }},
	{"alpha", "α", []float64{0.1, 0.3, 0.5, 0.7, 0.9}, func(s *setting, x float64) { s.alpha = x }},
}

// measured has results over the runs of a setting: means or medians, and 95 % quantiles.
type measured struct {
	At       float64 `json:"at"`
	Rounds   float64 `json:"rounds"` // rounds with settled rows until no sub-budget moves by more than coarse
	Rounds95 float64 `json:"rounds_95"`
	Steps    float64 `json:"single_step_rounds"` // the same with one step for each row
	Steps95  float64 `json:"single_step_rounds_95"`
	Exact    float64 `json:"single_step_rounds_exact"` // rounds until no sub-budget moves by more than 1e-12 of a budget
	Passes   float64 `json:"solver_passes"`
	Millis   float64 `json:"single_step_ms"` // median time of the rounds in Exact
	Millis95 float64 `json:"single_step_ms_95"`
	Solver   float64 `json:"solver_ms"` // median time of our solver
	Solver95 float64 `json:"solver_ms_95"`
}

// coarse is a change of a sub-budget between two rounds, as a fraction of the budget. A change that is not larger
// counts as no change. The paper gives no such limit. Its figures are in whole dollars, with budgets of at most 200.
const coarse = 0.005

const (
	runs      = 1000
	quickRuns = 20
)

// auctionNumbers has the results of the auctions. The first key is the property that the figure varies, and the second
// key is the kind of utility.
type auctionNumbers map[string]map[string][]measured

func auction(o study.Options) (*study.Report, error) {
	n := study.Sized(o, runs, quickRuns)
	numbers := auctionNumbers{}
	for k, sw := range sweeps {
		numbers[sw.name] = map[string][]measured{}
		for _, kind := range kinds {
			for _, x := range sw.at {
				s := usual
				s.log = kind == "log"
				sw.set(&s, x)
				m, err := s.measure(rand.New(rand.NewPCG(o.Seed, uint64(k))), n)
				if err != nil {
					return nil, err
				}
				m.At = x
				numbers[sw.name][kind] = append(numbers[sw.name][kind], *m)
			}
		}
	}
	return &study.Report{Numbers: numbers, Page: numbers.page(n), Figures: numbers.figures()}, nil
}

// draw draws budgets from U[50, 200] and weights from U[0.5, 2].
func (s *setting) draw(r *rand.Rand) *proportional.Problem {
	p := &proportional.Problem{Alpha: s.alpha, Classes: s.classes, Log: make([]bool, s.users)}
	for i := range s.users {
		p.Log[i] = s.log
		p.Budgets = append(p.Budgets, 50+150*r.Float64())
		for range s.classes {
			p.Weights = append(p.Weights, 0.5+1.5*r.Float64())
		}
	}
	return p
}

func (s *setting) measure(r *rand.Rand, n int) (*measured, error) {
	var solver proportional.Solver
	var rounds, steps, exact, passes, millis, solve []float64
	for range n {
		p := s.draw(r)
		k, err := roundsUntil(&solver, p, coarse)
		if err != nil {
			return nil, err
		}
		steps, rounds = append(steps, float64(k)), append(rounds, float64(settledRounds(p, coarse)))
		took, result, err := timed(func() (*proportional.Result, error) { return solver.Rounds(p, mostRounds) })
		if err != nil {
			return nil, err
		}
		exact, millis = append(exact, float64(result.Rounds)), append(millis, took)
		if took, result, err = timed(func() (*proportional.Result, error) { return solver.Solve(p) }); err != nil {
			return nil, err
		}
		passes, solve = append(passes, float64(result.Rounds)), append(solve, took)
	}
	return &measured{
		Rounds: stat.Mean(rounds, nil), Rounds95: quantile(0.95, rounds),
		Steps: stat.Mean(steps, nil), Steps95: quantile(0.95, steps),
		Exact: stat.Mean(exact, nil), Passes: stat.Mean(passes, nil),
		Millis: quantile(0.5, millis), Millis95: quantile(0.95, millis),
		Solver: quantile(0.5, solve), Solver95: quantile(0.95, solve),
	}, nil
}

// mostRounds is the number of rounds after which an auction is stopped if it has not ended by itself.
const mostRounds = 10_000

func timed(run func() (*proportional.Result, error)) (float64, *proportional.Result, error) {
	began := time.Now()
	r, err := run()
	return time.Since(began).Seconds() * 1000, r, err
}

// roundsUntil returns the number of the first round in which every sub-budget changes by at most a fraction of its
// job's budget. The argument `part` is this fraction.
func roundsUntil(s *proportional.Solver, p *proportional.Problem, part float64) (int, error) {
	var before []float64
	for k := 0; ; k++ {
		r, err := s.Rounds(p, k)
		if err != nil {
			return 0, err
		}
		most := 0.0
		for i, b := range before {
			most = max(most, math.Abs(r.Subbudgets[i]-b)/p.Budgets[i/p.Classes])
		}
		if before != nil && most <= part || k == mostRounds {
			return k, nil
		}
		before = append(before[:0], r.Subbudgets...)
	}
}

// Like roundsUntil, settledRounds returns the number of the first round in which every sub-budget changes by at most a
// fraction of its job's budget. But in its rounds, every job repeats its step until its row no longer changes (see
// repeated).
func settledRounds(p *proportional.Problem, part float64) int {
	r := newRepeated(p)
	for k := 1; ; k++ {
		if r.round() <= part || k == mostRounds {
			return k
		}
	}
}

// quantile sorts the values and returns their q-quantile.
func quantile(q float64, values []float64) float64 {
	slices.Sort(values)
	return stat.Quantile(q, stat.Empirical, values, nil)
}
