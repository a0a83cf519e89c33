package job

import (
	"fmt"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// These are the limits on job profile classes.
const (
	MaxProfiles     = 256  // profiles of one site
	MaxPriorSamples = 4096 // prior samples of one profile
	maxParts        = 31   // maximum number of points of a custom profile, which has one parameter more
	maxInfluence    = 1e9
)

// Queued is a class of profiles, not of valuations. Such a profile describes what a user declares in a batch queue: the
// value of a job, the cost of a second of delay, and the length of the job.
const Queued ValuationClass = "queued"

var profileClasses = append(slices.Clone(ValuationClasses), Queued)

// Profile is a job profile class: a template for the types that users declare for similar jobs. It has bounds for the
// parameters, and assumptions for the time before there are enough samples.
type Profile struct {
	Name  messages.Name  `json:"name"`  // shown with estimates
	Class ValuationClass `json:"class"` // hard, recurrent, sigmoidal, linear-decay, custom or queued
	// Bounds has the bounds of every parameter of the class. Sigmoidal and linear-decay have max, mu and delta; hard
	// has max and deadline; recurrent has max and workload. Custom has max and at1, at2, …: the times at which the
	// value falls to the first, second, … of Parts. Queued has value, delay (credits a second) and length.
	Bounds []ParameterBounds `json:"bounds"`
	// Parts are the values of a custom valuation at its points, as fractions of the parameter max. No part is larger
	// than the part before it.
	Parts          []float64 `json:"parts,omitempty"`
	Epsilon        float64   `json:"eps,omitempty"`              // as in Valuation; only for sigmoidal
	SecondsPerUnit float64   `json:"seconds_per_unit,omitempty"` // seconds of work in a unit of the workload; only for recurrent
	// Prior lists the types to assume until there are 20 samples. Each type has one number for each entry of Bounds.
	// Empty means all types within the bounds are equally likely.
	Prior []Sample `json:"prior,omitempty"`
	// A class is estimated from its samples by a kernel density: around each sample lies a kernel, a normal
	// distribution. Bandwidth is the rule that sets the width of the kernels: scott_full (the default), silverman_full,
	// scott_diag or silverman_diag.
	Bandwidth string `json:"bandwidth,omitempty"`
	// Influence bounds the total weight of one account's samples, as a multiple of the mean total weight of an account.
	// The default 0 means 2.
	Influence float64 `json:"influence,omitempty"`
	// Kernels bounds the number of kernels. If there are more samples, they are merged. The default 0 means 1024.
	Kernels int `json:"kernels,omitempty"`
	// Market limits the samples to jobs of this market; empty means all markets. A profile of class "queued" must name
	// a market.
	Market messages.Name `json:"market,omitempty"`
}

// Sample is the declaration of one job as numbers: a value for each parameter, in the order of the profile's bounds.
type Sample []float64

// ParameterBounds is the range of one parameter of a type.
type ParameterBounds struct {
	Parameter string  `json:"parameter"` // name of the parameter
	Low       float64 `json:"low"`       // least value
	High      float64 `json:"high"`      // largest value
}

var bandwidths = []string{"scott_full", "silverman_full", "scott_diag", "silverman_diag"}

// Parameters returns the names of the parameters of the profile's types, in the order of a Sample.
func (p *Profile) Parameters() []string {
	names := []string{"max"}
	switch p.Class {
	case Queued:
		return []string{"value", "delay", "length"}
	case Sigmoidal, LinearDecay:
		return append(names, "mu", "delta")
	case Hard:
		return append(names, "deadline")
	case Recurrent:
		return append(names, "workload")
	case Custom:
		for i := range p.Parts {
			names = append(names, fmt.Sprintf("at%d", i+1))
		}
	}
	return names
}

// Validate returns an error for the first fault of a profile. The message begins with the field's path.
func (p *Profile) Validate() error {
	if !messages.ValidName(p.Name) {
		return messages.BadName("name", p.Name)
	}
	if !slices.Contains(profileClasses, p.Class) {
		return messages.Errorf(messages.Invalid, "class: %q is not one of %v", messages.Clipped(string(p.Class)), profileClasses)
	}
	if p.Market != "" && !messages.ValidFreeName(p.Market) {
		return messages.BadFreeName("market", p.Market)
	}
	if p.Market == "" && p.Class == Queued {
		return messages.Errorf(messages.Invalid, "market: is missing; name the batch queue that the class %s is for", Queued)
	}
	return messages.FirstOf(p.validateParts, p.validateBounds, p.validatePrior, p.validateRules)
}

func (p *Profile) validateParts() error {
	if p.Class != Custom && len(p.Parts) > 0 {
		return messages.Errorf(messages.Invalid, "parts: only a custom class has them; leave them out")
	}
	if p.Class == Custom && (len(p.Parts) == 0 || len(p.Parts) > maxParts) {
		return messages.Errorf(messages.Invalid, "parts: there are %d; a custom class needs 1 to %d numbers here, like [1, 0.5, 0]", len(p.Parts), maxParts)
	}
	for i, part := range p.Parts {
		if !(part >= 0 && part <= 1) || i > 0 && part > p.Parts[i-1] {
			return messages.Errorf(messages.Invalid, "parts[%d]: must be from 0 to 1 and not above the part before it, is %v", i, part)
		}
	}
	if p.Class != Sigmoidal && p.Epsilon != 0 {
		return messages.Errorf(messages.Invalid, "eps: only a sigmoidal class has it; leave it out")
	}
	if p.Epsilon != 0 && !(p.Epsilon >= LeastEpsilon && p.Epsilon < 0.5) {
		return messages.Errorf(messages.Invalid, "eps: must be from %v to below 0.5, is %v", float64(LeastEpsilon), p.Epsilon)
	}
	if (p.Class == Recurrent) != (p.SecondsPerUnit != 0) || !(p.SecondsPerUnit >= 0 && p.SecondsPerUnit <= MaxValuationTime) {
		return messages.Errorf(messages.Invalid, "seconds_per_unit: %v: a recurrent class needs a number above 0 and at most %v; other classes must leave it out", p.SecondsPerUnit, float64(MaxValuationTime))
	}
	return nil
}

func (p *Profile) validateBounds() error {
	want := p.Parameters()
	for i, b := range p.Bounds {
		path := fmt.Sprintf("bounds[%d]", i)
		if i >= len(want) || b.Parameter != want[i] {
			return messages.Errorf(messages.Invalid, "%s.parameter: %q; a class %s has the parameters %s, in this order", path, messages.Clipped(b.Parameter), p.Class, strings.Join(want, ", "))
		}
		least, most := 0.0, float64(MaxValuationTime)
		if i == 0 || b.Parameter == "delay" {
			most = messages.MaxCredits.Float()
		}
		switch {
		case !(b.Low >= least && b.Low <= most):
			return messages.Errorf(messages.Invalid, "%s.low: must be from %v to %v, is %v", path, least, most, b.Low)
		case !(b.High >= least && b.High <= most):
			return messages.Errorf(messages.Invalid, "%s.high: must be from %v to %v, is %v", path, least, most, b.High)
		case b.Low > b.High:
			return messages.Errorf(messages.Invalid, "%s: %v to %v is reversed; give the lower end in the field low", path, b.Low, b.High)
		case b.Low == b.High:
			return messages.Errorf(messages.Invalid, "%s: %v to %v is no interval; give two different numbers", path, b.Low, b.High)
		}
	}
	if len(p.Bounds) < len(want) {
		return messages.Errorf(messages.Invalid, "bounds: %s is missing; a class %s has the parameters %s", want[len(p.Bounds)], p.Class, strings.Join(want, ", "))
	}
	return nil
}

func (p *Profile) validatePrior() error {
	if len(p.Prior) > MaxPriorSamples {
		return messages.Errorf(messages.TooLarge, "prior: %d samples are more than the limit of %d", len(p.Prior), MaxPriorSamples)
	}
	for k, x := range p.Prior {
		if err := p.Contains(x); err != nil {
			return messages.Errorf(messages.Invalid, "prior[%d]: %s", k, messages.Detail(err))
		}
	}
	return nil
}

// Contains returns an error unless a sample is within the bounds.
func (p *Profile) Contains(x []float64) error {
	if len(x) != len(p.Bounds) {
		return messages.Errorf(messages.Invalid, "has %d numbers; a class %s has the %d parameters %s", len(x), p.Class, len(p.Bounds), strings.Join(p.Parameters(), ", "))
	}
	for j, b := range p.Bounds {
		if !(x[j] >= b.Low && x[j] <= b.High) {
			return messages.Errorf(messages.Invalid, "%s: must be from %v to %v, is %v", b.Parameter, b.Low, b.High, x[j])
		}
	}
	return nil
}

func (p *Profile) validateRules() error {
	if p.Bandwidth != "" && !slices.Contains(bandwidths, p.Bandwidth) {
		return messages.Errorf(messages.Invalid, "bandwidth: %q is not one of %s", messages.Clipped(p.Bandwidth), strings.Join(bandwidths, ", "))
	}
	if p.Influence != 0 && !(p.Influence >= 1 && p.Influence <= maxInfluence) {
		return messages.Errorf(messages.Invalid, "influence: must be from 1 to %v times an account's equal part, is %v", float64(maxInfluence), p.Influence)
	}
	if p.Kernels != 0 && (p.Kernels < 64 || p.Kernels > 1<<16) {
		return messages.Errorf(messages.Invalid, "kernels: must be from 64 to %d, are %d", 1<<16, p.Kernels)
	}
	return nil
}

// Observed returns the declaration of an observed job as a sample of the profile. It returns false if the job declared
// nothing in the profile's form, or went to another market.
func (p *Profile) Observed(o *Observation) (Sample, bool) {
	switch {
	case p.Market != "" && p.Market != o.Market:
		return nil, false
	case p.Class == Queued:
		return Sample{o.Value.Float(), o.Delay.Float(), o.Length.Seconds()}, o.Length > 0
	case o.Valuation == nil:
		return nil, false
	}
	return p.Sample(o.Valuation)
}

// Sample returns the parameters of a valuation as a sample of the profile, or false if the valuation does not have the
// profile's form.
func (p *Profile) Sample(v *Valuation) (Sample, bool) {
	if v.Class != p.Class {
		return nil, false
	}
	if p.Class != Custom {
		return v.Parameters(), true
	}
	if len(v.Points) != len(p.Parts) {
		return nil, false
	}
	x := Sample{v.Max}
	for i, point := range v.Points {
		if point.Part != p.Parts[i] {
			return nil, false
		}
		x = append(x, point.At)
	}
	return x, true
}

// Valuation returns the valuation that a sample describes. It returns an error if the valuation is not valid, for
// example if it is a custom one whose points are out of order.
func (p *Profile) Valuation(x []float64) (Valuation, error) {
	if err := p.Contains(x); err != nil {
		return Valuation{}, err
	}
	if p.Class == Queued {
		return Valuation{}, messages.Errorf(messages.Invalid, "class: samples of class %s are not valuations; name another class", Queued)
	}
	v := Valuation{Class: p.Class, Epsilon: p.Epsilon, SecondsPerUnit: p.SecondsPerUnit}
	if p.Class == Custom {
		v.Max = x[0]
		for i, at := range x[1:] {
			v.Points = append(v.Points, ValuationPoint{At: at, Part: p.Parts[i]})
		}
		return v, v.Validate()
	}
	v, err := v.WithParameters(x)
	if err != nil {
		return v, err
	}
	return v, v.Validate()
}
