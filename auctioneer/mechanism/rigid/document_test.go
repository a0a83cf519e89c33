package rigid_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism/backfill"
	"github.com/candor-grid/candor/auctioneer/mechanism/fairshare"
	"github.com/candor-grid/candor/auctioneer/mechanism/fifo"
	"github.com/candor-grid/candor/auctioneer/mechanism/rigid"
	"github.com/candor-grid/candor/messages"
)

var solvers = map[string]func([]byte) (any, error){
	"fifo": fifo.SolveDocument, "fairshare": fairshare.SolveDocument, "backfill": backfill.SolveDocument,
}

func TestDocumentsAreAnswered(t *testing.T) {
	for name, solve := range solvers {
		for document, want := range map[string]string{
			`{"nodes":1,"jobs":[]}`: `{"start":[],"finish":[],"flow":[],"bsd":[],"makespan":0,"utilisation":0,"mean_flow":0,"mean_bsd":0}`,
			`{"nodes":2,"price":0.5,"jobs":[{"submit":1,"runtime":120,"width":2,"estimate":60,"user":"ada","weight":3,"budget":7}]}`: `{"start":[1],"finish":[121],"flow":[120],"bsd":[1],"makespan":120,"utilisation":1,"mean_flow":120,"mean_bsd":1,"payments":[7],"revenue":7}`,
		} {
			out, err := solve([]byte(document))
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(out)
			if err != nil || string(got) != want {
				t.Errorf("%s: %s, %v, want %s", name, got, err, want)
			}
		}
	}
}

func TestDocumentsAreRefused(t *testing.T) {
	const job = `{"submit":0,"runtime":1,"width":1}`
	for name, solve := range solvers {
		for document, says := range map[string]string{
			``:                                  "ends in the middle",
			`{"nodes":1}`:                       "jobs: the key is missing",
			`{"nodes":0,"jobs":[]}`:             "nodes: must be from 1",
			`{"nodes":1,"jobs":[],"cores":1}`:   "cores: is no field",
			`{"nodes":1,"jobs":[],"price":-1}`:  "price: must be from 0",
			`{"nodes":1,"jobs":[{"submit":0}]}`: "jobs[0].runtime: the key is missing",
			`{"nodes":1,"jobs":[` + job + `,{"submit":0,"runtime":-1,"width":1}]}`:           "jobs[1].runtime: must be from 0",
			`{"nodes":1,"jobs":[{"submit":1e300,"runtime":1,"width":1}]}`:                    "jobs[0].submit: must be from",
			`{"nodes":1,"jobs":[{"submit":0,"runtime":1,"width":0}]}`:                        "jobs[0].width: must be from 1",
			`{"nodes":1,"jobs":[{"submit":0,"runtime":1,"width":2}]}`:                        "jobs[0].width: must be from 1 to the 1 nodes",
			`{"nodes":1,"jobs":[{"submit":0,"runtime":1,"width":1,"estimate":0}]}`:           "jobs[0].estimate: must be above 0",
			`{"nodes":1,"jobs":[{"submit":0,"runtime":1,"width":1,"budget":-2}]}`:            "jobs[0].budget: must be from 0",
			`{"nodes":1,"jobs":[{"submit":0,"runtime":1,"width":1,"weight":0}]}`:             "jobs[0].weight: must be above 0",
			`{"nodes":1,"jobs":[{"submit":0,"runtime":1,"width":1,"weight":2},` + job + `]}`: "jobs[1].weight: is 1, but 2 on an earlier job",
			`{"nodes":1,"jobs":[{"submit":0,"runtime":1,"width":1,"value":2}]}`:              "jobs[0].value: is no field",
			`{"nodes":1,"jobs":[{"submit":0,"runtime":1,"width":1.5}]}`:                      "jobs[0].width: 1.5 is not a whole number",
		} {
			_, err := solve([]byte(document))
			if messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), says) {
				t.Errorf("%s %s: %v, want %q", name, document, err, says)
			}
		}
	}
	for document, solve := range map[string]func([]byte) (any, error){
		`{"nodes":1,"jobs":[],"half_life":-1}`:    fairshare.SolveDocument,
		`{"nodes":1,"jobs":[],"variant":"magic"}`: backfill.SolveDocument,
	} {
		if _, err := solve([]byte(document)); messages.KindOf(err) != messages.Invalid {
			t.Errorf("%s: %v", document, err)
		}
	}
}

func TestInstancesAreRefused(t *testing.T) {
	nan := math.NaN()
	for says, change := range map[string]func(*rigid.Instance){
		"jobs[0].submit":   func(in *rigid.Instance) { in.Jobs[0].Submit = nan },
		"jobs[0].runtime":  func(in *rigid.Instance) { in.Jobs[0].Runtime = nan },
		"jobs[0].estimate": func(in *rigid.Instance) { in.Jobs[0].Estimate = nan },
		"jobs[0].user":     func(in *rigid.Instance) { in.Jobs[0].User = 1 },
		"weights[0]":       func(in *rigid.Instance) { in.Weights[0] = nan },
		"nodes":            func(in *rigid.Instance) { in.Nodes = math.MaxInt32 + 1 },
	} {
		in := &rigid.Instance{Nodes: 1, Jobs: []rigid.Job{{Runtime: 1, Estimate: 1, Width: 1}}, Weights: []float64{1}}
		change(in)
		for name, schedule := range all {
			if _, err := schedule(in); messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v, want %q", name, err, says)
			}
		}
	}
}
