package submit_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/deploy/depot"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
)

func withDepot(s *clienttest.Site) {
	s.T.Helper()
	d, err := depot.Start(depot.Config{Site: "west", Bus: s.Net.Connect("$depot"), Operator: "operator"})
	if err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() { d.Close() })
}

func stored(s *clienttest.Site, f job.File) string {
	s.T.Helper()
	var content strings.Builder
	err := bus.ReceiveFile(s.T.Context(), s.Net.Connect("alice"), messages.Subject("west", messages.Depot, job.VerbGet, "alice"), messages.Attempt{}, f, &content)
	if err != nil {
		s.T.Error(err)
	}
	return content.String()
}

func TestSubmitSendsInputs(t *testing.T) {
	s := newSite(t)
	taken := clienttest.Submissions(s)
	withDepot(s)
	s.Write("data.csv", "1,2\n")
	s.Write("tool", "#!/bin/sh\n")
	if err := os.Chmod(s.Path("tool"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.Write("run.sh", "#!/bin/sh\n#CANDOR -b 1 --input data.csv=in/data --output 'out/*'\ntrue\n")
	for range 2 {
		s.Run("submit", "--input", s.Path("tool"), "--output", "log", s.Path("run.sh")).Expect(t, 0, "Submitted job 17", "")
	}
	spec := (*taken)[1].Spec
	if stage := spec.Stages[0]; spec.Dir != "" || len(stage.Inputs) != 2 || fmt.Sprint(stage.Outputs) != "[out/* log]" {
		t.Fatalf("submitted %+v", spec)
	}
	in := spec.Stages[0].Inputs
	if in[0].Name != "in/data" || in[0].Executable || stored(s, in[0]) != "1,2\n" || in[1].Name != "tool" || !in[1].Executable || stored(s, in[1]) != "#!/bin/sh\n" {
		t.Errorf("inputs are %+v", in)
	}
}

func TestSubmitAJobFileWithFiles(t *testing.T) {
	s := newSite(t)
	taken := clienttest.Submissions(s)
	withDepot(s)
	s.Write("a", "a")
	s.Write("b", "b")
	s.Write("job.yaml", `
budget: 1
inputs: a
stages:
  - {name: one, command: ["true"], inputs: [b=x/b], outputs: "*.csv"}
  - {name: two, command: ["true"]}
`)
	s.Run("submit", s.Path("job.yaml")).Expect(t, 0, "Submitted job 17", "")
	var got []string
	for _, stage := range (*taken)[0].Spec.Stages {
		for _, f := range stage.Inputs {
			got = append(got, stage.Name+" "+f.Name+" "+stored(s, f))
		}
	}
	if fmt.Sprint(got) != "[one a a one x/b b two a a]" {
		t.Errorf("submitted %q", got)
	}
}

// The site has no auctioneer and no depot, so files must be refused before any request. The error names the file.
func TestSubmitRefusesFiles(t *testing.T) {
	s := newSite(t)
	s.Write("a", "a")
	s.Write("run.sh", "#!/bin/sh\ntrue\n")
	if err := os.WriteFile(s.Path("big"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(s.Path("big"), job.MaxFile+1); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		say  string
		args []string
	}{
		{"input none: there is no file or directory ", []string{"--input", "none"}},
		{"input state: is not a regular file", []string{"--input", "state"}},
		{"input: big: is above the limit of 64 MiB", []string{"--input", "big"}},
		{"--input \"a=\": the name after = is missing", []string{"--input", "a="}},
		{`stages[0].inputs[0].name: "../a" must be a relative path`, []string{"--input", "a=../a"}},
		{`stages[0].inputs[1].name: "a" is the name of stages[0].inputs[0] too`, []string{"--input", "a", "--input", "run.sh=a"}},
		{`stages[0].outputs[0]: "../*" must be a relative path`, []string{"--output", "../*"}},
		{`stages[0].outputs[0]: "[" is no pattern`, []string{"--output", "["}},
		{"tasks with inputs or outputs run in a new directory", []string{"--input", "a", "-D", "/data"}},
	} {
		args := append([]string{"submit", "-b", "1"}, append(c.args, s.Path("run.sh"))...)
		if r := s.Run(args...); r.Code != 2 || !strings.Contains(r.Err, c.say) {
			t.Errorf("%q: exit code %d, %s\nwant %s", c.args, r.Code, r.Err, c.say)
		}
	}
	s.Write("two.yaml", "budget: 1\nstages: [{name: a, script: x}, {name: b, script: y}]\n")
	s.Run("submit", "--input", "a", s.Path("two.yaml")).Expect(t, 2, "", "--input: the job has 2 stages")
	s.Write("bad.yaml", "budget: 1\ncommand: [x]\ninputs: {a: b}\n")
	s.Run("submit", s.Path("bad.yaml")).Expect(t, 2, "", "")
	s.Write("dir.yaml", "budget: 1\ncommand: [x]\ninputs: [[a]]\n")
	s.Run("submit", s.Path("dir.yaml")).Expect(t, 2, "", "line 3, column 10: must be a file")
}
