package gu

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism/deadline"
	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

const figuresName = "gu-figures"

// Figures is the study of table 6 and figures 3 to 7 of the paper by Gu et al.
var Figures = study.Study{
	Name:  figuresName,
	About: "table 6 and figures 3-7 on the RICC log: value, tasks, λ, payments, groups (needs --traces)",
	Run:   figures,
}

// These are the values on the axes of the figures. capacities and scarcities are numbers of slots, divided by the
// average capacity. lambdas are values of λ.
var (
	capacities  = []float64{0.25, 0.5, 0.75, 1, 1.25, 1.5, 2}
	lambdas     = []float64{0, 0.2, 0.4, 0.6, 0.8, 1}
	scarcities  = []float64{0.25, 0.5, 0.75, 1}
	chosen      = 0.6 // the paper's choice of λ where capacity is short
	groupNumber = 5
)

// point has the results for one capacity. Only tasks of some records of the log count in the results: see "counted" in
// the package comment.
type point struct {
	Capacity float64 `json:"capacity"` // divided by the average capacity
	Slots    int     `json:"slots"`
	Offline  float64 `json:"offline_value"`
	OffTasks int     `json:"offline_tasks"`
	Paper    outcome `json:"paper"`         // λ = 0.6; no payments
	Plain    outcome `json:"lambda_0"`      // both rules at λ = 0
	Monotone outcome `json:"monotone"`      // λ = 0.6
	Grouped  outcome `json:"monotone_five"` // λ = 0.6, in five groups
}

type outcome struct {
	Value    float64 `json:"value"`
	Tasks    int     `json:"tasks"`
	Payments float64 `json:"payments,omitempty"`
}

// ratio compares the value that the online mechanism achieves with an upper bound of the achievable value, at one
// capacity. For each λ, Paper and Monotone have the quotient of these two under the rule of that name.
type ratio struct {
	Capacity float64   `json:"capacity"`
	Paper    []float64 `json:"paper"`
	Monotone []float64 `json:"monotone"`
}

type figureNumbers struct {
	Tasks           int       `json:"tasks"`
	AverageLength   float64   `json:"average_length"`
	AverageCapacity float64   `json:"average_capacity"`
	ByCapacity      []point   `json:"by_capacity"`
	Lambdas         []float64 `json:"lambdas"`
	ByLambda        []ratio   `json:"by_lambda"`
}

func figures(o study.Options) (*study.Report, error) {
	w := study.Sized(o, full, quick)
	log, err := o.Log(riccFile)
	if err != nil {
		return nil, err
	}
	c, err := draw(log.Jobs[:min(w.last, len(log.Jobs))], w, o.Seed)
	if err != nil {
		return nil, err
	}
	n := &figureNumbers{Tasks: c.number, AverageLength: c.length, AverageCapacity: c.average, Lambdas: lambdas}
	for _, x := range capacities {
		p, err := c.at(x, o.Seed)
		if err != nil {
			return nil, err
		}
		n.ByCapacity = append(n.ByCapacity, *p)
		o.Tell(len(n.ByCapacity), len(capacities)+len(scarcities), "%d slots: value %.4g online, %.4g offline", p.Slots, p.Monotone.Value, p.Offline)
	}
	for _, x := range scarcities {
		r, err := c.ratios(x)
		if err != nil {
			return nil, err
		}
		n.ByLambda = append(n.ByLambda, *r)
		o.Tell(len(capacities)+len(n.ByLambda), len(capacities)+len(scarcities), "%v of the average capacity: online value over its bound %.4g", r.Capacity, r.Monotone)
	}
	return &study.Report{Numbers: n, Page: n.page(), Figures: n.plots()}, nil
}

func (c *crowd) slots(part float64) int { return max(1, int(math.Round(part*c.average))) }

// at runs the auction with each rule. The number of slots is `part` times the crowd's average capacity.
func (c *crowd) at(part float64, seed uint64) (*point, error) {
	out := &point{Capacity: part, Slots: c.slots(part)}
	out.Offline, out.OffTasks = c.offline(out.Slots)
	var err error
	if out.Paper, err = c.run(out.Slots, deadline.Paper, chosen, false); err != nil {
		return nil, err
	}
	if out.Plain, err = c.run(out.Slots, deadline.Monotone, 0, true); err != nil {
		return nil, err
	}
	if out.Monotone, err = c.run(out.Slots, deadline.Monotone, chosen, true); err != nil {
		return nil, err
	}
	out.Grouped, err = c.grouped(out.Slots, seed)
	return out, err
}

func (c *crowd) run(slots int, rule deadline.Rule, lambda float64, pays bool) (outcome, error) {
	o, err := deadline.Run(&deadline.Problem{Capacity: slots, Lambda: lambda, Rule: rule, Tasks: c.tasks})
	if err != nil {
		return outcome{}, err
	}
	if !pays {
		return c.count(o.Completed, nil), nil
	}
	return c.count(o.Completed, o.Payments()), nil
}

// grouped serves the tasks under the rule Monotone with groups. It draws one of five groups for each task, and divides
// the slots among the groups.
func (c *crowd) grouped(slots int, seed uint64) (outcome, error) {
	r := rand.New(rand.NewPCG(seed, 1))
	g := &deadline.Groups{}
	for k := range groupNumber {
		g.Capacities = append(g.Capacities, max(1, (slots+k)/groupNumber))
	}
	for range c.tasks {
		g.Of = append(g.Of, r.IntN(groupNumber))
	}
	o, err := deadline.RunGroups(&deadline.Problem{Capacity: slots, Lambda: chosen, Rule: deadline.Monotone, Tasks: c.tasks}, g)
	if err != nil {
		return outcome{}, err
	}
	return c.count(o.Completed, o.Payments), nil
}

func (c *crowd) count(completed []bool, payments []float64) (out outcome) {
	for i, done := range completed {
		if !done || !c.counted[i] {
			continue
		}
		out.Value += c.tasks[i].Value
		out.Tasks++
		if payments != nil {
			out.Payments += payments[i]
		}
	}
	return out
}

// offline computes the paper's approximation of the best value. It takes tasks by descending value per unit of time, as
// long as they fit. Only some tasks are counted in the figures. offline returns the number of counted tasks that it has
// taken, and the sum of their values.
func (c *crowd) offline(slots int) (value float64, number int) {
	order := make([]int, len(c.tasks))
	for i := range order {
		order[i] = i
	}
	density := func(i int) float64 { return c.tasks[i].Value / float64(c.tasks[i].Length) }
	slices.SortStableFunc(order, func(i, k int) int { return cmp.Compare(density(k), density(i)) })
	room := slots * c.units
	for _, i := range order {
		if room -= c.tasks[i].Length; room < 0 {
			break
		}
		if c.counted[i] {
			value += c.tasks[i].Value
			number++
		}
	}
	return value, number
}

// bound returns an upper bound on the value that any schedule of the counted tasks can have. It takes the tasks in the
// order of value per unit of time, largest first. It adds their values until the tasks fill all slots from the first
// arrival to the last deadline. If only a part of the last task fits, the same part of its value is added.
func (c *crowd) bound(slots int) (value float64) {
	var own []deadline.Task
	first, last := math.MaxInt, math.MinInt
	for i, t := range c.tasks {
		if c.counted[i] {
			own, first, last = append(own, t), min(first, t.Arrival), max(last, t.Deadline)
		}
	}
	density := func(t deadline.Task) float64 { return t.Value / float64(t.Length) }
	slices.SortStableFunc(own, func(a, b deadline.Task) int { return cmp.Compare(density(b), density(a)) })
	room := float64(slots) * float64(last-first+1)
	for _, t := range own {
		length := float64(t.Length)
		value += t.Value * min(1, room/length)
		if room -= length; room <= 0 {
			break
		}
	}
	return value
}

// ratios runs the online mechanism once for each λ, the parameter of the mechanism. It divides the value of each run by
// an upper bound on the value of any schedule. The number of slots is `part` times the average capacity, which is the
// field average of the crowd.
func (c *crowd) ratios(part float64) (*ratio, error) {
	slots := c.slots(part)
	best := c.bound(slots)
	out := &ratio{Capacity: part}
	for _, lambda := range lambdas {
		paper, err := c.run(slots, deadline.Paper, lambda, false)
		if err != nil {
			return nil, err
		}
		monotone, err := c.run(slots, deadline.Monotone, lambda, false)
		if err != nil {
			return nil, err
		}
		out.Paper, out.Monotone = append(out.Paper, paper.Value/best), append(out.Monotone, monotone.Value/best)
	}
	return out, nil
}
