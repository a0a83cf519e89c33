package highestbid

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
	"github.com/candor-grid/candor/messages"
)

func TestBadDocuments(t *testing.T) {
	const job = `{"submit":0,"runtime":1,"value":1,"bid":1,"estimate":1}`
	with := func(jobs string) string { return `{"nodes":1,"algorithm":"HB","price":"kth","jobs":[` + jobs + `]}` }
	casetest.Refuses(t, SolveDocument, map[string]string{
		``:               "ends in the middle",
		with(job) + `{}`: "text follows the end of the document",
		`{"algorithm":"HB","price":"kth","jobs":[]}`:                                                                    "nodes: the key is missing",
		`{"nodes":0,"algorithm":"HB","price":"kth","jobs":[]}`:                                                          "nodes: must be from 1",
		`{"nodes":1.5,"algorithm":"HB","price":"kth","jobs":[]}`:                                                        "nodes: 1.5 is not a whole number",
		`{"nodes":1,"algorithm":"SJF","price":"kth","jobs":[]}`:                                                         `algorithm: must be HB, NPHB, WSPT or WSEPT, is "SJF"`,
		`{"nodes":1,"algorithm":"HB","price":"third","jobs":[]}`:                                                        `price: must be "first", "kth" or "pivot"`,
		`{"nodes":1,"algorithm":"HB","price":"kth","reserve":-1,"jobs":[]}`:                                             "reserve: must be 0 or from",
		`{"nodes":1,"algorithm":"HB","price":"kth","cap":true,"jobs":[]}`:                                               "cap: is no field",
		`{"nodes":1,"algorithm":"HB","price":"kth","capped":1,"jobs":[]}`:                                               "capped: is a number, must be true or false",
		with(job + `,{"submit":-1,"runtime":1,"value":1,"bid":1}`):                                                      "jobs[1].submit: must be 0 or from",
		with(`{"submit":0,"runtime":-1,"value":1,"bid":1}`):                                                             "jobs[0].runtime: must be 0 or from",
		with(`{"submit":0,"runtime":1,"value":-1,"bid":1}`):                                                             "jobs[0].value: must be 0 or from",
		with(`{"submit":0,"runtime":1,"value":1,"bid":-1}`):                                                             "jobs[0].bid: must be 0 or from",
		with(`{"submit":0,"runtime":1,"value":1,"bid":1,"estimate":-1}`):                                                "jobs[0].estimate: must be 0 or from",
		with(`{"submit":0,"runtime":1,"value":1,"bid":1e31}`):                                                           "jobs[0].bid: must be 0 or from 1e-30 to 1e+30, is 1e+31",
		with(`{"submit":0,"runtime":1e-300,"value":1,"bid":1}`):                                                         "jobs[0].runtime: must be 0 or from",
		with(`{"submit":0,"runtime":1,"value":1,"bid":NaN}`):                                                            "jobs[0].bid: JSON is malformed",
		with(`{"submit":0,"runtime":1e999,"value":1,"bid":1}`):                                                          "jobs[0].runtime: 1e999 does not fit",
		with(`{"submit":0,"runtime":1,"value":1}`):                                                                      "jobs[0].bid: the key is missing",
		`{"nodes":1,"algorithm":"WSEPT","price":"kth","jobs":[` + job + `,{"submit":0,"runtime":1,"value":1,"bid":1}]}`: "jobs[1].estimate: must be above 0 for WSEPT",
	})
}

func TestProblemRefusesWhatJSONCannotSay(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		_, err := Run(&Problem{Nodes: 1, Rule: Rule{HB, Kth, false}, Jobs: []Job{{}, {Bid: x}}})
		if messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), "jobs[1].bid") {
			t.Errorf("%v: %v", x, err)
		}
	}
}

func TestNoJobsIsAnEmptyOutcome(t *testing.T) {
	out, err := SolveDocument([]byte(`{"nodes":1,"algorithm":"HB","price":"kth","jobs":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(out)
	if err != nil || strings.Count(string(data), "[]") != 8 || !strings.Contains(string(data), `"designer_payoff":null`) {
		t.Errorf("%s, %v", data, err)
	}
}

func FuzzSolveDocument(f *testing.F) {
	casetest.Fuzz(f, SolveDocument, 1000, func(t *testing.T, out *Outcome) {
		for i, pay := range out.Payment {
			if !(pay >= 0) || math.IsInf(pay, 0) || !(out.Finish[i] >= out.Start[i]) || math.IsNaN(out.Utility[i]) {
				t.Fatalf("job %d pays %v, from %v to %v, utility %v", i, pay, out.Start[i], out.Finish[i], out.Utility[i])
			}
		}
	},
		`{"nodes":1,"algorithm":"HB","price":"kth","jobs":[{"submit":0.1,"runtime":0.2,"value":1,"bid":1},{"submit":0.3,"runtime":3,"value":1,"bid":2}]}`,
		`{"nodes":2,"algorithm":"WSEPT","price":"kth","capped":true,"reserve":0,"jobs":[{"submit":0,"runtime":1e-30,"value":1e30,"bid":1e30,"estimate":1e-30}]}`)
}

func TestTasksAreRefused(t *testing.T) {
	for _, n := range []int{-1, MostTasks + 1} {
		p := &Problem{Nodes: 1, Rule: Rule{HB, Kth, false}, Jobs: []Job{{Runtime: 1, Tasks: n}}}
		if _, err := Run(p); err == nil || !strings.HasPrefix(err.Error(), "jobs[0].tasks: must be from 0") {
			t.Errorf("%d tasks: %v", n, err)
		}
	}
}
