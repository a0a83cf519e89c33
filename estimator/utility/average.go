package utility

import (
	"math"
	"strconv"

	"github.com/candor-grid/candor/messages"
)

// Form is that of a utility function: linear or log.
type Form = messages.Form

// Limits of what is taken.
const (
	MaxResources = 64    // m
	Largest      = 1e100 // magnitude of a utility or a duration
	slack        = 1e-9  // by how much a share may exceed 1: it is a rounded mean
)

// Segment is a stretch of a job's run during which its shares were constant.
type Segment struct {
	Duration float64   // in any one unit of time, 0 or above
	Shares   []float64 // m, in [0, 1]
}

// Average is the average job resource (definition 1): the mean of the shares
// over the time that they were in force.
func Average(segments []Segment) ([]float64, error) {
	var in Integral
	for i, s := range segments {
		if err := in.Add(s.Duration, s.Shares); err != nil {
			return nil, at("segments["+strconv.Itoa(i)+"]", err)
		}
	}
	return in.Average()
}

// Integral integrates shares over time as they change, for jobs whose segments
// are not kept. The zero Integral is ready for use.
type Integral struct {
	total  float64
	shares []float64 // integrated
}

// Add adds a stretch during which the shares were constant. On an error
// nothing changes.
func (in *Integral) Add(duration float64, shares []float64) error {
	if !(duration >= 0 && duration <= Largest) {
		return messages.Errorf(messages.Invalid, "duration: must be 0 or above and finite, is %g", duration)
	}
	if len(shares) == 0 || len(shares) > MaxResources || in.shares != nil && len(shares) != len(in.shares) {
		return messages.Errorf(messages.Invalid, "s: must be one share for each resource as before, 1 to %d: there are %d, before %d", MaxResources, len(shares), len(in.shares))
	}
	if err := checkShares("s", shares); err != nil {
		return err
	}
	if in.shares == nil {
		in.shares = make([]float64, len(shares))
	}
	in.total += duration
	for j, s := range shares {
		in.shares[j] += duration * s
	}
	return nil
}

// Average is the mean of the shares so far. It is refused if no time has
// passed.
func (in *Integral) Average() ([]float64, error) {
	if !(in.total > 0) {
		return nil, messages.Errorf(messages.Invalid, "segments: last no time: give at least one a positive duration")
	}
	average := make([]float64, len(in.shares))
	for j, s := range in.shares {
		average[j] = s / in.total
	}
	return average, nil
}

func checkShares(place string, shares []float64) error {
	for j, s := range shares {
		if !(s >= 0 && s <= 1+slack) {
			return messages.Errorf(messages.Invalid, "%s[%d]: a share must be from 0 to 1, is %g", place, j, s)
		}
	}
	return nil
}

// at puts a place before an error's message.
func at(place string, err error) error {
	e := messages.AsError("", err)
	return messages.Errorf(e.Kind, "%s.%s", place, e.Message)
}

// features are what the utility is linear in: the average shares, or their
// logarithms.
func features(form Form, average, into []float64) error {
	if err := checkShares("average", average); err != nil {
		return err
	}
	for j, s := range average {
		into[j] = s
		if form != messages.Log {
			continue
		}
		if s == 0 {
			return messages.Errorf(messages.Invalid, "average[%d]: is 0, of which there is no logarithm: leave out the resource, or the job", j)
		}
		into[j] = math.Log(s)
	}
	return nil
}
