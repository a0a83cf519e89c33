package abacus

import (
	"math"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

const utilitiesName = "abacus-utilities"

// Utilities is the study of figure 11.
var Utilities = study.Study{
	Name:  utilitiesName,
	About: "figure 11: the weights that the estimator recovers from a user's runs, and how long it takes",
	Run:   utilities,
}

// In the paper's experiment, the true weights of user 3 have the ratio 6 to 1. The paper's estimates of this ratio are
// from 5 to 9.
const (
	trueRatio           = 6
	lowRatio, highRatio = 5, 9
)

// pointJobs is the number of jobs from which one estimate is computed. points is the number of estimates, which are the
// points of the paper's scatter plot.
const (
	pointJobs = 5
	points    = 20
)

// jobCounts are the numbers of jobs for which the variance is shown. The paper's text does not give its numbers.
var jobCounts = []int{5, 10, 15, 20, 30, 50}

// estimator has the results of one way to estimate the weights, over all repetitions of an experiment.
type estimator struct {
	Ratio    float64    `json:"median_ratio"`
	Within   float64    `json:"part_from_5_to_9"`
	Variance [2]float64 `json:"variance"` // variance of the weight of map and of the weight of reduce
}

type recovery struct {
	Jobs     int       `json:"jobs"`
	Plain    estimator `json:"least_squares"`
	Estimate estimator `json:"estimate"`
	Millis   float64   `json:"ms"` // median time of an estimate, with the time to draw its jobs
	Slowest  float64   `json:"slowest_ms"`
}

// utilitiesNumbers has the results of this study: the points of its scatter plot, and one result for each number of
// jobs. A point is a pair of weights, [map, reduce], estimated by least squares.
type utilitiesNumbers struct {
	Points [][]float64 `json:"points"`
	ByJobs []recovery  `json:"by_jobs"`
}

func utilities(o study.Options) (*study.Report, error) {
	repetitions := study.Sized(o, runs, quickRuns)
	n := &utilitiesNumbers{}
	shown := figure11(pointJobs, o.Seed)
	all, err := shown.repeat(points)
	if err != nil {
		return nil, err
	}
	for _, w := range all {
		if w.Plain != nil {
			n.Points = append(n.Points, w.Plain)
		}
	}
	for _, jobs := range jobCounts {
		r, err := recover11(jobs, repetitions, o.Seed)
		if err != nil {
			return nil, err
		}
		n.ByJobs = append(n.ByJobs, *r)
	}
	return &study.Report{Numbers: n, Page: n.page(repetitions), Figures: n.figures()}, nil
}

// recover11 repeats the experiment of figure 11. It runs one repetition after another, because it measures the time of
// each estimate.
func recover11(jobs, repetitions int, seed uint64) (*recovery, error) {
	var plain, estimate [][]float64
	var millis []float64
	for k := range repetitions {
		e := figure11(jobs, seed+uint64(k)<<16)
		began := time.Now()
		all, err := e.repeat(1)
		if err != nil {
			return nil, err
		}
		millis = append(millis, time.Since(began).Seconds()*1000)
		estimate = append(estimate, all[0].Estimate)
		if all[0].Plain != nil {
			plain = append(plain, all[0].Plain)
		}
	}
	return &recovery{Jobs: jobs, Plain: describe(plain), Estimate: describe(estimate),
		Millis: quantile(0.5, millis), Slowest: quantile(1, millis)}, nil
}

// describe summarises estimates of two weights, of map and of reduce. It uses their ratio, map divided by reduce. If
// the weight of reduce is not positive, the ratio counts as the largest float64.
func describe(weights [][]float64) estimator {
	var e estimator
	var ratios, each []float64
	for _, w := range weights {
		ratio := math.MaxFloat64
		if w[1] > 0 {
			ratio = w[0] / w[1]
		}
		ratios = append(ratios, ratio)
		if ratio >= lowRatio && ratio <= highRatio {
			e.Within += 1 / float64(len(weights))
		}
	}
	for j := range e.Variance {
		each = each[:0]
		for _, w := range weights {
			each = append(each, w[j])
		}
		e.Variance[j] = stat.Variance(each, nil)
	}
	e.Ratio = quantile(0.5, ratios)
	return e
}
