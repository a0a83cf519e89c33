package solve

import (
	"math"
	"strconv"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile"
	"github.com/candor-grid/candor/estimator/utility"
	"github.com/candor-grid/candor/messages"
)

// utilityInput is the document of `candor solve utility`: the runs of one kind of job.
type utilityInput struct {
	Form        utility.Form `json:"form"`
	M           *int         `json:"m,omitempty"` // number of resources, to check the jobs; optional
	Jobs        []utilityJob `json:"jobs"`
	Nonnegative bool         `json:"nonnegative,omitempty"`
}

type utilityJob struct {
	Segments []utility.Segment `json:"segments,omitempty"`
	Average  []float64         `json:"average,omitempty"` // average of the segments; it replaces them, or is checked against them
	Utility  float64           `json:"utility"`
}

type utilityOutput struct {
	Rank           int         `json:"rank"`
	Weights        []float64   `json:"weights"` // null means the jobs do not determine the weights
	RSS            float64     `json:"rss"`
	StandardErrors []float64   `json:"standard_errors"` // null means there are no more jobs than weights
	Condition      *float64    `json:"condition"`       // null means the matrix does not have full rank
	Averages       [][]float64 `json:"averages"`
}

func solveUtility(data []byte) (any, error) {
	in, err := casefile.Read[utilityInput](data)
	if err != nil {
		return nil, err
	}
	averages, err := in.averages()
	if err != nil {
		return nil, err
	}
	g, err := utility.New(in.Form, len(averages[0]), 0)
	if err != nil {
		return nil, err
	}
	for i, average := range averages {
		if err := g.Observe(0, average, in.Jobs[i].Utility); err != nil {
			return nil, in.place(i, err)
		}
	}
	return in.present(g, averages)
}

func (in *utilityInput) averages() ([][]float64, error) {
	if len(in.Jobs) == 0 {
		return nil, casefile.Invalid("jobs", "is empty: give at least one")
	}
	averages := make([][]float64, len(in.Jobs))
	for i := range in.Jobs {
		average, err := in.Jobs[i].average()
		if err != nil {
			return nil, in.place(i, err)
		}
		if want := in.resources(averages[0]); want >= 0 && len(average) != want {
			return nil, casefile.Invalid("jobs["+strconv.Itoa(i)+"]", "must have shares of %d resources, has %d", want, len(average))
		}
		averages[i] = average
	}
	return averages, nil
}

// resources returns how many resources the usage of each job must list. It returns −1 if the document does not say how
// many.
func (in *utilityInput) resources(first []float64) int {
	switch {
	case in.M != nil:
		return *in.M
	case first != nil:
		return len(first)
	}
	return -1
}

// average returns the average of the job's segments. Without segments, it returns the average that the document gives.
// If the document has both, they must agree.
func (j *utilityJob) average() ([]float64, error) {
	if j.Segments == nil {
		if len(j.Average) == 0 {
			return nil, casefile.Invalid("segments", "the key is missing: give the job's segments, or its average")
		}
		return j.Average, nil
	}
	average, err := utility.Average(j.Segments)
	if err != nil || j.Average == nil {
		return average, err
	}
	return average, agree(j.Average, average)
}

// agree returns an error if the average shares that a document gives differ from the averages of the shares of the
// segments in a job's life.
func agree(given, average []float64) error {
	if len(given) != len(average) {
		return casefile.Invalid("average", "must have %d shares, like the segments, has %d", len(average), len(given))
	}
	for r, a := range average {
		if math.Abs(given[r]-a) > 1e-9 {
			return casefile.Invalid("average["+strconv.Itoa(r)+"]", "is %g, but the segments average %g: leave it out", given[r], a)
		}
	}
	return nil
}

// place returns an error with the path of job i ("jobs[i].") before the message.
func (in *utilityInput) place(i int, err error) error {
	e := messages.AsError("", err)
	return messages.Errorf(e.Kind, "jobs[%d].%s", i, e.Message)
}

func (in *utilityInput) present(g *utility.Regression, averages [][]float64) (any, error) {
	f := g.Fit()
	out := &utilityOutput{Rank: f.Rank, Weights: f.Weights, RSS: f.RSS, StandardErrors: f.StandardErrors, Averages: averages}
	if f.Weights == nil {
		return out, nil
	}
	out.Condition = &f.Condition
	if !in.Nonnegative {
		return out, nil
	}
	var err error
	out.StandardErrors = nil // drop the standard errors, because they come from the fit without the constraint
	out.Weights, out.RSS, err = g.Nonnegative()
	return out, err
}
