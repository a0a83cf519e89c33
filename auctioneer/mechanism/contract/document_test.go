package contract

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
)

const someOffer = `{"type":{"max":100,"mu":1500,"delta":500},"class":"sigmoidal","M":12,"seed":3,
	"samples":[{"max":100,"mu":1000,"delta":900},{"max":80,"mu":2500,"delta":400},{"max":120,"mu":1700,"delta":300},{"max":60,"mu":-5,"delta":1}],
	"schedule":{"slots":2,"demand":100,"jobs":[{"deadline":900,"demand":800},{"deadline":1800,"demand":1600},{"deadline":2600,"demand":900}]}}`

const deadlineAwareOffer = `{"type":{"max":9,"deadline":120},"class":"hard","M":6,"seed":1,"samples":[{"max":9,"deadline":40},{"max":9,"deadline":200}],
	"schedule":{"job":1,"deadline_aware":{"slots":1,"jobs":[{"demand":[50],"valuation":{"class":"hard","max":9,"deadline":60}},
		{"demand":[30],"elapsed":5,"valuation":{"class":"hard","max":1,"deadline":1}}]}}}`

// The job has 30 s of work and was submitted 5 s ago. Another job has 50 s of work, due in 60 s. The job is scheduled
// as if it had another type, a surrogate. With a surrogate that is due 200 s after the submission, the job waits for
// the other job, and completes 85 s after its submission. With a surrogate that is due after 40 s, only one of the two
// jobs can be in time. The scheduler then serves the job with the surrogate, because it has less work.
func TestDocumentWithTheSchedulerUnderneath(t *testing.T) {
	o := casetest.Solve[*output](t, SolveDocument, deadlineAwareOffer)
	if len(o.Menu) != 6 {
		t.Fatalf("%+v", o)
	}
	early, late := 0, 0
	for _, c := range o.Menu {
		switch c.Completion {
		case 35:
			early++
		case 85:
			late++
		}
	}
	if early == 0 || late == 0 || early+late != 6 {
		t.Errorf("%+v", o.Menu)
	}
}

func TestDocumentWithAType(t *testing.T) {
	o := casetest.Solve[*output](t, SolveDocument, someOffer)
	if o.M != 12 || len(o.Menu) != 12 || *o.Declared < 0 || *o.Declared > 11 {
		t.Fatalf("%+v", o)
	}
	for i, c := range o.Menu {
		if i > 0 && (c.Completion < o.Menu[i-1].Completion || c.Price > o.Menu[i-1].Price+1e-10) {
			t.Errorf("%+v after %+v", c, o.Menu[i-1])
		}
		if c.Declared != (c.Replica == *o.Declared) || c.Price != o.Surrogates[c.Surrogate] {
			t.Errorf("%+v", c)
		}
	}
	again, _ := SolveDocument([]byte(someOffer))
	a, _ := json.Marshal(o)
	b, _ := json.Marshal(again)
	if string(a) != string(b) {
		t.Error("the same document has another answer")
	}
	shown, err := SolveDocument([]byte(strings.Replace(someOffer, `"M":12`, `"M":12,"show":4`, 1)))
	if err != nil || len(shown.(*output).Menu) != 4 {
		t.Errorf("%v, %v", shown, err)
	}
}

func TestDocumentWithCompletionTimes(t *testing.T) {
	o := casetest.Solve[*output](t, SolveDocument, `{"M":2,"weights":[[9,1],[8,6]],"completion":[20,10],"types_mu_delta":[[1,2],[3,4]]}`)
	want := []Contract{{Completion: 10, Value: 6, Replica: 1, Surrogate: 1, Free: true}, {Completion: 20, Price: 2, Value: 9}}
	if !slices.Equal(o.Menu, want) || !o.Unique || o.MaxWeight != 15 {
		t.Errorf("%+v", o)
	}
}

func TestBadDocuments(t *testing.T) {
	casetest.Refuses(t, SolveDocument, map[string]string{
		``:   "ends in the middle",
		`{}`: "give exactly one of the keys weights, ex_post and type; 0 of them are given",
		`{"weights":[[1]],"ex_post":{"price":1,"v_expected":2,"v_actual":1}}`: "2 of them are given",
		`{"weights":[]}`:                                                                              "M: is 0",
		`{"weights":[[]]}`:                                                                            "weights: must be square: there are 1 rows, and row 0 has 0",
		`{"weights":[[1,2]]}`:                                                                         "weights: must be square",
		`{"weights":[[1,2],[3]]}`:                                                                     "row 1 has 1",
		`{"weights":[[1,-2],[3,4]]}`:                                                                  "weights[0][1]: must be from 0",
		`{"weights":[[1,NaN],[3,4]]}`:                                                                 "weights[0][1]: JSON is malformed",
		`{"weights":[[1,1e999],[3,4]]}`:                                                               "does not fit a double",
		`{"weights":[[1]],"M":2}`:                                                                     "M: is 2, but there are 1 rows",
		`{"weights":[[1]],"completion":[1,2]}`:                                                        "completion: must be one for each",
		`{"weights":[[1]],"types_mu_delta":[]}`:                                                       "types_mu_delta: must be one for each",
		`{"weights":[[1]],"seed":1}`:                                                                  "seed: can be used only together with type",
		`{"weights":[[1]],"show":2}`:                                                                  "show: can be used only together with completion or type",
		`{"weights":[[1]],"late_only":true}`:                                                          "late_only: can be used only together with ex_post",
		`{"weights":[[1]],"wieghts":1}`:                                                               "wieghts: is no field",
		`{"ex_post":{"price":1,"v_expected":2}}`:                                                      "ex_post.v_actual: the key is missing",
		`{"ex_post":{"price":-1,"v_expected":2,"v_actual":1}}`:                                        "ex_post.price: must not be negative",
		`{"ex_post":[{"price":1,"v_expected":2,"v_actual":-1}]}`:                                      "ex_post[0].v_actual: must not be negative",
		`{"ex_post":[{"price":1,"v_expected":2,"v_actual":1,"x_actual":1}]}`:                          "ex_post[0]: give both",
		`{"ex_post":[{"price":1e300,"v_expected":1e-300,"v_actual":1e300}]}`:                          "too large for a double",
		`{"ex_post":[],"weights":[[1]]}`:                                                              "weights: is no field",
		strings.Replace(someOffer, `"sigmoidal"`, `"cubic"`, 1):                                       `type.class: "cubic" is not one of`,
		strings.Replace(someOffer, `"class":"sigmoidal",`, ``, 1):                                     "class: the key is missing",
		strings.Replace(someOffer, `"M":12`, `"M":0`, 1):                                              "M: is 0",
		strings.Replace(someOffer, `"M":12,`, ``, 1):                                                  "M: the key is missing",
		strings.Replace(someOffer, `"M":12`, `"M":12,"show":1`, 1):                                    "show: must be at least 2",
		strings.Replace(someOffer, `"slots":2`, `"slots":0`, 1):                                       "schedule.slots: must be positive",
		strings.Replace(someOffer, `"slots":2`, `"slots":2,"completion":[1]`, 1):                      "schedule: give either",
		strings.Replace(deadlineAwareOffer, `"job":1`, `"job":2`, 1):                                  "schedule.job: must be the index of one of the 2 jobs",
		strings.Replace(deadlineAwareOffer, `"job":1`, `"job":1,"slots":1`, 1):                        "schedule: give either",
		strings.Replace(deadlineAwareOffer, `"slots":1`, `"slots":1,"runs":true`, 1):                  "schedule.deadline_aware.runs: is no field",
		strings.Replace(deadlineAwareOffer, `"demand":[50]`, `"demand":[-1]`, 1):                      "schedule.deadline_aware.jobs[0].demand[0]: must be from 0",
		strings.Replace(someOffer, `"demand":100`, `"demand":100,"job":1`, 1):                         "schedule.job: can be used only together with deadline_aware",
		`{"type":{"max":1},"class":"hard","M":2,"samples":[],"schedule":{}}`:                          "samples: there are none",
		`{"type":{"max":1},"class":"hard","M":2,"samples":[{"max":1}]}`:                               "schedule: the key is missing",
		`{"type":{"max":1},"class":"hard","M":2,"samples":[{"max":-1}],"schedule":{}}`:                "samples: none of 10000 draws",
		`{"type":{"max":1},"class":"hard","M":2,"samples":[{"max":1}],"schedule":{"completion":[1]}}`: "gives 1 completion times for 2",
	})
}

func FuzzSolveDocument(f *testing.F) {
	casetest.Fuzz(f, SolveDocument, 600, func(*testing.T, any) {},
		someOffer,
		`{"weights":[[3,1],[2,2.5]],"completion":[1,2]}`,
		`{"ex_post":[{"price":1,"v_expected":2,"v_actual":1}],"late_only":true}`)
}
