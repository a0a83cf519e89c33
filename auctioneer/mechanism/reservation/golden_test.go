package reservation

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
)

// golden is a sample case. testdata/README.md says where the cases come from.
type golden struct {
	ID     string          `json:"id"`
	N      *int            `json:"N"`
	T      int             `json:"T"`
	Bids   json.RawMessage `json:"bids"`
	Orders [][]int         `json:"orders"`
	Expect struct {
		Optimal   float64    `json:"optimal_value"`
		Winners   []int      `json:"winners"`
		Without   []float64  `json:"value_without"`
		Payments  []float64  `json:"payments"`
		Revenue   float64    `json:"revenue"`
		PerOrder  []perOrder `json:"per_order"`
		BestOrder int        `json:"best_order"`
		BestValue float64    `json:"best_value"`
	} `json:"expect"`
}

// ask solves a case as the command line does.
func ask(t testing.TB, c *golden) *output {
	t.Helper()
	in := map[string]any{"T": c.T, "bids": c.Bids}
	if c.N != nil {
		in["N"], in["orders"] = *c.N, c.Orders
	}
	return casetest.Solve[*output](t, SolveDocument, in)
}

func TestSampleCases(t *testing.T) {
	for _, c := range casetest.Cases[golden](t, "reservation.json") {
		t.Run(c.ID, func(t *testing.T) {
			out, want := ask(t, &c), &c.Expect
			if *out.Optimal != want.Optimal || !slices.Equal(out.Without, want.Without) {
				t.Errorf("value %v, without %v; want %v and %v", *out.Optimal, out.Without, want.Optimal, want.Without)
			}
			if want.Winners == nil { // several schedules have the same value
				return
			}
			if !slices.Equal(out.Winners, want.Winners) || !slices.Equal(out.Payments, want.Payments) || out.Revenue != want.Revenue {
				t.Errorf("winners %v pay %v, want %v and %v", out.Winners, out.Payments, want.Winners, want.Payments)
			}
		})
	}
}

func TestSampleOrders(t *testing.T) {
	for _, c := range casetest.Cases[golden](t, "reservation-wide.json") {
		t.Run(c.ID, func(t *testing.T) {
			out, want := ask(t, &c), &c.Expect
			if !reflect.DeepEqual(out.PerOrder, want.PerOrder) {
				t.Errorf("%+v, want %+v", out.PerOrder, want.PerOrder)
			}
			if out.BestOrder != want.BestOrder || out.BestValue != want.BestValue {
				t.Errorf("order %d of value %v, want %d of %v", out.BestOrder, out.BestValue, want.BestOrder, want.BestValue)
			}
		})
	}
}
