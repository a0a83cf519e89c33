package deadlineaware

import (
	"fmt"
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile"
	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
	"github.com/candor-grid/candor/messages"
)

func refused(err error, says string) bool {
	kind := messages.KindOf(err)
	return err != nil && (kind == messages.Invalid || kind == messages.TooLarge) && strings.HasPrefix(err.(*messages.Error).Message, says)
}

func solved(document []byte) (any, error) {
	in, err := casefile.Read[Document](document)
	if err != nil {
		return nil, err
	}
	p, err := in.Problem()
	if err != nil {
		return nil, err
	}
	return New(p)
}

func TestDocumentsAreAnswered(t *testing.T) {
	const hard = `"valuation":{"class":"hard","max":5,"deadline":6}`
	for document, want := range map[string]string{
		`{"slots":1,"jobs":[]}`: "[] [] []",
		// Job 0 has three tasks of 4 s. They would take all of the 12 slot-seconds before the deadline at 6 s. Job 1 is
		// shorter, so it is served instead.
		`{"slots":2,"quantile":0.5,"jobs":[{"tasks":3,"runtime":[4,1,9],` + hard + `},{"demand":[5],` + hard + `}]}`: "[1 0] [9 5] [true false]",
		`{"slots":1,"mean":true,"delta":0,"jobs":[{"runtime":[1,3],"elapsed":2,` + hard + `}]}`:                      "[0] [2] [false]",
	} {
		out, err := solved([]byte(document))
		if err != nil {
			t.Errorf("%s: %v", document, err)
			continue
		}
		s := out.(*Schedule)
		if got := fmt.Sprint(s.Order, s.Completion, s.GivenUp); got != want {
			t.Errorf("%s: %s, want %s", document, got, want)
		}
	}
}

func TestDocumentsAreRefused(t *testing.T) {
	const v = `"valuation":{"class":"hard","max":5,"deadline":6}`
	for document, says := range map[string]string{
		``:                                    "document: JSON was cut",
		`{"slots":1}`:                         "jobs: the key is missing",
		`{"slots":0,"jobs":[]}`:               "slots: must be from 1",
		`{"slots":1,"jobs":[],"seed":1}`:      "seed: is no field",
		`{"slots":1,"jobs":[],"delta":-1}`:    "delta: must be from 0",
		`{"slots":1,"jobs":[],"quantile":0}`:  "quantile: must be above 0",
		`{"slots":1,"jobs":[],"quantile":.5}`: "quantile: JSON is malformed",
		`{"slots":1,"jobs":[],"quantile":0.5,"mean":true}`:                                      "quantile: cannot be combined with mean",
		`{"slots":1,"jobs":[],"resolution":0}`:                                                  "resolution: must be above 0",
		`{"slots":1,"jobs":[],"resolution":-1}`:                                                 "resolution: must be from 0",
		`{"slots":1,"jobs":[{"runtime":[1]}]}`:                                                  "jobs[0].valuation: the key is missing",
		`{"slots":1,"jobs":[{` + v + `}]}`:                                                      "jobs[0]: give samples",
		`{"slots":1,"jobs":[{"runtime":[1],"demand":[1],` + v + `}]}`:                           "jobs[0]: give samples",
		`{"slots":1,"jobs":[{"runtime":[],` + v + `}]}`:                                         "jobs[0].runtime: there are none",
		`{"slots":1,"jobs":[{"demand":[1,-2],` + v + `}]}`:                                      "jobs[0].demand[1]: must be from 0",
		`{"slots":1,"jobs":[{"tasks":-1,"runtime":[1],` + v + `}]}`:                             "jobs[0].tasks: must be from 0",
		`{"slots":1,"jobs":[{"tasks":0,"demand":[1],` + v + `}]}`:                               "jobs[0].tasks: must be at least 1",
		`{"slots":1,"jobs":[{"tasks":1000,"runtime":[1e15],` + v + `}]}`:                        "jobs[0].demand: must be from 0",
		`{"slots":1,"jobs":[{"elapsed":-1,"runtime":[1],` + v + `}]}`:                           "jobs[0].elapsed: must be from 0",
		`{"slots":1,"jobs":[{"runtime":[1],"valuation":{"class":"soft","max":1}}]}`:             "jobs[0].valuation.class",
		`{"slots":1,"jobs":[{"runtime":[1],"valuation":{"class":"sigmoidal","max":1,"mu":1}}]}`: "jobs[0].valuation.delta",
	} {
		_, err := solved([]byte(document))
		if !refused(err, says) {
			t.Errorf("%s: %v, want %q", document, err, says)
		}
	}
}

// Any document must give a schedule, or an error that blames the input.
func FuzzDocument(f *testing.F) {
	casetest.Fuzz(f, solved, 1<<20, func(*testing.T, any) {},
		`{"slots":2,"delta":0.1,"jobs":[{"tasks":3,"runtime":[4,1,9],"valuation":{"class":"sigmoidal","max":5,"mu":6,"delta":2}}]}`,
		`{"slots":1,"mean":true,"jobs":[{"demand":[0],"elapsed":1,"valuation":{"class":"custom","max":5,"points":[{"at":1,"part":0.5}]}}]}`)
}
