package job

import (
	"fmt"
	"math"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// ValuationClass is the form of a valuation.
type ValuationClass string

// The classes of valuations.
const (
	Sigmoidal   ValuationClass = "sigmoidal"    // the value falls smoothly from Mu to Mu+Delta
	Hard        ValuationClass = "hard"         // full value up to and including Deadline, then no value
	Recurrent   ValuationClass = "recurrent"    // like Hard, with a deadline that is in proportion to the workload
	LinearDecay ValuationClass = "linear-decay" // full value until Mu, then falling in a straight line to 0 at Mu+Delta
	Custom      ValuationClass = "custom"       // straight lines between Points
)

// ValuationClasses lists all classes.
var ValuationClasses = []ValuationClass{Sigmoidal, Hard, Recurrent, LinearDecay, Custom}

// These are the limits on a valuation.
const (
	MaxValuationTime   = 1e12 // in seconds
	MaxValuationPoints = 1024
	// LeastEpsilon is the smallest Epsilon. Smaller ones would be close to the rounding error of a double.
	LeastEpsilon = 1e-9
)

// Valuation is the worth of a job's completion as a function of the seconds from submission to completion. It is at
// most Max and never rises. The mechanism of contracts calls it a type. Its numbers are floating-point, because types
// are also drawn from estimated distributions.
type Valuation struct {
	Class ValuationClass `json:"class"` // hard, recurrent, sigmoidal, linear-decay or custom
	Max   float64        `json:"max"`   // credits

	Mu    float64 `json:"mu,omitempty"`    // Sigmoidal, LinearDecay: seconds after which the value falls
	Delta float64 `json:"delta,omitempty"` // Sigmoidal, LinearDecay: seconds that the fall takes
	// Epsilon belongs to a Sigmoidal, whose value falls from Max to 0. At Mu the job has lost the part Epsilon of Max.
	// At Mu+Delta it still has the part Epsilon of Max. 0 means 0.01.
	Epsilon float64 `json:"eps,omitempty"`

	Deadline       float64 `json:"deadline,omitempty"`         // Hard: seconds
	Workload       float64 `json:"workload,omitempty"`         // Recurrent: in any unit
	SecondsPerUnit float64 `json:"seconds_per_unit,omitempty"` // Recurrent: seconds for each unit of workload

	// Points are the corners of a Custom valuation, sorted by time. Before the first point and after the last point,
	// the value does not change.
	Points []ValuationPoint `json:"points,omitempty"`
}

// ValuationPoint is a corner of a Custom valuation.
type ValuationPoint struct {
	At   float64 `json:"at"`   // seconds
	Part float64 `json:"part"` // part of Max, in [0, 1]
}

// Validate checks a valuation. A field that its class does not use must be zero, because it would be ignored silently.
func (v *Valuation) Validate() error {
	if !slices.Contains(ValuationClasses, v.Class) {
		return messages.Errorf(messages.Invalid, "class: %q is not one of %v", messages.Clipped(string(v.Class)), ValuationClasses)
	}
	if !(v.Max >= 0 && v.Max <= messages.MaxCredits.Float()) {
		return messages.Errorf(messages.Invalid, "max: must be from 0 to %v credits, is %v", messages.MaxCredits, v.Max)
	}
	if err := v.unused(); err != nil {
		return err
	}
	switch v.Class {
	case Sigmoidal, LinearDecay:
		return v.validateFall()
	case Hard:
		return within("deadline", v.Deadline)
	case Recurrent:
		return v.validateRecurrent()
	default:
		return v.validatePoints()
	}
}

// The function `within` checks that a time, in seconds, is in the permitted range.
func within(field string, seconds float64) error {
	if !(seconds >= 0 && seconds <= MaxValuationTime) {
		return messages.Errorf(messages.Invalid, "%s: must be from 0 to %v seconds, is %v", field, float64(MaxValuationTime), seconds)
	}
	return nil
}

func (v *Valuation) unused() error {
	falls := v.Class == Sigmoidal || v.Class == LinearDecay
	for _, f := range [...]struct {
		name string
		set  bool
	}{
		{"mu", v.Mu != 0 && !falls},
		{"delta", v.Delta != 0 && !falls},
		{"eps", v.Epsilon != 0 && v.Class != Sigmoidal},
		{"deadline", v.Deadline != 0 && v.Class != Hard},
		{"workload", v.Workload != 0 && v.Class != Recurrent},
		{"seconds_per_unit", v.SecondsPerUnit != 0 && v.Class != Recurrent},
		{"points", len(v.Points) > 0 && v.Class != Custom},
	} {
		if f.set {
			return messages.Errorf(messages.Invalid, "%s: a valuation of class %q does not have this field; leave it out", f.name, messages.Clipped(string(v.Class)))
		}
	}
	return nil
}

func (v *Valuation) validateFall() error {
	if err := within("mu", v.Mu); err != nil {
		return err
	}
	if !(v.Delta > 0 && v.Delta <= MaxValuationTime) {
		return messages.Errorf(messages.Invalid, "delta: must be positive and at most %v seconds, is %v", float64(MaxValuationTime), v.Delta)
	}
	if v.Epsilon != 0 && !(v.Epsilon >= LeastEpsilon && v.Epsilon < 0.5) {
		return messages.Errorf(messages.Invalid, "eps: must be from %v to below 0.5, is %v", float64(LeastEpsilon), v.Epsilon)
	}
	return nil
}

func (v *Valuation) validateRecurrent() error {
	if !(v.Workload >= 0) || math.IsInf(v.Workload, 0) {
		return messages.Errorf(messages.Invalid, "workload: must not be negative, is %v", v.Workload)
	}
	if !(v.SecondsPerUnit > 0) || math.IsInf(v.SecondsPerUnit, 0) {
		return messages.Errorf(messages.Invalid, "seconds_per_unit: must be positive, is %v", v.SecondsPerUnit)
	}
	return within("workload times seconds_per_unit", v.Workload*v.SecondsPerUnit)
}

func (v *Valuation) validatePoints() error {
	if len(v.Points) == 0 {
		return messages.Errorf(messages.Invalid, "points: give at least one")
	}
	if len(v.Points) > MaxValuationPoints {
		return messages.Errorf(messages.TooLarge, "points: %d is above the limit of %d", len(v.Points), MaxValuationPoints)
	}
	time, part := -1.0, 1.0
	for i, p := range v.Points {
		where := fmt.Sprintf("points[%d]", i)
		if err := within(where+".at", p.At); err != nil {
			return err
		}
		if p.At <= time {
			return messages.Errorf(messages.Invalid, "%s.at: must be after the previous point (at %v), is %v", where, time, p.At)
		}
		if !(p.Part >= 0 && p.Part <= part) {
			return messages.Errorf(messages.Invalid, "%s.part: must be from 0 to %v, is %v: a valuation never rises", where, part, p.Part)
		}
		time, part = p.At, p.Part
	}
	return nil
}

// Parameters returns the numbers that a user sets in a valuation of this class. The estimator learns the distribution
// of these numbers. Parameters returns nil for a Custom valuation, which has no fixed number of parameters.
func (v *Valuation) Parameters() []float64 {
	switch v.Class {
	case Sigmoidal, LinearDecay:
		return []float64{v.Max, v.Mu, v.Delta}
	case Hard:
		return []float64{v.Max, v.Deadline}
	case Recurrent:
		return []float64{v.Max, v.Workload}
	}
	return nil
}

// WithParameters returns the valuation with other parameters, in the order of Parameters. It does not validate the
// result.
func (v Valuation) WithParameters(x []float64) (Valuation, error) {
	if want := len(v.Parameters()); want == 0 || len(x) != want {
		return v, messages.Errorf(messages.Invalid, "parameters: class %q has %d parameters, not %d", messages.Clipped(string(v.Class)), want, len(x))
	}
	v.Max = x[0]
	switch v.Class {
	case Hard:
		v.Deadline = x[1]
	case Recurrent:
		v.Workload = x[1]
	default:
		v.Mu, v.Delta = x[1], x[2]
	}
	return v, nil
}
