package deadlineaware

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
	"github.com/candor-grid/candor/messages"
)

// refused says that an error is of bad input and names a place.
func refused(err error, says string) bool {
	kind := messages.KindOf(err)
	return err != nil && (kind == messages.Invalid || kind == messages.TooLarge) && strings.HasPrefix(err.(*messages.Error).Message, says)
}

func TestDocumentsAreAnswered(t *testing.T) {
	const hard = `"valuation":{"class":"hard","max":5,"deadline":6}`
	for document, want := range map[string]string{
		`{"slots":1,"jobs":[]}`: `{"order":[],"demand":[],"targets":[],"levels":[],"start":[],"completion":[],"utilities":[],"given_up":[]}`,
		// Of 12 s on 2 slots by 6 s the three tasks of job 0 take the whole; job 1 is shorter, so that it is served.
		`{"slots":2,"quantile":0.5,"runs":true,"jobs":[{"tasks":3,"runtime":[4,1,9],` + hard + `},{"demand":[5],` + hard + `}]}`: `{"order":[1,0],"demand":[12,5],"targets":[10.5,5],"levels":[0,5],"start":[0,0],"completion":[9,5],"utilities":[0,5],"given_up":[true,false],` +
			`"runs":[{"job":1,"slot":0,"tasks":1,"start":0,"finish":5},{"job":0,"slot":1,"tasks":2,"start":0,"finish":8},{"job":0,"slot":0,"tasks":1,"start":5,"finish":9}]}`,
		`{"slots":1,"mean":true,"delta":0,"jobs":[{"runtime":[1,3],"elapsed":2,` + hard + `}],"surrogates":{"job":0,"types":[{"class":"hard","max":1,"deadline":3}]}}`: `{"order":[0],"demand":[2],"targets":[2],"levels":[5],"start":[0],"completion":[2],"utilities":[5],"given_up":[false],` +
			`"surrogates":{"targets":[2],"completion":[2],"given_up":[true]}}`,
	} {
		out, err := SolveDocument([]byte(document))
		if err != nil {
			t.Errorf("%s: %v", document, err)
			continue
		}
		if got, err := json.Marshal(out); err != nil || string(got) != want {
			t.Errorf("%s:\n%s, %v, want\n%s", document, got, err, want)
		}
	}
}

func TestDocumentsAreRefused(t *testing.T) {
	const v = `"valuation":{"class":"hard","max":5,"deadline":6}`
	for document, says := range map[string]string{
		``:                                    "document: JSON ends in the middle",
		`{"slots":1}`:                         "jobs: the key is missing",
		`{"slots":0,"jobs":[]}`:               "slots: must be from 1",
		`{"slots":1,"jobs":[],"seed":1}`:      "seed: is no field",
		`{"slots":1,"jobs":[],"delta":-1}`:    "delta: must be from 0",
		`{"slots":1,"jobs":[],"quantile":0}`:  "quantile: must be above 0",
		`{"slots":1,"jobs":[],"quantile":.5}`: "quantile: JSON is malformed",
		`{"slots":1,"jobs":[],"quantile":0.5,"mean":true}`:                                                          "quantile: cannot be combined with mean",
		`{"slots":1,"jobs":[],"resolution":0}`:                                                                      "resolution: must be above 0",
		`{"slots":1,"jobs":[],"resolution":-1}`:                                                                     "resolution: must be from 0",
		`{"slots":1,"jobs":[{"runtime":[1]}]}`:                                                                      "jobs[0].valuation: the key is missing",
		`{"slots":1,"jobs":[{` + v + `}]}`:                                                                          "jobs[0]: give samples",
		`{"slots":1,"jobs":[{"runtime":[1],"demand":[1],` + v + `}]}`:                                               "jobs[0]: give samples",
		`{"slots":1,"jobs":[{"runtime":[],` + v + `}]}`:                                                             "jobs[0].runtime: there are none",
		`{"slots":1,"jobs":[{"demand":[1,-2],` + v + `}]}`:                                                          "jobs[0].demand[1]: must be from 0",
		`{"slots":1,"jobs":[{"tasks":-1,"runtime":[1],` + v + `}]}`:                                                 "jobs[0].tasks: must be from 0",
		`{"slots":1,"jobs":[{"tasks":0,"demand":[1],` + v + `}]}`:                                                   "jobs[0].tasks: a job that has demand",
		`{"slots":1,"jobs":[{"tasks":1000,"runtime":[1e15],` + v + `}]}`:                                            "jobs[0].demand: must be from 0",
		`{"slots":1,"jobs":[{"elapsed":-1,"runtime":[1],` + v + `}]}`:                                               "jobs[0].elapsed: must be from 0",
		`{"slots":1,"jobs":[{"runtime":[1],"valuation":{"class":"soft","max":1}}]}`:                                 "jobs[0].valuation.class",
		`{"slots":1,"jobs":[{"runtime":[1],"valuation":{"class":"sigmoidal","max":1,"mu":1}}]}`:                     "jobs[0].valuation.delta",
		`{"slots":1,"jobs":[],"surrogates":{"job":0,"types":[]}}`:                                                   "surrogates.job: must be the index",
		`{"slots":1,"jobs":[{"runtime":[1],` + v + `}],"surrogates":{"job":0}}`:                                     "surrogates.types: the key is missing",
		`{"slots":1,"jobs":[{"runtime":[1],` + v + `}],"surrogates":{"job":0,"types":[{"class":"hard","max":-1}]}}`: "surrogates.types[0].max",
	} {
		_, err := SolveDocument([]byte(document))
		if !refused(err, says) {
			t.Errorf("%s: %v, want %q", document, err, says)
		}
	}
	many := `{"slots":1000000,"runs":true,"jobs":[` + strings.Repeat(`{"tasks":1000000,"runtime":[0],`+v+`},`, 10) + `{"tasks":1,"runtime":[1],` + v + `}]}`
	if _, err := SolveDocument([]byte(many)); !refused(err, "runs: there are up to") {
		t.Errorf("many runs: %v", err)
	}
}

// FuzzSolveDocument: whatever comes, an outcome or an error of bad input.
func FuzzSolveDocument(f *testing.F) {
	casetest.Fuzz(f, SolveDocument, 1<<20, func(*testing.T, any) {},
		`{"slots":2,"delta":0.1,"jobs":[{"tasks":3,"runtime":[4,1,9],"valuation":{"class":"sigmoidal","max":5,"mu":6,"delta":2}}],"surrogates":{"job":0,"types":[{"class":"hard","max":1,"deadline":3}]}}`,
		`{"slots":1,"mean":true,"jobs":[{"demand":[0],"elapsed":1,"valuation":{"class":"custom","max":5,"points":[{"at":1,"part":0.5}]}}]}`)
}
