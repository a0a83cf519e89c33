package deadline

import (
	"math"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
	"github.com/candor-grid/candor/messages"
)

func TestBadDocuments(t *testing.T) {
	const task = `{"a":1,"d":3,"l":2,"v":5}`
	casetest.Refuses(t, SolveDocument, map[string]string{
		``:                                            "ends in the middle",
		`{"lambda":0,"tasks":[]}`:                     "C: the key is missing",
		`{"C":-1,"lambda":0,"tasks":[]}`:              "C: must be from 0",
		`{"C":1,"tasks":[]}`:                          "lambda: the key is missing",
		`{"C":1,"lambda":1.5,"tasks":[]}`:             "lambda: must be from 0 to 1",
		`{"C":1,"lambda":-0.1,"tasks":[]}`:            "lambda: must be from 0 to 1",
		`{"C":1,"lambda":NaN,"tasks":[]}`:             "lambda: JSON is malformed",
		`{"C":1,"lambda":0,"rule":"best","tasks":[]}`: `rule: must be "paper" or "monotone"`,
		`{"C":1,"lambda":0,"scale":0,"tasks":[]}`:     "scale: must be at least 1",
		`{"C":1,"lambda":0,"scale":0.5,"tasks":[]}`:   "scale: must be a length",
		`{"C":1,"lambda":0,"tasks":[` + task + `,{"a":3,"d":2,"l":1,"v":5}]}`:                                "tasks[1].d: must be a unit not before the arrival 3",
		`{"C":1,"lambda":0,"tasks":[{"a":1,"d":2,"l":0,"v":5}]}`:                                             "tasks[0].l: must be at least 1",
		`{"C":1,"lambda":0,"tasks":[{"a":2e15,"d":2e15,"l":1,"v":5}]}`:                                       "tasks[0].a: must be from -",
		`{"C":1,"lambda":0,"tasks":[{"a":1,"d":2e15,"l":1,"v":5}]}`:                                          "tasks[0].d: must be a unit not before the arrival 1, at most ",
		`{"C":1,"lambda":0,"tasks":[{"a":1,"d":2,"l":2e15,"v":5}]}`:                                          "tasks[0].l: must be at least 1 unit and at most ",
		`{"C":1,"lambda":0,"tasks":[{"a":1,"d":2,"l":1,"v":-5}]}`:                                            "tasks[0].v: must be from 0",
		`{"C":1,"lambda":0,"tasks":[{"a":1,"d":2,"l":1,"v":1e19}]}`:                                          "tasks[0].v: must be from 0",
		`{"C":1,"lambda":0,"tasks":[{"a":1.5,"d":2,"l":1,"v":1}]}`:                                           "tasks[0].a: 1.5 is not a whole number",
		`{"C":1,"lambda":0,"tasks":[{"a":1,"d":2,"l":1,"v":1,"x":1}]}`:                                       "tasks[0].x: is no field",
		`{"C":1,"lambda":0,"tasks":[{"a":1,"d":2,"l":1,"v":1,"id":"x"},{"a":1,"d":2,"l":1,"v":1,"id":"x"}]}`: "tasks[1].id",
		`{"C":1,"capacities":[1],"group_of":[],"lambda":0,"tasks":[]}`:                                       "C: cannot be combined",
		`{"capacities":[1],"lambda":0,"tasks":[]}`:                                                           "group_of: the key is missing",
		`{"group_of":[],"lambda":0,"tasks":[]}`:                                                              "capacities: the key is missing",
		`{"capacities":[1,-2],"group_of":[],"lambda":0,"tasks":[]}`:                                          "capacities[1]: must be from 0",
		`{"capacities":[1],"group_of":[],"lambda":0,"tasks":[` + task + `]}`:                                 "group_of: must name a group for each of the 1 tasks",
		`{"capacities":[1],"group_of":[1],"lambda":0,"tasks":[` + task + `]}`:                                "group_of[0]: must be a position in capacities",
	})
	_, err := SolveDocument([]byte(`{"C":1,"lambda":0,"tasks":[{"a":0,"d":2000000,"l":1,"v":1}]}`))
	if messages.KindOf(err) != messages.TooLarge {
		t.Errorf("two million units: %v", err)
	}
}

func TestImpossibleTasksAreNamed(t *testing.T) {
	o := casetest.Solve[*output](t, SolveDocument, `{"C":1,"lambda":1,"tasks":[{"a":1,"d":3,"l":4,"v":90},{"a":1,"d":3,"l":3,"v":2}]}`)
	if len(o.Impossible) != 1 || o.Impossible[0] != 0 || o.Completed[0] || !o.Completed[1] || o.TotalPayment != 0 || o.Rule != "monotone" {
		t.Errorf("%+v", o)
	}
}

func TestNoTasksIsAnEmptyOutcome(t *testing.T) {
	out, err := SolveDocument([]byte(`{"C":1,"lambda":0.5,"tasks":[]}`))
	if o, _ := out.(*output); err != nil || o.Allocation == nil || len(o.Allocation) != 0 || o.TotalValue != 0 {
		t.Errorf("%+v, %v", out, err)
	}
}

func FuzzSolveDocument(f *testing.F) {
	casetest.Fuzz(f, SolveDocument, 400, func(t *testing.T, out *output) {
		for _, x := range out.Payments {
			if math.IsNaN(x) || x < 0 {
				t.Fatalf("payment %v", x)
			}
		}
	},
		`{"C":1,"lambda":1,"rule":"paper","tasks":[{"a":100,"d":104,"l":3,"v":30},{"a":101,"d":104,"l":2,"v":25},{"a":102,"d":108,"l":3,"v":33}]}`,
		`{"capacities":[1,2],"group_of":[0,1,1],"lambda":0.5,"tasks":[{"a":0,"d":4,"l":3,"v":1e12},{"a":1,"d":4,"l":2,"v":0},{"a":2,"d":2,"l":1,"v":1e-6}]}`)
}
