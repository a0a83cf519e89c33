package abacus

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/candor-grid/candor/cmd/lab/internal/study"
	"github.com/candor-grid/candor/cmd/lab/internal/study/aria"
)

const sloName = "abacus-slo"

// SLO is the study of figure 14.
var SLO = study.Study{
	Name:  sloName,
	About: "figure 14: profit from jobs with deadlines, against an earliest-deadline scheduler like ARIA",
	Run:   slo,
}

// rates are the sizes of workloads, divided by the capacity of the cluster.
var rates = []float64{0.5, 1, 1.5, 2, 2.5, 3}

// The constants are the number of repetitions of each setting, the number of machines in the paper, and the range of
// the users' budgets.
const (
	sloRepeats      = 30
	quickSLORepeats = 2
	sloMachines     = 15
	leastBudget     = 50
	mostBudget      = 200
)

// deadlines says how long after its submission a job must be complete, in seconds.
type deadlines struct {
	Name string
	draw func(r *rand.Rand) float64
}

// The paper gives the range of its uniform distribution. For its normal distributions it gives only the variances, 2
// and 3, without a unit. We assume that the unit is square minutes. The mean of the paper's normal distributions is
// unknown; ours have the mean of the uniform distribution, 12.5 minutes.
var settings = []deadlines{
	{"normal, variance 2", func(r *rand.Rand) float64 { return 60 * (12.5 + math.Sqrt(2)*r.NormFloat64()) }},
	{"normal, variance 3", func(r *rand.Rand) float64 { return 60 * (12.5 + math.Sqrt(3)*r.NormFloat64()) }},
	{"uniform, 500 to 1000", func(r *rand.Rand) float64 { return 500 + 500*r.Float64() }},
}

// schedulers lists the compared schedulers. The profits in profits.Parts have the same order.
var schedulers = []string{"Abacus", "ARIA, spare slots used", "ARIA, spare slots idle"}

// profits has the profits of all schedulers, for one setting and one rate of arrivals. Each profit is divided by the
// sum of the budgets of all jobs.
type profits struct {
	Rate  float64          `json:"rate"`
	Jobs  float64          `json:"jobs"` // mean
	Parts []study.Estimate `json:"parts"`
	// Over is the profit of Abacus divided by the profit of ARIA, minus 1. ARIA here also uses the spare slots.
	Over study.Estimate `json:"over"`
}

// sloNumbers has the results. The key of the map is the distribution from which the deadlines were drawn.
type sloNumbers map[string][]profits

func slo(o study.Options) (*study.Report, error) {
	repeats := study.Sized(o, sloRepeats, quickSLORepeats)
	n := sloNumbers{}
	for _, d := range settings {
		for _, rate := range rates {
			p, err := d.measure(rate, repeats, o.Seed)
			if err != nil {
				return nil, err
			}
			n[d.Name] = append(n[d.Name], *p)
		}
	}
	return &study.Report{Numbers: n, Page: n.page(repeats), Figures: n.figures()}, nil
}

func (d *deadlines) measure(rate float64, repeats int, seed uint64) (*profits, error) {
	p := &profits{Rate: rate}
	parts, over := make([][]float64, len(schedulers)), []float64{}
	for k := range repeats {
		c := public(10, sloMachines)
		jobs := c.levelled(rate, d, rand.New(rand.NewPCG(seed, uint64(k))))
		earned, err := c.compare(jobs, seed<<16+uint64(k))
		if err != nil {
			return nil, fmt.Errorf("%s, rate %g: %w", d.Name, rate, err)
		}
		all := 0.0
		for _, j := range jobs {
			all += j.budget
		}
		for s, x := range earned {
			parts[s] = append(parts[s], x/all)
		}
		p.Jobs += float64(len(jobs)) / float64(repeats)
		over = append(over, earned[0]/max(earned[1], leastBudget)-1)
	}
	for _, x := range parts {
		p.Parts = append(p.Parts, study.Estimated(x))
	}
	p.Over = study.Estimated(over)
	return p, nil
}

// levelled draws jobs with deadlines and budgets, which are submitted at uniform times. It stops when the demand for
// one class of slots has reached `rate` times the supply of this class.
func (c *cluster) levelled(rate float64, d *deadlines, r *rand.Rand) (jobs []*mapReduce) {
	var work [classes]float64
	for i := 0; max(work[mapClass]/float64(c.slots[mapClass]), work[reduceClass]/float64(c.slots[reduceClass])) < rate*submitSeconds; i++ {
		u := i % len(c.users)
		j := c.job(u, submitSeconds*r.Float64(), r)
		j.budget = leastBudget + (mostBudget-leastBudget)*r.Float64()
		j.deadline = j.submitted + max(0, d.draw(r))
		for class := range classes {
			work[class] += float64(c.users[u].tasks[class]) * c.users[u].seconds[class]
		}
		jobs = append(jobs, j)
	}
	slices.SortStableFunc(jobs, bySubmission)
	return jobs
}

// compare runs the same jobs with each scheduler of the figure, and returns the profit of each scheduler. It changes
// the jobs.
func (c *cluster) compare(jobs []*mapReduce, seed uint64) ([]float64, error) {
	in := &aria.Instance{Slots: c.slots[:]}
	for _, j := range jobs {
		of := aria.Job{Submit: j.submitted, Deadline: j.deadline, Value: j.budget}
		for class := range classes {
			mean := c.users[j.user].seconds[class]
			of.Phases = append(of.Phases, aria.Phase{Class: class, Tasks: len(j.durations[class]), Mean: mean, Longest: mean * (1 + taskSpread)})
			of.Durations = append(of.Durations, j.durations[class])
		}
		in.Jobs = append(in.Jobs, of)
	}
	var earned []float64
	for _, rule := range []aria.Rule{aria.Spare, aria.Least} {
		in.Rule = rule
		r, err := aria.Schedule(in)
		if err != nil {
			return nil, err
		}
		earned = append(earned, r.Profit)
	}
	c.levels = rand.New(rand.NewPCG(seed, 1))
	s, err := c.run(jobs)
	if err != nil {
		return nil, err
	}
	return append([]float64{s.profit}, earned...), nil
}
