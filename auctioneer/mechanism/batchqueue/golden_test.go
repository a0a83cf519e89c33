package batchqueue

import (
	"encoding/json"
	"maps"
	"math"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
)

// golden is a sample case. testdata/README.md says where the cases come from.
type golden struct {
	ID            string          `json:"id"`
	N             *int            `json:"N"`
	Queue         json.RawMessage `json:"queue"`
	Running       json.RawMessage `json:"running"`
	Mode          *string         `json:"mode"`
	Distributions json.RawMessage `json:"distributions"`
	Expect        struct {
		Runs        bool       `json:"runs"`
		Threshold   float64    `json:"threshold"`
		With        []float64  `json:"start_with"`
		Without     []*float64 `json:"start_without"`
		Delays      []*float64 `json:"delays"`
		Externality []float64  `json:"expected_externality"`
		Payments    []float64  `json:"payments"`
		RunsAsRead  *bool      `json:"runs_literal_eq42"`
	} `json:"expect"`
}

// ask solves a case as the command line does.
func ask(t testing.TB, c *golden, more map[string]any) *output {
	t.Helper()
	in := map[string]any{"queue": c.Queue}
	if c.N != nil {
		in["N"], in["running"] = *c.N, c.Running
	}
	if c.Distributions != nil {
		in["mode"], in["distributions"] = *c.Mode, c.Distributions
		maps.Copy(in, more)
	}
	return casetest.Solve[*output](t, SolveDocument, in)
}

func near(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d %s, want %d", len(got), what, len(want))
	}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-12*math.Abs(want[i]) {
			t.Errorf("%s[%d] = %v, want %v", what, i, got[i], want[i])
		}
	}
}

func TestSampleCases(t *testing.T) {
	for _, file := range []string{"batch-queue.json", "batch-queue-wide.json"} {
		for _, c := range casetest.Cases[golden](t, file) {
			t.Run(c.ID, func(t *testing.T) {
				out := ask(t, &c, map[string]any{"expectation": "exact"})
				if out.Runs != c.Expect.Runs || out.Threshold != c.Expect.Threshold {
					t.Errorf("runs %v at threshold %v, want %v at %v", out.Runs, out.Threshold, c.Expect.Runs, c.Expect.Threshold)
				}
				if c.N != nil {
					near(t, "start_with", out.With, c.Expect.With)
					near(t, "start_without", numbers(out.Without), numbers(c.Expect.Without))
					near(t, "delays", numbers(out.Delays), numbers(c.Expect.Delays))
				}
				if c.Distributions != nil {
					near(t, "payments", out.Payments, c.Expect.Payments)
				}
				if c.Expect.Externality != nil {
					near(t, "externality", out.Externality, c.Expect.Externality)
				}
			})
		}
	}
}

// numbers copies a list in which null stands for a missing number. In the copy, 0.12345 takes the place of null,
// because no real number of the list equals it.
func numbers(x []*float64) []float64 {
	out := make([]float64, len(x))
	for i, p := range x {
		out[i] = 0.12345
		if p != nil {
			out[i] = *p
		}
	}
	return out
}
