package batchqueue

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
	"github.com/candor-grid/candor/messages"
)

func TestDocumentRefuses(t *testing.T) {
	job := `{"queue":[{"v":1,"r":1},{"d":1,"r":1}]`
	prior := job + `,"distributions":[[{"v":1,"r":1,"p":1}],[{"d":1,"r":1,"p":1}]]`
	casetest.Refuses(t, SolveDocument, map[string]string{
		`{}`:                                            "queue: the key is missing",
		`{"queue":[{"r":1}]}`:                           "queue[0].v: the key is missing",
		`{"queue":[{"v":1}]}`:                           "queue[0].r: the key is missing",
		`{"queue":[{"v":-1,"r":1}]}`:                    "queue[0].v: must be from 0",
		`{"queue":[{"v":1,"r":-1}]}`:                    "queue[0].r: must be from 0",
		`{"queue":[{"v":1e16,"r":1}]}`:                  "queue[0].v: must be from 0",
		`{"queue":[{"v":1,"d":1,"r":1}]}`:               "queue[0].d: leave this key out: the front job waits",
		`{"queue":[{"v":1,"r":1},{"v":1,"d":1,"r":1}]}`: "queue[1].v: leave this key out: only the front job",
		`{"queue":[{"v":1,"r":1},{"r":1}]}`:             "queue[1].d: the key is missing",
		`{"queue":[{"v":1,"r":1},{"d":-2,"r":1}]}`:      "queue[1].d: must be from 0",
		`{"queue":[{"v":1,"r":1,"n":2}]}`:               "queue[0].n: a width needs the size",
		`{"N":0,"queue":[]}`:                            "N: must be at least 1",
		`{"N":4,"queue":[{"v":1,"r":1}]}`:               "queue[0].n: must be at least 1",
		`{"N":4,"queue":[{"v":1,"r":1,"n":5}]}`:         "queue[0].n: 5 nodes are more than the machine's 4",
		`{"N":4,"queue":[],"running":[{"n":3,"remaining":1},{"n":2,"remaining":1}]}`:                        "running[1].n: with this job",
		`{"N":4,"queue":[],"running":[{"n":3,"remaining":-1}]}`:                                             "running[0].remaining",
		`{"queue":[],"running":[{"n":3,"remaining":1}]}`:                                                    "running: needs the size",
		job + `,"mode":"priority"}`:                                                                         "distributions: the key is missing",
		job + `,"distributions":[]}`:                                                                        "distributions: must be one for each of the 2 jobs",
		job + `,"distributions":[[],[]]}`:                                                                   "distributions[0]: has no types",
		job + `,"distributions":[[{"v":1,"p":0.5}],[{"d":1,"p":1}]]}`:                                       "distributions[0]: the probabilities sum to 0.5",
		job + `,"distributions":[[{"v":1,"p":1.5}],[{"d":1,"p":1}]]}`:                                       "distributions[0][0].p: must be a probability",
		job + `,"distributions":[[{"v":1,"p":1}],[{"d":1,"p":-1},{"d":1,"p":2}]]}`:                          "distributions[1][0].p",
		job + `,"distributions":[[{"v":1,"p":1}],[{"d":-1,"p":1}]]}`:                                        "distributions[1][0].d",
		job + `,"distributions":[[{"v":1,"p":1}],[{"v":1,"p":1}]]}`:                                         "distributions[1][0].d: the key is missing",
		job + `,"mode":"full","distributions":[[{"v":1,"p":1}],[{"d":1,"r":1,"p":1}]]}`:                     "distributions[0][0].r: the key is missing",
		`{"N":4,"mode":"full","queue":[{"v":1,"r":1,"n":1}],"distributions":[[{"v":1,"r":1,"n":9,"p":1}]]}`: "distributions[0][0].n: 9 nodes are more",
		prior + `,"mode":"half"}`:                                                                           `mode: must be "priority" or "full"`,
		prior + `,"expectation":"guess"}`:                                                                   `expectation: must be "exact"`,
		prior + `,"expectation":"exact","draws":5}`:                                                         "draws: an exact expectation uses no random draws",
		prior + `,"draws":0}`:                                                                               "draws: must be from 1",
		prior + `,"draws":99999999}`:                                                                        "draws: must be from 1",
		prior + `,"pricing":"pivot"}`:                                                                       "pricing: pivot does not use the keys",
		prior + `,"pricing":"lucky"}`:                                                                       `pricing: must be "externality" or "pivot"`,
		prior + `,"luck":1}`:                                                                                "luck: is no field",
	})
}

// NaN and infinity, which JSON cannot express, must be refused.
func TestNoNumber(t *testing.T) {
	for _, job := range []Job{{Value: math.NaN()}, {Value: math.Inf(1)}, {Length: math.NaN()}} {
		if _, err := Decide(&Queue{Jobs: []Job{job}}); messages.KindOf(err) != messages.Invalid {
			t.Errorf("%+v: %v", job, err)
		}
	}
	p := Prior{Points: []Point{{Job{}, math.NaN()}}}
	if _, err := Pay(&Queue{Jobs: make([]Job, 1)}, &Expectation{Mode: Full, Exact: true, Priors: []Prior{p}}); messages.KindOf(err) != messages.Invalid {
		t.Error(err)
	}
	p = Prior{Sample: func(float64) Job { return Job{} }}
	if _, err := Pay(&Queue{Jobs: make([]Job, 1)}, &Expectation{Mode: Full, Exact: true, Priors: []Prior{p}}); messages.KindOf(err) != messages.Invalid {
		t.Error(err)
	}
}

func TestExtremes(t *testing.T) {
	if out := casetest.Solve[*output](t, SolveDocument, `{"queue":[]}`); out.Runs || out.Threshold != 0 {
		t.Errorf("an empty queue: %+v", out)
	}
	if out := casetest.Solve[*output](t, SolveDocument, `{"N":2,"queue":[],"mode":"full","distributions":[]}`); out.Runs || len(out.Payments) != 0 || len(out.With) != 0 {
		t.Errorf("an empty queue: %+v", out)
	}
	if out := casetest.Solve[*output](t, SolveDocument, `{"queue":[{"v":0,"r":5}],"distributions":[[{"v":7,"p":1}]]}`); !out.Runs || out.Payments[0] != 0 {
		t.Errorf("a job alone: %+v", out)
	}
	// A front job of length 0 delays nobody, and a waiting job of length 0 takes no time.
	if out := casetest.Solve[*output](t, SolveDocument, `{"queue":[{"v":0,"r":0},{"d":9,"r":0}]}`); !out.Runs || out.Threshold != 0 {
		t.Errorf("no length: %+v", out)
	}
	out := casetest.Solve[*output](t, SolveDocument, `{"N":2,"queue":[{"v":1,"r":4,"n":2},{"d":1,"r":0,"n":2},{"d":1,"r":1,"n":2}],"running":[{"n":1,"remaining":0}]}`)
	if fmt.Sprint(out.With) != "[0 4 4]" || *out.Delays[1] != 4 || out.Threshold != 8 || out.Runs {
		t.Errorf("no length: %+v", out)
	}
	// A type with probability 0 never occurs.
	out = casetest.Solve[*output](t, SolveDocument, `{"queue":[{"v":5,"r":1},{"d":1,"r":1}],"expectation":"exact","distributions":[[{"v":5,"p":1}],[{"d":99,"p":0},{"d":1,"p":1}]]}`)
	if fmt.Sprint(out.Externality) != "[-1 5]" || fmt.Sprint(out.Payments) != "[6 -6]" {
		t.Errorf("no probability: %+v", out.paid)
	}
}

func TestOneDraw(t *testing.T) {
	out := casetest.Solve[*output](t, SolveDocument, `{"queue":[{"v":5,"r":1},{"d":1,"r":1}],"draws":1,"distributions":[[{"v":5,"p":1}],[{"d":9,"p":0.5},{"d":1,"p":0.5}]]}`)
	if out.Payments[0]+out.Payments[1] != 0 || out.Errors[0] != nil || out.Draws != 1 {
		t.Errorf("%+v", out.paid)
	}
	if _, err := json.Marshal(out); err != nil {
		t.Error(err)
	}
}

// The sums of the costs of 40 jobs never coincide, so the number of different sums doubles with each job. The request
// for the exact expectation must be refused. The request for an expectation from draws must be answered.
func TestExactHasALimit(t *testing.T) {
	for _, wide := range []int{0, 4} {
		q, e := &Queue{Nodes: wide}, &Expectation{Mode: Full, Exact: true}
		for i := range 40 {
			types := [2]Job{{Length: 1}, {Length: 2, Delay: math.Sqrt(float64(i))}}
			if i == 0 {
				types[1].Delay = 0
			}
			if wide > 0 {
				types[0].Width, types[1].Width = 1, 2
			}
			q.Jobs = append(q.Jobs, types[0])
			e.Priors = append(e.Priors, Prior{Points: []Point{{types[0], 0.5}, {types[1], 0.5}}})
		}
		if _, err := Pay(q, e); messages.KindOf(err) != messages.TooLarge || !strings.Contains(err.Error(), "draws") {
			t.Errorf("%d nodes: %v", wide, err)
		}
		e.Exact, e.Draws = false, 20
		if _, err := Pay(q, e); err != nil {
			t.Errorf("%d nodes: %v", wide, err)
		}
	}
}

// The test has 100 jobs with ten types each, 10^100 profiles. An exact expectation is possible because costs are whole
// numbers and equal sums are merged.
func TestExactOfManyJobs(t *testing.T) {
	q, e := &Queue{}, &Expectation{Mode: Priority, Exact: true}
	for i := range 100 {
		var p Prior
		for k := range 10 {
			job := Job{Delay: float64(k)}
			if i == 0 {
				job = Job{Value: 90 * float64(k)}
			}
			p.Points = append(p.Points, Point{job, 0.1})
		}
		q.Jobs, e.Priors = append(q.Jobs, p.Points[i%10].Type), append(e.Priors, p)
		q.Jobs[i].Length = 1
	}
	exact, err := Pay(q, e)
	if err != nil {
		t.Fatal(err)
	}
	e.Exact, e.Draws = false, 4000
	drawn, err := Pay(q, e)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range exact.Net {
		if math.Abs(drawn.Net[i]-x) > 6*drawn.Errors[i] {
			t.Errorf("payment %d: %v ± %v, exactly %v", i, drawn.Net[i], drawn.Errors[i], x)
		}
	}
}

// Any document must give an error that blames the sender, or an answer that JSON can encode and whose payments sum to
// zero.
func FuzzSolveDocument(f *testing.F) {
	casetest.Fuzz(f, SolveDocument, 1<<20, func(t *testing.T, out *output) {
		if out.paid != nil {
			sum := 0.0
			for _, x := range out.Payments {
				sum += x
			}
			if sum != 0 {
				t.Fatalf("payments sum to %g", sum)
			}
		}
	},
		`{"N":4,"queue":[{"v":1,"r":1,"n":2},{"d":1,"r":2,"n":3}],"running":[{"n":1,"remaining":2}],"mode":"full","draws":3,"distributions":[[{"v":1,"r":1,"n":2,"p":1}],[{"d":1,"r":1,"n":1,"p":1,"p_exact":"1"}]]}`,
		`{"queue":[{"v":1,"r":1},{"d":1,"r":2}],"expectation":"exact","distributions":[[{"v":1,"p":1}],[{"d":1,"p":0.5},{"d":1e15,"p":0.5}]]}`,
		`{"queue":[{"v":1,"r":1},{"d":1,"r":2,"account":"a"},{"d":1e15,"r":2}],"pricing":"pivot"}`)
}
