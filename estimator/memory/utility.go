package memory

import (
	"math"
	"slices"
	"strings"

	"github.com/candor-grid/candor/estimator/utility"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// kind identifies a set of runs that do the same work.
type kind struct {
	account messages.Name
	name    string
	market  messages.Name
	classes string // sorted names of the classes, separated by spaces
}

func kindOf(account messages.Name, name string, market messages.Name, classes []messages.Name) kind {
	return kind{account, name, market, strings.Join(classes, " ")}
}

type worth struct{ regression *utility.Regression }

// learnUtility learns from a completed job what its shares were worth.
func (m *Memory) learnUtility(o *job.Observation) {
	classes, shares, y, ok := Run(o)
	if !ok {
		return
	}
	k := m.kinds.Touch(kindOf(o.Account, o.Name, o.Market, classes), func() *worth {
		g, err := utility.New(job.Linear, len(classes), halfLife)
		if err != nil {
			return &worth{} // too many classes: check prevents this
		}
		return &worth{g}
	})
	if k.regression != nil {
		// If a share is out of range, the regression refuses the run and learns nothing from it.
		_ = k.regression.Observe(o.Ended, shares, y)
	}
}

// Run returns three things that a completed job shows about the worth of its shares: the classes of its stages, sorted
// by name; its share of each of these classes; and its utility (the result `worth`). The utility is the average number
// of busy slots from the job's submission to its end. If the job did not complete, or took no time, `ok` is false.
func Run(o *job.Observation) (classes []messages.Name, shares []float64, worth float64, ok bool) {
	response := o.Ended.Sub(o.Submitted).Seconds()
	if o.State != job.Completed || !(response > 0) || len(o.Stages) == 0 {
		return nil, nil, 0, false
	}
	work := 0.0
	for i := range o.Stages {
		s := &o.Stages[i]
		work += s.SlotTime.Seconds()
		classes = append(classes, s.Class)
	}
	slices.Sort(classes)
	classes = slices.Compact(classes)
	for _, class := range classes {
		share, known := shareOf(o.Shares, class)
		if !known {
			return nil, nil, 0, false
		}
		shares = append(shares, share)
	}
	return classes, shares, work / response, work > 0
}

// shareOf returns the average share of a class that a job had while tasks of the job waited for slots of this class. If
// the tasks never waited long enough for a record, the share is 1.
func shareOf(shares []job.ClassShare, class messages.Name) (share float64, known bool) {
	for _, s := range shares {
		switch {
		case s.Class != class:
		case s.Over <= 0:
			return 1, true
		default:
			return s.Allocated, s.Allocated >= 0 && s.Allocated <= 1+1e-6
		}
	}
	return 0, false
}

// leastWeight is the least weight of a class that the job uses, as a part of the largest weight. With weight 0 the job
// would never get a slot of this class.
const leastWeight = 0.01

// Utility returns how much a slot of each class is worth to a kind of job. The classes of the request may be in any
// order, and may be repeated.
func (m *Memory) Utility(r *market.UtilityRequest) (market.UtilityReply, error) {
	if len(r.Classes) == 0 || len(r.Classes) > job.MaxStages {
		return market.UtilityReply{}, messages.Errorf(messages.Invalid, "classes: there are %d; name the classes of the job's stages, 1 to %d", len(r.Classes), job.MaxStages)
	}
	classes := slices.Compact(slices.Sorted(slices.Values(r.Classes)))
	for _, class := range classes {
		if !messages.ValidFreeName(class) {
			return market.UtilityReply{}, messages.Errorf(messages.Invalid, "classes: %.64q is not a name: use a letter or digit, then at most 62 letters, digits, '.', '-' and '_'", class)
		}
	}
	even := slices.Repeat([]float64{1}, len(classes))
	k, _ := m.kinds.Get(kindOf(r.Account, r.Name, r.Market, classes))
	if k == nil || k.regression == nil || k.regression.Runs() == 0 {
		return defaultReply(classes, even), nil
	}
	e, err := k.regression.Estimate(even)
	if err != nil {
		return market.UtilityReply{}, err
	}
	return answer(classes, e), nil
}

func defaultReply(classes []messages.Name, weights []float64) market.UtilityReply {
	return market.UtilityReply{Utility: job.Utility{Form: job.Linear, Weights: named(classes, weights)}, Default: 1}
}

// answer is the reply for an estimate. It scales the weights so that their sum is the number of classes. The default
// weights have the same sum.
func answer(classes []messages.Name, e *utility.Estimate) market.UtilityReply {
	weights := slices.Clone(e.Weights)
	largest, sum := slices.Max(weights), 0.0
	for j := range weights {
		weights[j] = max(weights[j], leastWeight*largest)
		sum += weights[j]
	}
	scale := float64(len(weights)) / sum
	for j := range weights {
		weights[j] *= scale
	}
	r := defaultReply(classes, weights)
	r.Runs, r.Default, r.Determined = e.Fit.Runs, e.Default, e.Fit.Weights != nil
	r.Residual = relative(e.Residual, e.Scale)
	if r.Determined && !math.IsInf(e.Fit.Condition, 0) {
		r.Condition = e.Fit.Condition
	}
	r.Errors = errorsOf(classes, e.Fit.StandardErrors, scale)
	return r
}

// errorsOf returns the standard errors by class, in the unit of the weights. If a standard error overflows, it returns
// none. An overflow is possible, for example, if the job had almost no share of a class.
func errorsOf(classes []messages.Name, errors []float64, scale float64) job.Weights {
	if errors == nil {
		return nil
	}
	scaled := slices.Clone(errors)
	for j := range scaled {
		scaled[j] *= scale
		if !(scaled[j] <= math.MaxFloat64) {
			return nil
		}
	}
	return named(classes, scaled)
}

func relative(x, of float64) float64 {
	if r := x / of; of > 0 && !math.IsInf(r, 0) {
		return r
	}
	return 0
}

func named(classes []messages.Name, weights []float64) job.Weights {
	out := make(job.Weights, len(classes))
	for j, class := range classes {
		out[j] = job.ClassWeight{Class: class, Weight: weights[j]}
	}
	return out
}
