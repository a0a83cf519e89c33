package solve

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
	"github.com/candor-grid/candor/messages"
)

func answer[Out any](t *testing.T, name string, document any) Out {
	t.Helper()
	in, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	var out Out
	printed, err := candor(string(in), name)
	if err == nil {
		err = json.Unmarshal([]byte(printed), &out)
	}
	if err != nil {
		t.Fatalf("%s: %v", in, err)
	}
	return out
}

// refused checks that each document is refused with an error of kind Invalid that contains a text.
func refused(t *testing.T, name string, documents map[string]string) {
	t.Helper()
	for in, says := range documents {
		out, err := candor(in, name)
		if !errors.Is(err, &messages.Error{Kind: messages.Invalid}) || !strings.Contains(err.Error(), says) || out != "" {
			t.Errorf("%s: %v, printed %q, want %q", in, err, out, says)
		}
	}
}

func relative(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= tolerance*math.Abs(want)
}

type densityCase struct {
	ID      string      `json:"id"`
	L       int         `json:"L"`
	Samples [][]float64 `json:"samples"`
	H       [][]float64 `json:"H"`
	Points  [][]float64 `json:"points"`
	Expect  struct {
		Density    []float64              `json:"density"`
		LogDensity []float64              `json:"log_density"`
		Bandwidth  map[string][][]float64 `json:"bandwidth"`
	} `json:"expect"`
}

func TestDensitySampleCases(t *testing.T) {
	for _, c := range casetest.Cases[densityCase](t, "density.json") {
		out := answer[densityOutput](t, "density", map[string]any{"samples": c.Samples, "H": c.H, "points": c.Points})
		for k := range c.Points {
			if !relative(out.Density[k], c.Expect.Density[k], 1e-12) {
				t.Errorf("%s: density %v at point %d, want %v", c.ID, out.Density[k], k, c.Expect.Density[k])
			}
			if d := out.LogDensity[k] - c.Expect.LogDensity[k]; !(math.Abs(d) <= 1e-12*max(1, math.Abs(c.Expect.LogDensity[k]))) {
				t.Errorf("%s: log-density %v at point %d, want %v", c.ID, out.LogDensity[k], k, c.Expect.LogDensity[k])
			}
		}
		for rule, want := range c.Expect.Bandwidth {
			out := answer[densityOutput](t, "density", map[string]any{"L": c.L, "samples": c.Samples, "bandwidth": rule, "points": c.Points})
			for i := range want {
				for j := range want[i] {
					if !relative(out.H[i][j], want[i][j], 1e-12) {
						t.Errorf("%s: %s: H[%d][%d] = %v, want %v", c.ID, rule, i, j, out.H[i][j], want[i][j])
					}
				}
			}
		}
	}
}

// Two samples in two dimensions have a singular covariance matrix, so Scott's rule gives a singular bandwidth matrix.
// The output must have two matrices: the singular matrix, and the repaired matrix that the density uses.
func TestDensityOfSamplesInAPlane(t *testing.T) {
	document := map[string]any{"samples": [][]float64{{0, 0}, {2, 2}}, "bandwidth": "scott_full", "points": [][]float64{{1, 1}, {1e9, 0}}}
	out := answer[densityOutput](t, "density", document)
	if h := out.H; h[0][0] != h[0][1] || out.Regularised[0][0] != h[0][0] || !(out.Regularised[0][1] < h[0][1]) {
		t.Errorf("H %v, used %v", out.H, out.Regularised)
	}
	if out.Density[0] <= 0 || out.Density[1] != 0 || math.IsInf(out.LogDensity[1], 0) {
		t.Errorf("%+v", out)
	}
}

func TestDensityRefuses(t *testing.T) {
	refused(t, "density", map[string]string{
		`{"samples":[],"H":[[1]],"points":[]}`:                             "samples: is empty",
		`{"samples":[[]],"H":[],"points":[]}`:                              "samples: must have 1 to 32 coordinates",
		`{"samples":[[1],[2,3]],"H":[[1]],"points":[]}`:                    "samples[1]: must have 1 coordinates",
		`{"samples":[[1],[1e300]],"H":[[1]],"points":[]}`:                  "samples[1][0]: 1e+300 is beyond",
		`{"samples":[[1],[NaN]],"H":[[1]],"points":[]}`:                    "samples[1][0]: JSON is malformed",
		`{"L":2,"samples":[[1]],"H":[[1]],"points":[]}`:                    "L: is 2",
		`{"samples":[[1]],"points":[]}`:                                    "H: give either H or bandwidth",
		`{"samples":[[1],[2]],"H":[[1]],"bandwidth":"a","points":[]}`:      "H: give either H or bandwidth",
		`{"samples":[[1],[2]],"bandwidth":"scott","points":[]}`:            "bandwidth: must be",
		`{"samples":[[1]],"bandwidth":"scott_full","points":[]}`:           "give at least two samples, or the field H",
		`{"samples":[[1,2],[1,3]],"bandwidth":"scott_diag","points":[]}`:   "coordinate 0 is the same in all",
		`{"samples":[[1,2]],"H":[[1]],"points":[]}`:                        "H: must have 2 rows",
		`{"samples":[[1,2]],"H":[[1,0],[0]],"points":[]}`:                  "H[1]: must have 2 numbers",
		`{"samples":[[1,2]],"H":[[1,0.5],[0,1]],"points":[]}`:              "H[0][1]: is 0.5, but H[1][0] is 0",
		`{"samples":[[1,2]],"H":[[1,1],[1,1]],"points":[]}`:                "H: is not positive definite",
		`{"samples":[[1,2]],"H":[[1,0],[0,-1]],"points":[]}`:               "H: is not positive definite",
		`{"samples":[[1]],"H":[[1]],"points":[[1],[1,2]]}`:                 "points[1]: must have 1 coordinates",
		`{"samples":[[1]],"H":[[1]],"weights":[0],"points":[]}`:            "weights: are all zero",
		`{"samples":[[1]],"H":[[1]],"weights":[1,1],"points":[]}`:          "weights: give one for each",
		`{"samples":[[1]],"H":[[1]],"weights":[-1],"points":[]}`:           "weights[0]: must be 0 or above",
		`{"samples":[[1]],"H":[[1e-99]],"points":[[1]],"bounds":[[0, 1]]}`: "bounds: is no field",
	})
}
