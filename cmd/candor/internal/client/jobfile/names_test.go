package jobfile

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

var campus = &market.MarketsReply{
	Markets: []market.MarketStatus{{Market: market.Market{Name: "cpu"}}, {Market: market.Market{Name: "gpu"}}, {Market: market.Market{Name: "7"}}},
	Slurm: &market.SlurmNames{
		Partitions: job.Labels{{Name: "*"}, {Name: "long", Value: "cpu"}, {Name: "short", Value: "cpu"}},
		Accounts:   job.Labels{{Name: "*"}, {Name: "Proj1", Value: "Physics"}},
		QOS:        job.Labels{{Name: "big", Value: "gpu"}, {Name: "debug", Value: "30m"}, {Name: "normal"}, {Name: "seven", Value: "7"}},
		Clusters:   job.Labels{{Name: "c1"}, {Name: "far", Value: "east"}},
	},
}

// A site's table says which resource each name in --gres means. TestGenericResourcesOfASite checks names other than
// gpu.
func TestGenericResourcesOfASite(t *testing.T) {
	reply := &market.MarketsReply{Slurm: &market.SlurmNames{GRES: job.Labels{{Name: "odd"}, {Name: "shard", Value: "gpu"}, {Name: "tmp", Value: "disk"}}}}
	for line, want := range map[string]struct {
		gpus int
		disk int64
		says string
	}{
		"gpu:2,tmp:50G,shard:1": {gpus: 2, disk: 50 << 30},
		"shard:2":               {gpus: 1},
		"gres/tmp:ssd:10":       {disk: 10 << 30},
		"tmp:50G,tmp":           {disk: 51 << 30},
		"gpu,odd":               {gpus: 1, says: "--gres odd has no effect at this site"},
		"other:1":               {says: "does not say what resource other is"},
		"tmp:x":                 {says: "must be a size"},
	} {
		job := parse(t, "#!/bin/sh\n#SBATCH --gres="+line+"\ntrue\n")
		_, err := job.Translate("west", reply, nil, nil)
		said := strings.Join(job.Warnings, "; ")
		if err != nil {
			said = err.Error()
		}
		if s := &job.Spec.Stages[0]; s.GPUs != want.gpus || s.Disk != want.disk || !strings.Contains(said, want.says) || (want.says == "") != (said == "") {
			t.Errorf("%s: %d GPUs, %d bytes of disk, %s", line, s.GPUs, s.Disk, said)
		}
	}
}

func TestASharedGPUIsKeptWhenRanksSpread(t *testing.T) {
	j := parse(t, "#!/bin/sh\n#SBATCH -n 200 --gres=shard:1\ntrue\n")
	reply := &market.MarketsReply{Slurm: &market.SlurmNames{GRES: job.Labels{{Name: "shard", Value: "gpu"}}}}
	if _, err := j.Translate("west", reply, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := j.SpreadOver(4); err != nil || j.Spec.Stages[0].GPUs != 1 {
		t.Errorf("%d GPUs, %v", j.Spec.Stages[0].GPUs, err)
	}
}

func TestGenericResourcesOfAComponent(t *testing.T) {
	reply := &market.MarketsReply{Slurm: &market.SlurmNames{GRES: job.Labels{{Name: "odd"}, {Name: "tmp", Value: "disk"}}}}
	j := parse(t, "#!/bin/sh\n#SBATCH -n 1\n#SBATCH hetjob\n#SBATCH --gres=tmp:50G,odd:1\ntrue\n")
	if _, err := j.Translate("west", reply, nil, nil); err != nil {
		t.Fatal(err)
	}
	if disk := j.components[0].Spec.Stages[0].Disk; disk != 50<<30 || strings.Join(j.Warnings, "; ") != "--gres odd:1 has no effect at this site" {
		t.Errorf("%d bytes of disk, %v", disk, j.Warnings)
	}
	j = parse(t, "#!/bin/sh\n#SBATCH -n 1\n#SBATCH hetjob\n#SBATCH --gres=other:1\ntrue\n")
	if _, err := j.Translate("west", reply, nil, nil); err == nil || !strings.Contains(err.Error(), "component 1: --gres") {
		t.Errorf("an unknown resource of a component: %v", err)
	}
}

// The site's table gives Slurm names a meaning. If a line of the table has the name, the name means what this line
// says. Otherwise, if a market, a project or a site has this name, the name means this market, project or site.
// Otherwise the line for all other names says the meaning.
func TestNamesOfSlurmAreTranslated(t *testing.T) {
	for _, c := range []struct {
		line    string
		markets []Market
		project string
		site    string
		says    string // text of a warning or an error
		limit   messages.Duration
	}{
		{line: "-p short,long,gpu", markets: []Market{{"short", "cpu"}, {"gpu", "gpu"}}},
		{line: "-p CPUQ -A Proj1 --qos=normal -M c1", markets: []Market{{"CPUQ", ""}}, project: "Physics"},
		{line: "-A climate --cluster=far", project: "climate", site: "east"},
		{line: "-A other --cluster far,west", says: "account other is not one of your projects here"},
		{line: "--qos=big", markets: []Market{{"", "gpu"}}},
		{line: "--qos=big -p any,cpu", markets: []Market{{"any", "gpu"}}},
		{line: "--qos=debug -p cpu", markets: []Market{{"cpu", "cpu"}}, limit: messages.Duration(1800e9)},
		{line: "--qos=seven", markets: []Market{{"", "7"}}},
		{line: "--qos=odd", says: "--qos odd has no effect at this site"},
		{line: "-A= --qos= --reservation="},
	} {
		job := parse(t, "#!/bin/sh\n#SBATCH "+c.line+"\ntrue\n")
		if err := job.Options.Apply(job); err != nil {
			t.Fatal(err)
		}
		markets, err := job.Translate("west", campus, func() ([]messages.Name, error) { return []messages.Name{"alice", "climate"}, nil }, nil)
		said := strings.Join(job.Warnings, "; ")
		if err != nil || !reflect.DeepEqual(markets, c.markets) || job.Spec.Project != c.project || job.Site != c.site || !strings.Contains(said, c.says) || (c.says == "") != (said == "") || job.Spec.Stages[0].TimeLimit != c.limit {
			t.Errorf("%s: markets %v, project %q, site %q, limit %v, warnings %q, %v", c.line, markets, job.Spec.Project, job.Site, job.Spec.Stages[0].TimeLimit, said, err)
		}
	}
}

func TestUnknownNamesOfSlurmAreRefused(t *testing.T) {
	bare := &market.MarketsReply{Markets: campus.Markets}
	for line, want := range map[string]string{
		"-p cpu,x":               `there is no market "x"; the site has cpu, gpu, 7, and its configuration does not say which market partition x is`,
		"-p ''":                  "", // an empty name means the default
		"-A other":               `--account "other": you cannot charge this account; you can charge alice, climate`,
		"-M c1":                  "this is site west, and its configuration does not say which site cluster c1 is",
		"--reservation=r":        `--reservation "r": the site's configuration does not have this reservation`,
		"--qos=big -p cpu":       "--qos big means market gpu here, but --partition cpu means market cpu",
		"--qos=debug -t 1:00:00": "is above the limit of 30m0s that --qos debug has here",
	} {
		job, err := ParseScript([]byte("#!/bin/sh\n#SBATCH "+line+"\ntrue\n"), nil, lookup)
		if err == nil {
			err = job.Options.Apply(job)
		}
		site := bare
		if strings.Contains(line, "qos") {
			site = campus
		}
		if err == nil {
			_, err = job.Translate("west", site, func() ([]messages.Name, error) { return []messages.Name{"alice", "climate"}, nil }, nil)
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(messages.Detail(err), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	job := parse(t, "#!/bin/sh\n#SBATCH -A x\ntrue\n")
	if err := job.Options.Apply(job); err != nil {
		t.Fatal(err)
	}
	silent := errors.New("the bank is silent")
	if _, err := job.Translate("west", campus, func() ([]messages.Name, error) { return nil, silent }, nil); !errors.Is(err, silent) {
		t.Error(err)
	}
}

func TestOwnNamesWin(t *testing.T) {
	job := parse(t, "#!/bin/sh\n#SBATCH -p batch -A grp -M c1\n#CANDOR --market gpu --project climate --site east\ntrue\n")
	if err := job.Options.Apply(job); err != nil || job.Names != (Names{}) || job.Spec.Market != "gpu" || job.Spec.Project != "climate" || job.Site != "east" {
		t.Errorf("%+v, %+v, %v", job.Names, job.Spec, err)
	}
}
