package utility

import (
	"math"
	"strconv"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// Form is the form of a utility function: linear or log.
type Form = job.Form

// These are the limits of the accepted values.
const (
	MaxResources = 64    // largest number of resources, m
	Largest      = 1e100 // largest utility or duration
	slack        = 1e-9  // a share may be larger than 1 by this much, because it is a rounded mean
)

// Segment is a part of a job's run in which its shares were constant.
type Segment struct {
	Duration float64   `json:"duration"` // in any unit of time, at least 0
	Shares   []float64 `json:"s"`        // m shares, in [0, 1]
}

// Average returns the average job resource (definition 1 of the paper): the mean of the shares, weighted by the
// durations of the segments.
func Average(segments []Segment) ([]float64, error) {
	total, average := 0.0, []float64(nil)
	for i, s := range segments {
		if err := s.check("segments["+strconv.Itoa(i)+"].", len(average)); err != nil {
			return nil, err
		}
		if average == nil {
			average = make([]float64, len(s.Shares))
		}
		total += s.Duration
		for j, share := range s.Shares {
			average[j] += s.Duration * share
		}
	}
	if !(total > 0) {
		return nil, messages.Errorf(messages.Invalid, "segments: give at least one segment with a positive duration")
	}
	for j := range average {
		average[j] /= total
	}
	return average, nil
}

// check returns an error if a number in the segment is out of range. It also returns an error if the segment does not
// have `before` shares, because all segments must have the same number of shares. `before` is the number of shares in
// the previous segment. For the first segment it is 0, and then any number of shares is right.
func (s *Segment) check(place string, before int) error {
	if !(s.Duration >= 0 && s.Duration <= Largest) {
		return messages.Errorf(messages.Invalid, "%sduration: must be 0 or above and finite, is %g", place, s.Duration)
	}
	if n := len(s.Shares); n == 0 || n > MaxResources || before != 0 && n != before {
		return messages.Errorf(messages.Invalid, "%ss: has %d shares; give one share for each of 1 to %d resources, and the same number in each segment (the segment before has %d)", place, n, MaxResources, before)
	}
	return checkShares(place+"s", s.Shares)
}

func checkShares(place string, shares []float64) error {
	for j, s := range shares {
		if !(s >= 0 && s <= 1+slack) {
			return messages.Errorf(messages.Invalid, "%s[%d]: a share must be from 0 to 1, is %g", place, j, s)
		}
	}
	return nil
}

// features writes the variables of the regression to the slice `into`. The variables are the average shares. In the
// logarithmic form, they are the logarithms of the shares.
func features(form Form, average, into []float64) error {
	if err := checkShares("average", average); err != nil {
		return err
	}
	for j, s := range average {
		into[j] = s
		if form != job.Log {
			continue
		}
		if s == 0 {
			return messages.Errorf(messages.Invalid, "average[%d]: is 0, which has no logarithm: leave out the resource, or the job", j)
		}
		into[j] = math.Log(s)
	}
	return nil
}
