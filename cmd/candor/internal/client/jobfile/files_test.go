package jobfile

import (
	"reflect"
	"testing"

	jobmsg "github.com/candor-grid/candor/messages/job"
)

func TestFilesOfADocument(t *testing.T) {
	job, err := ParseDocument([]byte(`
inputs: [a, dir/b=c]
outputs: "*.csv"
stages:
  - {name: one, script: x, inputs: "k=v=name", outputs: [out, "log?"]}
  - {name: two, script: y, inputs: [{name: s, size: 3, digest: d, executable: true}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Input{
		{0, "a", "a"}, {0, "dir/b", "c"}, {0, "k=v", "name"},
		{1, "a", "a"}, {1, "dir/b", "c"},
	}
	if !reflect.DeepEqual(job.Inputs, want) {
		t.Errorf("inputs %+v, want %+v", job.Inputs, want)
	}
	one, two := job.Spec.Stages[0], job.Spec.Stages[1]
	if !reflect.DeepEqual(one.Outputs, []string{"*.csv", "out", "log?"}) || !reflect.DeepEqual(two.Outputs, []string{"*.csv"}) {
		t.Errorf("outputs %q and %q", one.Outputs, two.Outputs)
	}
	if !reflect.DeepEqual(two.Inputs, []jobmsg.File{{Name: "s", Size: 3, Digest: "d", Executable: true}}) || one.Inputs != nil {
		t.Errorf("stored inputs %+v and %+v", one.Inputs, two.Inputs)
	}
}

func TestFilesOfASingleStage(t *testing.T) {
	job, err := ParseDocument([]byte("command: [x]\ninputs: a\noutputs: [b]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(job.Inputs, []Input{{0, "a", "a"}}) || !reflect.DeepEqual(job.Spec.Stages[0].Outputs, []string{"b"}) {
		t.Errorf("inputs %+v, outputs %q", job.Inputs, job.Spec.Stages[0].Outputs)
	}
}

func TestFilesOfAScript(t *testing.T) {
	job, err := ParseScript([]byte("#!/bin/sh\n#CANDOR --input 'a b=c' --output 'x*'\ntrue\n"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	top := NewOptions(nil)
	if err := top.Flags.Parse([]string{"--input", "d", "--output", "y"}); err != nil {
		t.Fatal(err)
	}
	if err := job.Options.Overlay(top); err != nil {
		t.Fatal(err)
	}
	if err := job.Options.Apply(job); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(job.Inputs, []Input{{0, "a b", "c"}, {0, "d", "d"}}) || !reflect.DeepEqual(job.Spec.Stages[0].Outputs, []string{"x*", "y"}) {
		t.Errorf("inputs %+v, outputs %q", job.Inputs, job.Spec.Stages[0].Outputs)
	}
}
