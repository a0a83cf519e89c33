package valuation

import (
	"github.com/candor-grid/candor/auctioneer/mechanism/casefile"
	"github.com/candor-grid/candor/messages/job"
)

// input is the document of `candor solve valuation`: a valuation, and times in
// seconds.
type input struct {
	job.Valuation
	T      []float64 `json:"t,omitempty"`
	Levels []float64 `json:"levels,omitempty"`
}

// output is the answer that `candor solve valuation` prints. For each level, Latest has the last time at which the
// value is at least this level. The entry is null if there is no such last time: the value is always at least the
// level, or never.
type output struct {
	A      *float64   `json:"a,omitempty"` // only for a sigmoid
	B      *float64   `json:"b,omitempty"`
	V      []float64  `json:"v"`      // by time
	Latest []*float64 `json:"latest"` // by level
}

// SolveDocument answers a JSON document {"class", "max", the parameters of the class, "t"?, "levels"?}. The answer
// has the value at each time in t. For each level it has the last time with at least this value.
func SolveDocument(data []byte) (any, error) {
	in, err := casefile.Read[input](data)
	if err != nil {
		return nil, err
	}
	c, err := New(in.Valuation)
	if err != nil {
		return nil, err
	}
	out := &output{V: []float64{}, Latest: []*float64{}}
	if c.shape == sigmoid {
		out.A, out.B = &c.a, &c.b
	}
	for _, x := range in.T {
		out.V = append(out.V, c.At(x))
	}
	for _, level := range in.Levels {
		out.Latest = append(out.Latest, c.latestOf(level))
	}
	return out, nil
}

// latestOf returns the result of Latest, or nil if this result is infinite: JSON has no infinite numbers.
func (c *Curve) latestOf(level float64) *float64 {
	x, ever := c.Latest(level)
	if !ever || x-x != 0 {
		return nil
	}
	return &x
}
