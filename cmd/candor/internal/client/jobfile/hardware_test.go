package jobfile

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// TestFeaturesAndGPUTypesOfASite checks what names of hardware mean by the tables of a site. Names that a node has keep
// their meaning, unless a table lists them.
func TestFeaturesAndGPUTypesOfASite(t *testing.T) {
	nodes := func() ([]market.NodeStatus, error) {
		return []market.NodeStatus{{Node: "n1", Labels: []string{"ib", "skylake"}, Resources: &job.Resources{GPUType: "a100"}}, {Node: "n2"}}, nil
	}
	all := &market.SlurmNames{
		Features: job.Labels{{Name: "*"}, {Name: "cascadelake", Value: "skylake"}},
		GPUTypes: job.Labels{{Name: "*"}, {Name: "ampere", Value: "a100"}},
	}
	some := &market.SlurmNames{Features: job.Labels{{Name: "knl"}}, GPUTypes: job.Labels{{Name: "k80"}}}
	for _, c := range []struct {
		options          string
		table            *market.SlurmNames
		constraint, kind string
		says             string
	}{
		{"-C ib", all, "ib", "", ""},
		{"-C cascadelake", all, "skylake", "", ""},
		{"-C haswell", all, "", "", "--constraint: the feature haswell has no effect at this site"},
		{"-C haswell&ib", all, "ib", "", "--constraint: the feature haswell has no effect at this site"},
		{"-C haswell|ib", all, "ib", "", "--constraint: the feature haswell has no effect at this site"},
		{"-C [cascadelake|skylake]&ib", all, "skylake&ib", "", ""},
		{"-C haswell", some, "haswell", "", ""}, // the site refuses the feature
		{"-C knl&ib", some, "ib", "", "--constraint: the feature knl has no effect at this site"},
		{"-C haswell", nil, "haswell", "", ""},
		{"--gres=gpu:a100:2", all, "", "a100", ""},
		{"--gres=gpu:ampere:2", all, "", "a100", ""},
		{"--gres=gpu:p100:2", all, "", "", "the type p100 of GPUs has no effect at this site: the job gets GPUs of any type"},
		{"-G p100:4 -N 2", all, "", "", "the type p100 of GPUs has no effect at this site: the job gets GPUs of any type"},
		{"-n 2 --gpus-per-task=ampere:1", all, "", "a100", ""},
		{"--gres=gpu:p100:2", some, "", "p100", ""},
		{"--gres=gpu:k80", some, "", "", "the type k80 of GPUs has no effect at this site: the job gets GPUs of any type"},
	} {
		j := parse(t, "#!/bin/sh\n#SBATCH "+c.options+"\ntrue\n")
		if _, err := j.Translate("west", &market.MarketsReply{Slurm: c.table}, nil, nodes); err != nil {
			t.Fatalf("%s: %v", c.options, err)
		}
		s, said := &j.Spec.Stages[0], strings.Join(j.Warnings, "; ")
		if s.Constraint != c.constraint || s.GPUType != c.kind {
			t.Errorf("%s: constraint %q and GPUs of type %q, not %q and %q", c.options, s.Constraint, s.GPUType, c.constraint, c.kind)
		}
		if said != c.says {
			t.Errorf("%s: the user is told %q, not %q", c.options, said, c.says)
		}
		if c.kind != "" || s.GPUs == 0 {
			continue
		}
		if err := j.SpreadOver(1); err != nil || j.Spec.Stages[0].GPUType != s.GPUType {
			t.Errorf("%s: on one node the GPUs have type %q (%v)", c.options, j.Spec.Stages[0].GPUType, err)
		}
	}
}

// A job for another site keeps its names: that site has other nodes.
func TestHardwareOfAnotherSiteIsNotTranslated(t *testing.T) {
	table := &market.SlurmNames{Features: job.Labels{{Name: "*"}}, GPUTypes: job.Labels{{Name: "*"}}, Clusters: job.Labels{{Name: "east", Value: "east"}}}
	j := parse(t, "#!/bin/sh\n#SBATCH -M east -C icelake --gres=gpu:h100:1\ntrue\n")
	if _, err := j.Translate("west", &market.MarketsReply{Slurm: table}, nil, nil); err != nil {
		t.Fatal(err)
	}
	if s := &j.Spec.Stages[0]; s.Constraint != "icelake" || s.GPUType != "h100" || j.Site != "east" {
		t.Errorf("at site %q, constraint %q and GPUs of type %q", j.Site, s.Constraint, s.GPUType)
	}
}

// A constraint and a type of GPUs that the user writes for Candor, not for Slurm, keep their meaning.
func TestHardwareNamedForCandorIsNotTranslated(t *testing.T) {
	j := parse(t, "#!/bin/sh\n#CANDOR --constraint haswell --gpus 1:p100\ntrue\n")
	table := &market.SlurmNames{Features: job.Labels{{Name: "*"}}, GPUTypes: job.Labels{{Name: "*"}}}
	if _, err := j.Translate("west", &market.MarketsReply{Slurm: table}, nil, nil); err != nil {
		t.Fatal(err)
	}
	if s := &j.Spec.Stages[0]; s.Constraint != "haswell" || s.GPUType != "p100" {
		t.Errorf("constraint %q and GPUs of type %q", s.Constraint, s.GPUType)
	}
}
