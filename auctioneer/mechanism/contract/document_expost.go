package contract

import (
	"fmt"
	"math"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile"
)

// adjustment has the data of a contract whose job has completed. If the times of completion are not given, the received
// value decides whether the job is late: valuations never rise, so a job that received less than promised is late.
type adjustment struct {
	Price    float64  `json:"price"`
	Promised float64  `json:"v_expected"`
	Received float64  `json:"v_actual"`
	Expected *float64 `json:"x_expected,omitempty"`
	Actual   *float64 `json:"x_actual,omitempty"`
	LateOnly *bool    `json:"late_only,omitempty"` // default: the document's late_only
}

// adjusted has one price, adjusted in three ways. The field Adjusted has the adjustment that the input document asks
// for. The field Always has the result of equation 2 of the paper. The field LateOnly has this result too if the
// completion is late, and otherwise the price without adjustment.
type adjusted struct {
	Adjusted float64 `json:"adjusted"`
	Always   float64 `json:"adjusted_eq2"`
	LateOnly float64 `json:"adjusted_late_only"`
}

type adjustedList struct {
	Adjusted []float64 `json:"adjusted"`
	Always   []float64 `json:"adjusted_eq2"`
	LateOnly []float64 `json:"adjusted_late_only"`
}

func adjustList(data []byte) (*adjustedList, error) {
	in, err := casefile.Read[struct {
		ExPost   []adjustment `json:"ex_post"`
		LateOnly *bool        `json:"late_only,omitempty"`
	}](data)
	if err != nil {
		return nil, err
	}
	out := &adjustedList{[]float64{}, []float64{}, []float64{}}
	for i := range in.ExPost {
		a, err := in.ExPost[i].answer(fmt.Sprintf("ex_post[%d]", i), in.LateOnly)
		if err != nil {
			return nil, err
		}
		out.Adjusted = append(out.Adjusted, a.Adjusted)
		out.Always = append(out.Always, a.Always)
		out.LateOnly = append(out.LateOnly, a.LateOnly)
	}
	return out, nil
}

func (a *adjustment) answer(path string, lateOnly *bool) (*adjusted, error) {
	if err := a.check(path); err != nil {
		return nil, err
	}
	late := a.Received < a.Promised
	if a.Expected != nil {
		late = *a.Actual > *a.Expected
	}
	out := &adjusted{
		Always:   Adjust(a.Price, a.Promised, a.Received),
		LateOnly: AdjustLate(a.Price, a.Promised, a.Received, late),
	}
	if a.LateOnly != nil {
		lateOnly = a.LateOnly
	}
	out.Adjusted = out.Always
	if casefile.Or(lateOnly, false) {
		out.Adjusted = out.LateOnly
	}
	return out, finite(path, out.Always)
}

func (a *adjustment) check(path string) error {
	for _, f := range []struct {
		name string
		x    float64
	}{{"price", a.Price}, {"v_expected", a.Promised}, {"v_actual", a.Received}} {
		if f.x < 0 {
			return casefile.Invalid(path+"."+f.name, "must not be negative, is %v", f.x)
		}
	}
	if (a.Expected == nil) != (a.Actual == nil) {
		return casefile.Invalid(path, "give both x_expected and x_actual, or neither")
	}
	return nil
}

// finite refuses numbers that JSON cannot represent.
func finite(path string, x float64) error {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return casefile.Invalid(path, "the adjusted price is too large for a double: give smaller values")
	}
	return nil
}
