package reservation

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
	"github.com/candor-grid/candor/messages"
)

func TestDocumentRefuses(t *testing.T) {
	wide := `{"N":4,"T":9,"bids":[{"l":1,"d":1,"v":1,"n":1},{"l":1,"d":1,"v":1,"n":1}]`
	casetest.Refuses(t, SolveDocument, map[string]string{
		`{}`:                                                              "T: the key is missing",
		`{"T":-1,"bids":[]}`:                                              "T: must be from 0",
		`{"T":1.5,"bids":[]}`:                                             "T: 1.5 is not a whole number",
		`{"T":9,"bids":[{"l":1,"d":1}]}`:                                  "bids[0].v: the key is missing",
		`{"T":9,"bids":[{"l":-1,"d":1,"v":1}]}`:                           "bids[0].l: must be from 0",
		`{"T":9,"bids":[{"l":1,"d":-1,"v":1}]}`:                           "bids[0].d: must be from 0",
		`{"T":9,"bids":[{"l":1,"d":1,"v":-1}]}`:                           "bids[0].v: must be from 0",
		`{"T":9,"bids":[{"l":1,"d":1,"v":1e16}]}`:                         "bids[0].v: must be from 0",
		`{"T":9,"bids":[{"l":1,"d":1,"v":1,"n":2}]}`:                      "bids[0].n: a width needs the size",
		`{"T":9,"bids":[],"orders":[[]]}`:                                 "N: the key is missing",
		`{"N":0,"T":9,"bids":[]}`:                                         "N: must be at least 1",
		`{"N":4,"T":9,"bids":[{"l":1,"d":1,"v":1}]}`:                      "bids[0].n: the key is missing",
		`{"N":4,"T":9,"bids":[{"l":1,"d":1,"v":1,"n":0}],"orders":[[0]]}`: "bids[0].n: must be from 1",
		wide + `}`:                                        "orders: the key is missing",
		wide + `,"orders":[]}`:                            "orders: give at least one",
		wide + `,"orders":[[0]]}`:                         "orders[0]: must name each of the 2 bids once",
		wide + `,"orders":[[0,1],[0,2]]}`:                 "orders[1][1]: must be a bid from 0 to 1",
		wide + `,"orders":[[1,1]]}`:                       "orders[0][1]: bid 1 is named twice",
		wide + `,"search":{"seed":1}}`:                    "search.orders: the key is missing",
		wide + `,"search":{"orders":0}}`:                  "search.orders: must be from 1",
		wide + `,"orders":[[0,1]],"search":{"orders":1}}`: "search: cannot go together with orders",
		wide + `,"luck":1}`:                               "luck: is no field",
	})
}

// NaN and infinity, which JSON cannot express, must be refused.
func TestNoNumber(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1)} {
		if _, err := Solve(&Problem{Bids: []Bid{{Value: v}}}); messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), "bids[0].v") {
			t.Errorf("%v: %v", v, err)
		}
	}
	if _, err := Solve(&Problem{Nodes: 2}); messages.KindOf(err) != messages.Invalid {
		t.Error(err)
	}
	if _, err := Find(&Problem{}, Search{Candidates: 1}); messages.KindOf(err) != messages.Invalid {
		t.Error(err)
	}
	if _, _, _, err := Orders(&Problem{}, nil); messages.KindOf(err) != messages.Invalid {
		t.Error(err)
	}
}

func TestExtremes(t *testing.T) {
	for _, doc := range []string{`{"T":0,"bids":[]}`, `{"N":1,"T":0,"bids":[],"orders":[[]]}`, `{"N":1,"T":0,"bids":[],"search":{"orders":7}}`} {
		if out := casetest.Solve[*output](t, SolveDocument, doc); len(out.Winners) != 0 || out.Revenue != 0 {
			t.Errorf("%s: %+v", doc, out)
		}
	}
	// A bid of length 0 is served at some time before its deadline, and pays nothing.
	out := casetest.Solve[*output](t, SolveDocument, `{"T":4,"bids":[{"l":4,"d":4,"v":5},{"l":0,"d":4,"v":3},{"l":0,"d":0,"v":2},{"l":0,"d":4,"v":0}]}`)
	if *out.Optimal != 10 || fmt.Sprint(out.Winners) != "[0 1 2]" || fmt.Sprint(out.Payments) != "[0 0 0 0]" {
		t.Errorf("%+v", out)
	}
	// A single bid pays nothing. If two bids want the same time, the winner pays the value of the other bid.
	out = casetest.Solve[*output](t, SolveDocument, `{"T":4,"bids":[{"l":3,"d":4,"v":5.25},{"l":2,"d":4,"v":3.1}]}`)
	if fmt.Sprint(out.Winners, out.Payments, *out.Start[0], out.Start[1]) != "[0] [3.1 0] 0 <nil>" {
		t.Errorf("%+v", out)
	}
	// The times in this document are so large that a schedule with an entry for each unit of time would need too much
	// memory. The document is accepted because all its times have a large common divisor, which becomes the unit of the
	// schedule.
	out = casetest.Solve[*output](t, SolveDocument, `{"T":1000000000000,"bids":[{"l":250000000000,"d":600000000000,"v":5},{"l":500000000000,"d":900000000000,"v":7}]}`)
	if *out.Optimal != 12 || *out.Start[1] != 250000000000 {
		t.Errorf("%+v", out)
	}
	out = casetest.Solve[*output](t, SolveDocument, `{"N":8,"T":10,"bids":[{"l":10,"d":10,"v":1,"n":8},{"l":10,"d":10,"v":2,"n":4},{"l":10,"d":10,"v":3,"n":4},{"l":1,"d":1,"v":99,"n":9}],"search":{"orders":50,"seed":1}}`)
	if out.BestValue != 5 || fmt.Sprint(out.Winners, out.Payments) != "[1 2] [0 0 0 0]" {
		t.Errorf("%+v", out)
	}
}

// A table of a trillion cells must be refused.
func TestExactHasALimit(t *testing.T) {
	p := thesis(1, 2000, 0, 1<<30, 1<<26)
	if _, err := Solve(p); messages.KindOf(err) != messages.TooLarge || !strings.Contains(err.Error(), "coarser") {
		t.Error(err)
	}
}

// Decimals must be exact. Even with values of very different sizes, a payment must be between 0 and the bid.
func TestMoney(t *testing.T) {
	p := &Problem{Horizon: 3, Bids: []Bid{{1, 3, 0.1, 0}, {1, 3, 0.2, 0}, {1, 3, 0.3, 0}, {1, 3, 0.000001, 0}}}
	o, err := Solve(p)
	if err != nil || o.Value != 0.6 || fmt.Sprint(o.Payments) != "[1e-06 1e-06 1e-06 0]" {
		t.Errorf("%+v, %v", o, err)
	}
	p = &Problem{Horizon: 1, Bids: []Bid{{1, 1, 1e15, 0}, {1, 1, 1. / 3, 0}, {1, 1, 1e-300, 0}}}
	o, err = Solve(p)
	if err != nil || o.Value != 1e15 || math.Abs(o.Payments[0]-1./3) > 1e-3 || o.Payments[0] > 1./3 {
		t.Errorf("%+v, %v", o, err)
	}
}

// bounded does the same as SolveDocument, but refuses documents whose solution may take long.
func bounded(document []byte) (any, error) {
	if text := string(document); strings.Contains(text, `"search"`) && len(text) > 150 || strings.Count(text, "0") > 30 {
		return nil, messages.Errorf(messages.TooLarge, "takes long")
	}
	return SolveDocument(document)
}

// Any document must give an error that blames the sender, or an answer that JSON can encode. Payments must be from 0 to
// the bid.
func FuzzSolveDocument(f *testing.F) {
	casetest.Fuzz(f, bounded, 1<<20, func(t *testing.T, out *output) {
		for _, x := range out.Payments {
			if !(x >= 0 && x <= LargestValue) {
				t.Fatalf("a payment of %v", x)
			}
		}
	},
		`{"T":4,"bids":[{"l":3,"d":4,"v":5},{"l":0,"d":4,"v":3}]}`,
		`{"N":4,"T":4,"bids":[{"l":3,"d":4,"v":5,"n":2},{"l":1,"d":4,"v":3,"n":4}],"orders":[[0,1],[1,0]]}`,
		`{"N":4,"T":4,"bids":[{"l":3,"d":4,"v":5,"n":2},{"l":1,"d":4,"v":3,"n":4}],"search":{"orders":9,"seed":2}}`)
}
