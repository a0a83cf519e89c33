package deadline

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
)

// golden is a sample case. testdata/README.md says where the cases come from.
type golden struct {
	ID         string      `json:"id"`
	C          *int        `json:"C,omitempty"`
	Capacities *[]int      `json:"capacities,omitempty"`
	GroupOf    *[]int      `json:"group_of,omitempty"`
	Lambda     float64     `json:"lambda"`
	Tasks      []inputTask `json:"tasks"`
	Expect     struct {
		Allocation   [][2]any  `json:"allocation"`
		Completed    []bool    `json:"completed"`
		Units        [][]int   `json:"units"`
		Payments     []float64 `json:"payments"`
		Monotone     []bool    `json:"monotone"`
		TotalValue   float64   `json:"total_value"`
		TotalPayment float64   `json:"total_payment"`
	} `json:"expect"`
}

func samples(t *testing.T) []golden {
	t.Helper()
	var doc struct{ Cases, Grouped []golden }
	casetest.Read(t, "deadline.json", &doc)
	if len(doc.Cases) == 0 || len(doc.Grouped) == 0 {
		t.Fatal("cases are missing")
	}
	return append(doc.Cases, doc.Grouped...)
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-11*max(math.Abs(a), math.Abs(b)) }

func TestSampleCases(t *testing.T) {
	paper := "paper"
	for _, c := range samples(t) {
		t.Run(c.ID, func(t *testing.T) {
			out := casetest.Solve[*output](t, SolveDocument, input{C: c.C, Capacities: c.Capacities, GroupOf: c.GroupOf, Lambda: c.Lambda, Rule: &paper, Tasks: c.Tasks})
			want := &c.Expect
			if !reflect.DeepEqual(out.Completed, want.Completed) {
				t.Errorf("completed %v, want %v", out.Completed, want.Completed)
			}
			for i, x := range want.Payments {
				if !near(out.Payments[i], x) {
					t.Errorf("task %d pays %v, want %v", i, out.Payments[i], x)
				}
			}
			if want.Units == nil { // a case with groups
				return
			}
			if !reflect.DeepEqual(out.Units, want.Units) {
				t.Errorf("units %v, want %v", out.Units, want.Units)
			}
			got, _ := json.Marshal(out.Allocation)
			if expected, _ := json.Marshal(want.Allocation); string(got) != string(expected) {
				t.Errorf("allocation %s, want %s", got, expected)
			}
			if !near(out.TotalValue, want.TotalValue) || !near(out.TotalPayment, want.TotalPayment) {
				t.Errorf("totals %v and %v, want %v and %v", out.TotalValue, out.TotalPayment, want.TotalValue, want.TotalPayment)
			}
		})
	}
}
