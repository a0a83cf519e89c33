package jobfile

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/wire"
)

func TestADocumentWithStages(t *testing.T) {
	job, err := ParseDocument([]byte(`
name: flights
project: climate
market: main
budget: 12.5
dir: /data
env: {THREADS: 4, LC_ALL: C, EMPTY: ""}
utility:
  form: log
  weights: {reduce: 2, map: 3.5}
  minimum: 0.25
stages:
  - &first
    name: count
    class: map
    array: 0-7%2
    time_limit: 10m
    script: &program |
      awk '{ n++ }'
      sort
    attempts: &most 2
  - script: *program
    attempts: *most
    name: total
    class: reduce
    array: 5
    max_running: 9
    after: [count]
    time_limit: 90
    env: {A: 1.50}
`))
	if err != nil {
		t.Fatal(err)
	}
	script := "awk '{ n++ }'\nsort\n"
	want := jobmsg.JobSpec{
		Name: "flights", Project: "climate", Market: "main", Budget: 12_500_000, Dir: "/data",
		Env:     jobmsg.Env{{Name: "EMPTY", Value: ""}, {Name: "LC_ALL", Value: "C"}, {Name: "THREADS", Value: "4"}},
		Utility: &jobmsg.Utility{Form: jobmsg.Log, Minimum: 0.25, Weights: jobmsg.Weights{{Class: "map", Weight: 3.5}, {Class: "reduce", Weight: 2}}},
		Stages: []jobmsg.Stage{
			{Name: "count", Class: "map", Attempts: 2, MaxRunning: 2, Script: script, TimeLimit: messages.Duration(10 * time.Minute), Array: jobmsg.Array{{First: 0, Last: 7, Step: 1}}},
			{Name: "total", Class: "reduce", Attempts: 2, MaxRunning: 9, Script: script, TimeLimit: messages.Duration(90 * time.Second), Array: jobmsg.Array{{First: 5, Last: 5, Step: 1}},
				After: []messages.Name{"count"}, Env: jobmsg.Env{{Name: "A", Value: "1.50"}}},
		},
	}
	if !reflect.DeepEqual(job.Spec, want) {
		t.Errorf("got  %+v\nwant %+v", job.Spec, want)
	}
}

func TestADocumentOfOneStage(t *testing.T) {
	for _, text := range []string{
		"budget: 1\ncommand: [echo, 1, true]\ntasks: 3\n",
		`{"budget": "1", "command": ["echo", "1", "true"], "tasks": 3, "env": {}, "array": null}`,
	} {
		job, err := ParseDocument([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		want := []jobmsg.Stage{{Name: "main", Command: []string{"echo", "1", "true"}, Tasks: 3}}
		if !reflect.DeepEqual(job.Spec.Stages, want) || job.Spec.Budget != messages.Credit || !job.HasBudget {
			t.Errorf("got %+v, want %+v", job.Spec, want)
		}
	}
}

// Programs that write job files may write small numbers with an exponent. So amounts in this form must be read.
func TestAmountsInJobFiles(t *testing.T) {
	for text, want := range map[string]messages.Credits{"5e-05": 50, "1E3": 1000 * messages.Credit, "1.5e+1": 15 * messages.Credit, `"2e0"`: 2 * messages.Credit} {
		job, err := ParseDocument([]byte("budget: " + text + "\nrate: " + text + "\ncommand: [x]\n"))
		if err != nil || job.Spec.Budget != want || job.Spec.Rate != want {
			t.Errorf("%s: %+v, %v", text, job, err)
		}
	}
}

func TestARateMayBeForAnHour(t *testing.T) {
	for text, want := range map[string]messages.Credits{"36/h": messages.Credit / 100, "0.01/s": messages.Credit / 100, "1/h": messages.HourlyCredit} {
		job, err := ParseDocument([]byte("budget: 1\nrate: " + text + "\ncommand: [x]\n"))
		if err != nil {
			t.Errorf("rate: %s: %v", text, err)
		} else if job.Spec.Rate != want {
			t.Errorf("rate: %s is %v, want %v", text, job.Spec.Rate, want)
		}
		o := NewOptions(nil)
		if err := o.Flags.Parse([]string{"--rate", text}); err != nil {
			t.Errorf("--rate %s: %v", text, err)
		}
	}
	if _, err := ParseDocument([]byte("budget: 1\nrate: 36/d\ncommand: [x]\n")); err == nil {
		t.Error("a rate for a day is taken")
	}
}

func TestABudgetOfZeroIsNotAMissingOne(t *testing.T) {
	for text, want := range map[string]bool{"budget: 0\ncommand: [x]\n": true, "command: [x]\n": false} {
		job, err := ParseDocument([]byte(text))
		if err != nil || job.HasBudget != want {
			t.Errorf("%q: %v, %v", text, job, err)
		}
	}
}

// An error about a document must name the line and the column of the fault. It must also show the line, with a mark
// under the fault.
func TestBadDocumentsAreRefusedWithTheirPlace(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"budget: ten\ncommand: [x]\n", `line 1, column 9: amount "ten": must be a decimal number`},
		{"budget: 1\ncommand: [x]\nbugdet: 2\n", `line 3, column 1: unknown field "bugdet"`},
		{"budget: 1\nbudget: 2\ncommand: [x]\n", `line 2, column 1: mapping key "budget" already defined`},
		{"budget: 1\nstages:\n  - name: a\n    tasks: -3\n", `line 4, column 12: "-3" is not a whole number`},
		{"budget: 1\ntasks: 1.5\n", `line 2, column 8: "1.5" is not a whole number`},
		{"budget: 1\ngang: 3\n", "line 2, column 7: must be true or false"},
		{"budget: 1\ntasks: 99999999999999999999\n", "is not a whole number"},
		{"budget: 1\nstages: 3\n", "line 2, column 9: must be a list, like [a, b]"},
		{"budget: 1\nstages: [a]\n", "line 2, column 10: "},
		{"budget: 1\ncommand: sort -u\n", "line 2, column 10: must be a list of a program and its arguments"},
		{"budget: 1\ncommand: [[a]]\n", "must be a list of a program"},
		{"budget: 1\nname: [a]\n", "line 2, column 7: must be text"},
		{"budget: 1\ntime_limit: soon\n", `line 2, column 13: "soon" is not a duration`},
		{"budget: 1\narray: 5-3\n", `line 2, column 8: array "5-3"`},
		{"budget: 1\nenv: [A]\n", "line 2, column 6: must map variables to values"},
		{"budget: 1\nenv: {A: [1]}\n", "A: must be text"},
		{"budget: 1\nutility: {weights: {map: .inf}}\n", "line 2, column 26"},
		{"budget: 1\nutility: {weights: {map: x}}\n", `"x" is not a number`},
		{"budget: .nan\n", "must be a decimal number"},
		{"budget: 1e30\n", `amount "1e30": is above the limit`},
		{"budget: 1e-07\n", `amount "1e-07": must be a decimal number`},
		{"budget: 1\n  command: [x\n", "line 1, column 9: mapping value is not allowed"},
		{"budget: 1\n", "stages: missing: give command"},
		{"budget: 1\ncommand: [x]\nstages: [{name: a}]\n", "stages: cannot go together with the fields of a stage"},
		{"", "the file is empty"},
		{"# nothing\n", "the file is empty"},
		{"budget: 1\ncommand: [x]\n---\nbudget: 2\n", "several documents"},
		{"just words\n", "line 1, column 1: must be fields, like budget: 1"},
		{"budget: *nowhere\n", "line 1"},
	} {
		_, err := ParseDocument([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.text, err, c.want)
			continue
		}
		if messages.KindOf(err) != messages.Invalid {
			t.Errorf("%q: kind %v, want Invalid", c.text, messages.KindOf(err))
		}
		if strings.Contains(c.want, "line ") && !strings.Contains(err.Error(), "^") {
			t.Errorf("%q: no line is shown: %v", c.text, err)
		}
	}
}

func TestTheLineThatTheSiteComplainsOfIsFound(t *testing.T) {
	job, err := ParseDocument([]byte("budget: 1\nstages:\n  - name: a\n    tasks: 10000000\n    command: [x]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := job.Locate("stages[0].tasks: 10000000 is above the limit"); !strings.Contains(got, ">  4 |     tasks: 10000000") {
		t.Errorf("got %q", got)
	}
	if got := job.Locate("stages[0].command[3]: is too long"); !strings.Contains(got, ">  5 |     command: [x]") {
		t.Errorf("got %q", got)
	}
	single, err := ParseDocument([]byte("tasks: 10000000\ncommand: [x]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := single.Locate("stages[0].tasks: x"); !strings.Contains(got, ">  1 | tasks: 10000000") {
		t.Errorf("got %q", got)
	}
	for _, message := range []string{"", "no field", "budgets: x", "a b c: x", "[[: x"} {
		if got := job.Locate(message); got != "" {
			t.Errorf("%q: got %q, want nothing", message, got)
		}
	}
}

// The description of a job that the site prints can be submitted again.
func TestTheSitesOwnJSONIsADocument(t *testing.T) {
	want := jobmsg.JobSpec{Name: "again", Budget: 12_500_000, Dir: "/data", Env: jobmsg.Env{{Name: "A", Value: "1"}},
		Utility: &jobmsg.Utility{Form: jobmsg.Linear, Weights: jobmsg.Weights{{Class: "map", Weight: 1.5}}},
		Stages: []jobmsg.Stage{
			{Name: "a", Command: []string{"x", ""}, TimeLimit: messages.Duration(time.Minute), Array: jobmsg.Array{{First: 0, Last: 9, Step: 3}, {First: 20, Last: 20, Step: 1}}},
			{Name: "b", After: []messages.Name{"a"}, Script: "#!/bin/sh\ndate\n", Attempts: 1}}}
	text, err := wire.Marshal(want, wire.JSON)
	if err != nil {
		t.Fatal(err)
	}
	job, err := ParseDocument(text)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := wire.Marshal(job.Spec, wire.JSON); string(again) != string(text) {
		t.Errorf("got  %s\nwant %s", again, text)
	}
}

func FuzzParseDocument(f *testing.F) {
	f.Add([]byte("budget: 1\nstages:\n  - &a {name: x, env: {A: 1}}\n  - <<: *a\n"))
	f.Add([]byte("budget: !!str 5\nutility: {weights: {map: 1}}\narray: 0-9%2\n"))
	f.Fuzz(func(t *testing.T, source []byte) {
		if len(source) > 4096 {
			return
		}
		if job, err := ParseDocument(source); err != nil && messages.KindOf(err) != messages.Invalid || err == nil && len(job.Spec.Stages) == 0 {
			t.Errorf("%q: %v, %v", source, job, err)
		}
	})
}
