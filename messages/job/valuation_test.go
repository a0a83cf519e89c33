package job

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages/wire"
)

var valuations = []Valuation{
	{Class: Sigmoidal, Max: 100, Mu: 2000, Delta: 1000, Epsilon: 0.05},
	{Class: Hard, Max: 66, Deadline: 283},
	{Class: Recurrent, Max: 25, Workload: 25, SecondsPerUnit: 18},
	{Class: LinearDecay, Max: 7, Mu: 10, Delta: 5},
	{Class: Custom, Max: 3, Points: []ValuationPoint{{At: 0, Part: 1}, {At: 10, Part: 0.5}, {At: 20, Part: 0.5}}},
}

func TestValuationsCrossTheWire(t *testing.T) {
	for _, v := range valuations {
		if err := v.Validate(); err != nil {
			t.Errorf("%+v: %v", v, err)
		}
		for _, f := range []wire.Format{wire.Msgpack, wire.JSON} {
			data, err := wire.Marshal(&v, f)
			if err != nil {
				t.Fatal(err)
			}
			var got Valuation
			if err := wire.Unmarshal(data, f, &got); err != nil || !reflect.DeepEqual(got, v) {
				t.Errorf("%+v came back as %+v, %v", v, got, err)
			}
		}
	}
}

func TestBadValuations(t *testing.T) {
	for _, c := range []struct {
		says string
		v    Valuation
	}{
		{`class: "" is not one of`, Valuation{}},
		{`class: "cubic" is not one of`, Valuation{Class: "cubic"}},
		{"max: must be", Valuation{Class: Hard, Max: -1}},
		{"max: must be", Valuation{Class: Hard, Max: math.NaN()}},
		{"max: must be", Valuation{Class: Hard, Max: math.Inf(1)}},
		{"mu: must be from 0", Valuation{Class: Sigmoidal, Mu: -1, Delta: 1}},
		{"delta: must be positive", Valuation{Class: Sigmoidal, Mu: 1}},
		{"delta: must be positive", Valuation{Class: LinearDecay, Mu: 1, Delta: math.NaN()}},
		{"eps: must be", Valuation{Class: Sigmoidal, Delta: 1, Epsilon: 0.5}},
		{"eps: must be", Valuation{Class: Sigmoidal, Delta: 1, Epsilon: 1e-12}},
		{`eps: a valuation of class "linear-decay" does not have this field`, Valuation{Class: LinearDecay, Delta: 1, Epsilon: 0.1}},
		{`deadline: a valuation of class "sigmoidal" does not have this field`, Valuation{Class: Sigmoidal, Delta: 1, Deadline: 1}},
		{`mu: a valuation of class "hard" does not have this field`, Valuation{Class: Hard, Mu: math.NaN()}},
		{"deadline: must be from 0", Valuation{Class: Hard, Deadline: -1}},
		{"workload: must not", Valuation{Class: Recurrent, Workload: -1, SecondsPerUnit: 1}},
		{"seconds_per_unit: must be positive", Valuation{Class: Recurrent, Workload: 1}},
		{"workload times seconds_per_unit", Valuation{Class: Recurrent, Workload: 1e9, SecondsPerUnit: 1e9}},
		{"points: give at least one", Valuation{Class: Custom}},
		{"points: 1025 is above", Valuation{Class: Custom, Points: make([]ValuationPoint, 1025)}},
		{"points[1].at: must be after", Valuation{Class: Custom, Points: []ValuationPoint{{1, 1}, {1, 0}}}},
		{"points[1].part: must be from 0 to 0.5", Valuation{Class: Custom, Points: []ValuationPoint{{1, 0.5}, {2, 0.6}}}},
		{"points[0].part: must be from 0 to 1", Valuation{Class: Custom, Points: []ValuationPoint{{1, math.NaN()}}}},
		{"points[0].at: must be from 0", Valuation{Class: Custom, Points: []ValuationPoint{{-1, 1}}}},
	} {
		if err := c.v.Validate(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %q", c.v, err, c.says)
		}
	}
}

func TestValuationParameters(t *testing.T) {
	for _, v := range valuations {
		x := v.Parameters()
		if v.Class == Custom {
			if _, err := v.WithParameters(nil); x != nil || err == nil {
				t.Errorf("parameters %v, error %v", x, err)
			}
			continue
		}
		for i := range x {
			x[i] *= 2
		}
		got, err := v.WithParameters(x)
		if err != nil || !reflect.DeepEqual(got.Parameters(), x) {
			t.Errorf("%+v with %v: %+v, %v", v, x, got, err)
		}
		if got.Epsilon != v.Epsilon || got.SecondsPerUnit != v.SecondsPerUnit {
			t.Errorf("%+v with %v has other units: %+v", v, x, got)
		}
		if _, err := v.WithParameters(x[1:]); err == nil {
			t.Errorf("%d parameters are taken by %v", len(x)-1, v.Class)
		}
	}
}
