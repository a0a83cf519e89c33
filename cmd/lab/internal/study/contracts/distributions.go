package contracts

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/candor-grid/candor/auctioneer/mechanism/contract"
	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

const distributionsName = "contracts-distributions"

// Distributions is the study of figure 6.
var Distributions = study.Study{
	Name:  distributionsName,
	About: "figure 6: the utilities of 1,000 jobs whose types were estimated from three training sets",
	Run:   distributions,
}

// arrivalSeconds is the paper's mean time between arrivals.
const arrivalSeconds = 130

// loads are the values of the load: the fraction of the server's time that the jobs need. The paper does not give the
// load, so we chose these values.
var loads = []float64{0.8, 0.9, 0.95}

// size is the number of jobs, and the number of repetitions with other draws.
type size struct{ jobs, repetitions int }

var (
	fullSize  = size{1000, 10}
	quickSize = size{60, 2}
)

// The report lists the quantiles of the utilities at these levels. The quantile at 0.05, for example, is the utility
// below which a twentieth of the jobs are.
var levels = []float64{0.05, 0.1, 0.25, 0.5, 0.75, 0.9}

// distribution has the utilities of all jobs, over all repetitions of an experiment.
type distribution struct {
	Training  string         `json:"training"`
	Mean      study.Estimate `json:"mean"`
	Paid      study.Estimate `json:"paid"`
	Quantiles []float64      `json:"quantiles"` // quantiles at levels
	Means     []float64      `json:"means"`     // mean of each repetition
	Payments  []float64      `json:"payments"`  // mean payment of each repetition
	utilities []float64      // in ascending order
}

// loaded has the distributions at one load. They are in this order: first for each entry of the variable trainings,
// then for each entry of the variable controls.
type loaded struct {
	Load   float64        `json:"load"`
	Levels []float64      `json:"levels"`
	Sets   []distribution `json:"sets"`
}

func distributions(o study.Options) (*study.Report, error) {
	s := study.Sized(o, fullSize, quickSize)
	var numbers []loaded
	var figures []*study.Figure
	for _, load := range loads {
		n := loaded{Load: load, Levels: levels}
		for _, t := range slices.Concat(trainings, controls) {
			d, err := s.repeat(&t, load, o.Seed)
			if err != nil {
				return nil, err
			}
			n.Sets = append(n.Sets, *d)
			o.Tell(len(numbers)*(len(trainings)+len(controls))+len(n.Sets), len(loads)*(len(trainings)+len(controls)),
				"load %.2f, %s: utility %s, paid %s", load, t.name, d.Mean, d.Paid)
		}
		numbers, figures = append(numbers, n), append(figures, n.figure())
	}
	return &study.Report{Numbers: numbers, Page: distributionsPage(numbers, s), Figures: figures}, nil
}

func (s size) repeat(t *training, load float64, seed uint64) (*distribution, error) {
	d := &distribution{Training: t.name}
	for k := range s.repetitions {
		class, err := t.train(rand.New(rand.NewPCG(seed, uint64(k)<<1|1)))
		if err != nil {
			return nil, err
		}
		done, err := s.jobsOf(class, t.part, load, seed, uint64(k))
		if err != nil {
			return nil, err
		}
		sum, paid := 0.0, 0.0
		for _, j := range done {
			sum += j.utility
			paid += j.paid
			d.utilities = append(d.utilities, j.utility)
		}
		d.Means, d.Payments = append(d.Means, sum/float64(len(done))), append(d.Payments, paid/float64(len(done)))
	}
	slices.Sort(d.utilities)
	d.Mean, d.Paid = study.Estimated(d.Means), study.Estimated(d.Payments)
	for _, level := range levels {
		d.Quantiles = append(d.Quantiles, stat.Quantile(level, stat.Empirical, d.utilities, nil))
	}
	return d, nil
}

// The study repeats an experiment with several training sets. jobsOf draws the jobs of one repetition. These jobs are
// the same for all training sets.
func (s size) jobsOf(class contract.Sampler, part, load float64, seed, repetition uint64) ([]*job, error) {
	r := rand.New(rand.NewPCG(seed, repetition<<1))
	draw := contract.Valid(normal(1))
	var c cluster
	for range s.jobs {
		c.run(c.now + arrivalSeconds*r.ExpFloat64())
		t, err := draw(r)
		if err != nil {
			return nil, err
		}
		if err := c.arrive(t, load*arrivalSeconds*r.ExpFloat64(), class, r.Uint64(), part); err != nil {
			return nil, err
		}
	}
	c.run(math.Inf(1))
	return c.done, nil
}
