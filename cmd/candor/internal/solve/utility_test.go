package solve

import (
	"math"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
)

type utilityCase struct {
	ID     string       `json:"id"`
	Form   string       `json:"form"`
	M      int          `json:"m"`
	Jobs   []utilityJob `json:"jobs"`
	Expect struct {
		Rank    int       `json:"rank"`
		Weights []float64 `json:"weights"`
		RSS     float64   `json:"rss"`
	} `json:"expect"`
}

func TestUtilitySampleCases(t *testing.T) {
	for _, c := range casetest.Cases[utilityCase](t, "utility.json") {
		averages := make([][]float64, len(c.Jobs))
		for i := range c.Jobs {
			averages[i], c.Jobs[i].Average = c.Jobs[i].Average, nil
		}
		out := answer[utilityOutput](t, "utility", map[string]any{"form": c.Form, "m": c.M, "jobs": c.Jobs})
		if out.Rank != c.Expect.Rank || len(out.Weights) != len(c.Expect.Weights) {
			t.Fatalf("%s: %+v", c.ID, out)
		}
		for j, want := range c.Expect.Weights {
			if !relative(out.Weights[j], want, 1e-11) {
				t.Errorf("%s: weight %d is %v, want %v", c.ID, j, out.Weights[j], want)
			}
		}
		if !(math.Abs(out.RSS-c.Expect.RSS) <= 1e-11*max(1e-10, c.Expect.RSS)) {
			t.Errorf("%s: rss %v, want %v", c.ID, out.RSS, c.Expect.RSS)
		}
		for i := range averages {
			for j, want := range averages[i] {
				if math.Abs(out.Averages[i][j]-want) > 1e-15 {
					t.Errorf("%s: average[%d] of job %d is %v, want %v", c.ID, j, i, out.Averages[i][j], want)
				}
			}
		}
	}
}

func TestUtilityOfTooFewJobs(t *testing.T) {
	job := utilityJob{Average: []float64{0.5, 0.25}, Utility: 2}
	for _, jobs := range [][]utilityJob{{job}, {job, {Average: []float64{0.25, 0.125}, Utility: 1}}} {
		out := answer[utilityOutput](t, "utility", map[string]any{"form": "linear", "jobs": jobs})
		if out.Rank != 1 || out.Weights != nil || out.StandardErrors != nil || out.Condition != nil || out.RSS > 1e-30 {
			t.Errorf("%+v", out)
		}
	}
}

// For utilities 1 and 0 and features (1, 0.5) and (0.5, 1), plain least squares gives (4/3, −2/3). With the constraint,
// the second weight must be 0, and the first one 0.8 = (1·1+0.5·0)/(1+0.25).
func TestUtilityNonnegative(t *testing.T) {
	jobs := []utilityJob{{Average: []float64{1, 0.5}, Utility: 1}, {Average: []float64{0.5, 1}}}
	plain := answer[utilityOutput](t, "utility", map[string]any{"form": "linear", "jobs": jobs})
	bound := answer[utilityOutput](t, "utility", map[string]any{"form": "linear", "jobs": jobs, "nonnegative": true})
	if !relative(plain.Weights[0], 4.0/3, 1e-14) || !relative(plain.Weights[1], -2.0/3, 1e-14) {
		t.Errorf("plain %v", plain.Weights)
	}
	if !relative(bound.Weights[0], 0.8, 1e-14) || bound.Weights[1] != 0 || !relative(bound.RSS, 0.2, 1e-14) {
		t.Errorf("nonnegative %v, rss %v", bound.Weights, bound.RSS)
	}
}

func TestUtilityRefuses(t *testing.T) {
	refused(t, "utility", map[string]string{
		`{"form":"linear","jobs":[]}`:                                                                          "jobs: is empty",
		`{"form":"cubic","jobs":[{"average":[1],"utility":1}]}`:                                                "form: must be",
		`{"form":"linear","jobs":[{"utility":1}]}`:                                                             "jobs[0].segments: the key is missing",
		`{"form":"linear","jobs":[{"segments":[],"utility":1}]}`:                                               "jobs[0].segments: give at least one segment with a positive duration",
		`{"form":"linear","jobs":[{"segments":[{"duration":0,"s":[1]}],"utility":1}]}`:                         "jobs[0].segments: give at least one segment with a positive duration",
		`{"form":"linear","jobs":[{"segments":[{"duration":-1,"s":[1]}],"utility":1}]}`:                        "jobs[0].segments[0].duration: must be 0 or above",
		`{"form":"linear","jobs":[{"segments":[{"duration":1,"s":[1]},{"duration":1,"s":[]}],"utility":1}]}`:   "jobs[0].segments[1].s: has 0 shares; give one share",
		`{"form":"linear","jobs":[{"segments":[{"duration":1,"s":[0.5,1.5]}],"utility":1}]}`:                   "jobs[0].segments[0].s[1]: a share must be from 0 to 1",
		`{"form":"linear","jobs":[{"average":[-1],"utility":1}]}`:                                              "jobs[0].average[0]: a share must be from 0 to 1",
		`{"form":"log","jobs":[{"average":[1],"utility":1},{"average":[0],"utility":1}]}`:                      "jobs[1].average[0]: is 0, which has no logarithm",
		`{"form":"linear","jobs":[{"average":[1],"utility":1},{"average":[1,1],"utility":1}]}`:                 "jobs[1]: must have shares of 1 resources",
		`{"form":"linear","m":2,"jobs":[{"average":[1],"utility":1}]}`:                                         "jobs[0]: must have shares of 2 resources",
		`{"form":"linear","jobs":[{"average":[1],"utility":1e200}]}`:                                           "jobs[0].utility: must be finite",
		`{"form":"linear","jobs":[{"segments":[{"duration":1,"s":[0.5]}],"average":[0.25],"utility":1}]}`:      "jobs[0].average[0]: is 0.25, but the segments average 0.5",
		`{"form":"linear","jobs":[{"segments":[{"duration":1,"s":[0.5]}],"average":[0.25,1],"utility":1}]}`:    "jobs[0].average: must have 1 shares",
		`{"form":"linear","jobs":[{"segments":[{"duration":1,"s":[0.5],"x":1}],"average":[0.5],"utility":1}]}`: "jobs[0].segments[0].x: is no field",
	})
}
