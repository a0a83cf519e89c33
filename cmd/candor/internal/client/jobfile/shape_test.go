package jobfile

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

const gib = 1 << 30

type shape struct {
	job.Resources
	exclusive     bool
	constraint    string
	nodes, except []messages.Name
}

func shapeOf(s *job.Stage) shape {
	return shape{job.Resources{CPUs: s.CPUs, Memory: s.Memory, GPUs: s.GPUs, GPUType: s.GPUType, Disk: s.Disk}, s.Exclusive, s.Constraint, s.Nodes, s.Exclude}
}

// sbatch options must give a task the resources that sbatch's manual says.
func TestShapesOfSbatch(t *testing.T) {
	for text, want := range map[string]shape{
		"-c 8 --mem-per-cpu=500M":                            {Resources: job.Resources{CPUs: 8, Memory: 4000 << 20}},
		"--mem-per-cpu=2G":                                   {Resources: job.Resources{Memory: 2 * gib}},
		"--mem=0 --exclusive":                                {Resources: job.Resources{Memory: job.AllMemory}, exclusive: true},
		"--gres=gpu:1 --cpus-per-task=4 --mem=16G":           {Resources: job.Resources{CPUs: 4, Memory: 16 * gib, GPUs: 1}},
		"--gres=gpu:a100:2 --nodes=1 --ntasks-per-node=1":    {Resources: job.Resources{GPUs: 2, GPUType: "a100"}},
		"--gres=gpu:v100":                                    {Resources: job.Resources{GPUs: 1, GPUType: "v100"}},
		"--gres=gpu":                                         {Resources: job.Resources{GPUs: 1}},
		"--gres=none":                                        {},
		"--gres=gpu:2 --gres=lscratch:10":                    {}, // the last option counts
		"--gpus=2 --gres=gpumem:20g":                         {Resources: job.Resources{GPUs: 2}},
		"-G a100:2 --gpus-per-node=2 --gpu-bind=closest":     {Resources: job.Resources{GPUs: 2, GPUType: "a100"}},
		"--gpus-per-task=2 --cpus-per-gpu=6 --mem-per-gpu=1": {Resources: job.Resources{CPUs: 12, Memory: 2 << 20, GPUs: 2}},
		"-n 1 -c 2 --mincpus=4 --mem-per-cpu=1G":             {Resources: job.Resources{CPUs: 4, Memory: 4 * gib}},
		"--tmp=10G --tasks-per-node=1":                       {Resources: job.Resources{Disk: 10 * gib}},
		"-n 4":                                               {Resources: job.Resources{CPUs: 4}},
		"-N 2 -n 3 -c 4 --mem=3G -G 4":                       {Resources: job.Resources{CPUs: 8, Memory: 3 * gib, GPUs: 2}},
		"-n 4 -c 2 --mem-per-cpu=1G -N 1":                    {Resources: job.Resources{CPUs: 8, Memory: 8 * gib}},
		"-N 1-4 --tasks-per-node=3 --mem=6G":                 {Resources: job.Resources{CPUs: 3, Memory: 6 * gib}},
		"--ntasks=2 --gpus-per-task=a100:2 --cpus-per-gpu=3": {Resources: job.Resources{CPUs: 12, GPUs: 4, GPUType: "a100"}},
		"-n 2 -c 3 --gpus-per-task=1 --gpus=2":               {Resources: job.Resources{CPUs: 6, GPUs: 2}},
		`-C "skylake|icelake"`:                               {constraint: "skylake|icelake"},
		`-C "[skylake|icelake]&ib"`:                          {constraint: "skylake&ib|icelake&ib"},
		`-C "skylake|icelake&ib"`:                            {constraint: "skylake&ib|icelake&ib"}, // from left to right
		`-N 2 -C "(rack1|rack2)"`:                            {Resources: job.Resources{CPUs: 1}, constraint: "rack1|rack2"},
		`-C "intel&(a|(b & c))|d"`:                           {constraint: "intel&a|intel&b&c|d"},
		`-C "[skylake|icelake]"`:                             {constraint: "skylake|icelake"},
		"-C ib,a100":                                         {constraint: "ib&a100"},
		"-C CPU_GEN:RME&CPU_MNF:AMD":                         {constraint: "CPU_GEN.RME&CPU_MNF.AMD"},
		"-N 2 -C skylake*2":                                  {Resources: job.Resources{CPUs: 1}, constraint: "skylake"},
		"-w GPU01.hpc.example.edu -x r[1-2]i[0,3]n7":         {nodes: []messages.Name{"gpu01"}, except: []messages.Name{"r1i0n7", "r1i3n7", "r2i0n7", "r2i3n7"}},
		"-w node3 -x node[1-2,08-10],rack1":                  {nodes: []messages.Name{"node3"}, except: []messages.Name{"node08", "node09", "node1", "node10", "node2", "rack1"}},
		"--threads-per-core=2 --hint=nomultithread --nice":   {},
		"--gpus-per-node=h100:4 --gpus-per-node=l40s:2":      {Resources: job.Resources{GPUs: 2, GPUType: "l40s"}},
		"--mem-per-cpu=0 -c 2":                               {Resources: job.Resources{CPUs: 2, Memory: job.AllMemory}},
		"-N 2 --gpus-per-node=a100:4 -G 8":                   {Resources: job.Resources{CPUs: 1, GPUs: 4, GPUType: "a100"}},
		"-G a100:8 --gres=gpu:4 -N 2 -c 3":                   {Resources: job.Resources{CPUs: 3, GPUs: 4, GPUType: "a100"}},
		"--ntasks-per-gpu=2 --gres=gpu:2 -c 3":               {Resources: job.Resources{CPUs: 12, GPUs: 2}},
		"-n 4 --ntasks-per-gpu=2 -B 2:8:1 -S 0":              {Resources: job.Resources{CPUs: 4, GPUs: 2}},
		"-w node[1-2]":                                       {Resources: job.Resources{CPUs: 1}, nodes: []messages.Name{"node1", "node2"}},
		"-w node1,node2 -n 4":                                {Resources: job.Resources{CPUs: 2}, nodes: []messages.Name{"node1", "node2"}},
		"-m block:cyclic --get-user-env -q long":             {},
	} {
		job := parse(t, "#!/bin/sh\n#SBATCH "+text+"\ntrue\n")
		if got := shapeOf(&job.Spec.Stages[0]); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"--mem=1G --mem-per-cpu=1G":          "cannot be used together",
		"-c 4 --cpus-per-gpu=2 -G 1":         "cannot be used together",
		"--cpus-per-gpu=2":                   "need GPUs",
		"--gres=gpu:a100:1,gpu:v100:1":       "of one type",
		"--gpus=a100:1,v100:1":               "of one type",
		"--gres=gpus:1":                      "write GPUs like gpu:2",
		"--gres=GPU:1":                       "write GPUs like gpu:2",
		"--gres=gpu=2":                       "write GPUs like gpu:2",
		`-N 2 -C "[rack1|rack2]"`:            "all 2 nodes have the same label of the list",
		`-C "gpu a100"`:                      "write labels of nodes",
		`-C "a&&b"`:                          "write labels of nodes",
		"--gpus=2 --gres=gpu:1":              "asks for another number or type of GPUs",
		"--gpus-per-node=2 --gres=gpu:1":     "--gpus-per-node asks for another number or type of GPUs",
		"--gpus=x:y":                         "write the number of GPUs",
		"-n 4 --ntasks-per-gpu=2 -G 4":       "4 GPUs have 8 tasks, but --ntasks asks for 4",
		"--ntasks-per-gpu=2":                 "give the number of GPUs",
		"-w node1,node2 -N 1":                "the list has 2 nodes, but the job runs on 1",
		"-w node1,node2 -n 1":                "the list has 2 nodes, but the job runs on 1",
		"-w node[1-":                         "write names of nodes",
		"-x node[1-9999999]":                 "write names of nodes",
		"-C 'a*2'":                           "asks for a label on only some of the 1 nodes",
		"-N 4 -C 'a*2'":                      "asks for a label on only some of the 4 nodes",
		"-N 2 -C 'a*0'":                      "asks for a label on only some of the 2 nodes",
		"-N 6 -C '[a*2&b*4]'":                "write labels",
		"-w r[1-99]n[1-99]":                  "write names of nodes",
		"-C '(a'":                            "write labels",
		"-C 'a)'":                            "write labels",
		"-C 'a(b)'":                          "write labels",
		"-C 'a|(b&)'":                        "write labels",
		"-N 2 -a 0-1000":                     "has 1001 elements, and each would be a job on several nodes",
		"-N 2 -G 3":                          "cannot be divided evenly among 2 nodes",
		"-n 60000 -c 2":                      "60000 tasks of 2 processors are more than any node has",
		"-n 4 -G 2 --gpus-per-task=1":        "4 tasks on a node need 4 GPUs, but another option asks for 2",
		"-c 0":                               "whole number from 1",
		"-c 65536 --mem-per-cpu=4000000000G": "more than any node has",
	} {
		_, err := ParseScript([]byte("#!/bin/sh\n#SBATCH "+text+"\ntrue\n"), nil, lookup)
		if err == nil {
			job := &Job{Spec: job.JobSpec{Stages: make([]job.Stage, 1)}}
			o := NewOptions(nil)
			if err = o.readSbatch([]directive{{1, " " + text}}, new([]string)); err == nil {
				err = o.Apply(job)
			}
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// The command line wins over the script, even if they use different options for the same resource.
func TestTheCommandLineShapes(t *testing.T) {
	script := "#!/bin/sh\n#SBATCH -c 2 --mem-per-cpu=1G --gres=gpu:a100:1\ntrue\n"
	for line, want := range map[string]shape{
		"-c 4":                          {Resources: job.Resources{CPUs: 4, Memory: 4 * gib, GPUs: 1, GPUType: "a100"}},
		"--mem=3G --gres=none":          {Resources: job.Resources{CPUs: 2, Memory: 3 * gib}},
		"--gpus=2 --cpus-per-gpu=3":     {Resources: job.Resources{CPUs: 6, Memory: 6 * gib, GPUs: 2}},
		"--mem-per-gpu 2G --exclude n1": {Resources: job.Resources{CPUs: 2, Memory: 2 * gib, GPUs: 1, GPUType: "a100"}, except: []messages.Name{"n1"}},
	} {
		job, err := ParseScript([]byte(script), nil, lookup)
		if err != nil {
			t.Fatal(err)
		}
		top := NewOptions(lookup)
		if _, err := top.SayWords(strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
		if err := job.Options.Overlay(top); err != nil {
			t.Fatal(err)
		}
		if err := job.Options.Apply(job); err != nil {
			t.Fatal(err)
		}
		if got := shapeOf(&job.Spec.Stages[0]); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
}

// As with sbatch, the option --gres on the command line replaces the script's option --gres. It does not replace the
// script's other options about GPUs.
func TestOtherResourcesLeaveGPUs(t *testing.T) {
	for script, gpus := range map[string]int{"--gpus-per-node=2": 2, "--gpus=2": 2, "--gres=gpu:2": 0} {
		j := parse(t, "#!/bin/sh\n#SBATCH "+script+"\ntrue\n")
		top := NewOptions(lookup)
		if _, err := top.SayWords([]string{"--gres=lscratch:10"}); err != nil {
			t.Fatal(err)
		}
		if err := cmp.Or(j.Options.Overlay(top), j.Options.Apply(j)); err != nil {
			t.Fatal(err)
		}
		if s := j.Spec.Stages[0]; s.GPUs != gpus || j.Names.GRES != "lscratch:10" {
			t.Errorf("%s: %d GPUs, and other resources %q", script, s.GPUs, j.Names.GRES)
		}
	}
}

func TestListedNodesAreTheNodesOfTheJob(t *testing.T) {
	for text, want := range map[string]int{"-w node1,node2": 2, "-w node1,node2 -N 2 -n 8": 2, "-w node1": 0, "--nodelist=node1 -n 2": 0} {
		if s := parse(t, "#!/bin/sh\n#SBATCH "+text+"\n").Spec.Stages[0]; s.Tasks != want || s.Allocation != (want > 0) {
			t.Errorf("%s: %d tasks, allocation %v", text, s.Tasks, s.Allocation)
		}
	}
	if s := parse(t, "#!/bin/sh\n#SBATCH-n3\n#CANDOR --nodelist=node1,node2\n").Spec.Stages[0]; s.Tasks != 0 || s.CPUs != 3 {
		t.Errorf("one of two nodes, 3 ranks: %+v", s)
	}
}

// In a document, the fields for the resources of a stage have the same names as the options of the command line.
func TestShapesInDocuments(t *testing.T) {
	for text, want := range map[string]shape{
		"cpus: 4\nmemory: 16G\ngpus: 1":           {Resources: job.Resources{CPUs: 4, Memory: 16 * gib, GPUs: 1}},
		"gpus: 2:a100\nmemory: all\ndisk: 1G":     {Resources: job.Resources{Memory: job.AllMemory, GPUs: 2, GPUType: "a100", Disk: gib}},
		"gpus: 2\ngpu_type: v100":                 {Resources: job.Resources{GPUs: 2, GPUType: "v100"}},
		"exclusive: true\nconstraint: ib|a100":    {exclusive: true, constraint: "ib|a100"},
		"nodes: [node1, node2]\nexclude: [node3]": {nodes: []messages.Name{"node1", "node2"}, except: []messages.Name{"node3"}},
	} {
		job, err := ParseDocument([]byte("command: [true]\n" + text + "\n"))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := shapeOf(&job.Spec.Stages[0]); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
	for _, text := range []string{"cpus: -1", "gpus: x:y:z", "memory: much", "gpus: [1]", "disk: -1"} {
		if _, err := ParseDocument([]byte("command: [true]\n" + text + "\n")); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

func TestLicences(t *testing.T) {
	want := job.Licenses{{Name: "ansys", Count: 1}, {Name: "matlab", Count: 2}}
	for text, want := range map[string]job.Licenses{"licenses: {matlab: 2, ansys: 1}": want, "licenses: matlab:2,ansys": want, "licenses: {}": nil} {
		job, err := ParseDocument([]byte("command: [true]\n" + text + "\n"))
		if err != nil || !slices.Equal(job.Spec.Stages[0].Licenses, want) {
			t.Errorf("%s: %v, %v, want %v", text, job.Spec.Stages[0].Licenses, err, want)
		}
	}
	for text, want := range map[string]job.Licenses{"#SBATCH -L matlab=2,ansys": want, "#SBATCH --licenses=ansys:1,matlab:2": want, "#CANDOR --licenses matlab:2,ansys": want, "#SBATCH --licenses=": nil} {
		job, err := ParseScript([]byte("#!/bin/sh\n"+text+"\ntrue\n"), nil, lookup)
		if err == nil {
			err = job.Options.Apply(job)
		}
		if err != nil || !slices.Equal(job.Spec.Stages[0].Licenses, want) {
			t.Errorf("%s: %v, %v, want %v", text, job.Spec.Stages[0].Licenses, err, want)
		}
	}
	for _, text := range []string{"matlab:x", "matlab:-1", "a@server:2", "a|b", "a;b", "matlab:1,matlab:2", ",", "matlab:9999999"} {
		if _, err := ParseScript([]byte("#!/bin/sh\n#SBATCH -L "+text+"\ntrue\n"), nil, lookup); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// The variables of a script give the resources that the script asked for. As under Slurm, the set of variables depends
// on the options.
func TestSlurmVariablesOfShapes(t *testing.T) {
	variables := func(text string) []string {
		job := parse(t, "#!/bin/sh\n#SBATCH "+text+"\ntrue\n")
		return strings.Fields(job.slurmVariables("ada"))
	}
	asked := variables("-c 8 --mem-per-cpu=500M --gpus-per-node=a100:2 -q long")
	for _, want := range []string{"SLURM_CPUS_PER_TASK=8", "SLURM_MEM_PER_CPU=500", "SLURM_GPUS_PER_NODE='a100:2'", "SLURM_GPUS_ON_NODE=2",
		`SLURM_JOB_GPUS="$CANDOR_GPUS"`, `SLURM_CPUS_ON_NODE="${CANDOR_CPUS:-1}"`, "SLURM_JOB_QOS='long'", `SLURM_JOB_PARTITION="$CANDOR_MARKET"`, `SLURM_JOB_ACCOUNT="$CANDOR_PAYER"`} {
		if !slices.Contains(asked, want) {
			t.Errorf("%s is missing in %q", want, asked)
		}
	}
	for _, v := range variables("--mem=4G") {
		for _, name := range []string{"SLURM_CPUS_PER_TASK", "SLURM_MEM_PER_CPU", "SLURM_GPUS", "SLURM_JOB_GPUS"} {
			if strings.HasPrefix(v, name) {
				t.Errorf("%s is set, and nobody asked", v)
			}
		}
	}
	if !slices.Contains(variables("--mem=4G"), "SLURM_MEM_PER_NODE=4096") || !strings.Contains(strings.Join(variables("--mem=0"), " "), "CANDOR_MEMORY") {
		t.Error("SLURM_MEM_PER_NODE is not what was asked for")
	}
}

// As under Slurm, an option on the command line replaces the script's option of the same name. An empty value on the
// command line only removes the script's option.
func TestTheCommandLineTakesOptionsBack(t *testing.T) {
	script := "#!/bin/sh\n#SBATCH -d afterok:7?after:8+5 -C ib -x n1 -w n2 -A physics -q long -J a --comment=b -D /tmp -L matlab --gres=gpu:2 --mail-user=a@example.org --mail-type=END\ntrue\n"
	for line, want := range map[string]func(*Job) bool{
		"--dependency=": func(j *Job) bool {
			return len(j.Spec.Predecessors()) == 0 && !j.Spec.AfterAny && j.Spec.StartDelay == 0
		},
		"--dependency=afterany:9": func(j *Job) bool {
			return reflect.DeepEqual(j.Spec.Predecessors(), []messages.JobID{9}) && !j.Spec.AfterAny
		},
		"--constraint=":          func(j *Job) bool { return j.Spec.Stages[0].Constraint == "" },
		"--exclude=":             func(j *Job) bool { return j.Spec.Stages[0].Exclude == nil },
		"--nodelist=":            func(j *Job) bool { return j.Spec.Stages[0].Nodes == nil },
		"--account= --qos=":      func(j *Job) bool { return j.Names.Account+j.Names.QOS+j.Spec.Project == "" },
		"--job-name= --comment=": func(j *Job) bool { return j.Spec.Name+j.Spec.Comment == "" },
		"--chdir= --licenses=":   func(j *Job) bool { return j.Spec.Dir == "" && j.Spec.Stages[0].Licenses == nil },
		"--gres=":                func(j *Job) bool { return j.Spec.Stages[0].GPUs == 0 },
		"--dependency= -C ib2":   func(j *Job) bool { return len(j.Spec.Predecessors()) == 0 && j.Spec.Stages[0].Constraint == "ib2" },
		"-t 5":                   func(j *Job) bool { return len(j.Spec.Predecessors()) == 2 && j.Spec.Stages[0].Constraint == "ib" },
	} {
		job, err := ParseScript([]byte(script), nil, lookup)
		if err != nil {
			t.Fatal(err)
		}
		top := NewOptions(lookup)
		if _, err := top.SayWords(strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
		if err := cmp.Or(job.Options.Overlay(top), job.Options.Apply(job)); err != nil {
			t.Fatal(err)
		}
		if !want(job) {
			t.Errorf("%s: %+v, %+v", line, job.Spec, job.Names)
		}
	}
}

// A name with a slash is the name of a file, which has a list of nodes.
func TestNodesInAFile(t *testing.T) {
	files := map[string]string{"./good": "n1\nn[3-4] # two nodes\n", "/etc/bad": "n2,n7", "./empty": "# no nodes\n\n"}
	read := func(path string) ([]byte, error) {
		text, is := files[path]
		if !is {
			return nil, errors.New("no such file")
		}
		return []byte(text), nil
	}
	for text, want := range map[string]shape{
		"-w ./good -x /etc/bad": {Resources: job.Resources{CPUs: 1}, nodes: []messages.Name{"n1", "n3", "n4"}, except: []messages.Name{"n2", "n7"}},
		"--nodefile=good":       {Resources: job.Resources{CPUs: 1}, nodes: []messages.Name{"n1", "n3", "n4"}},
	} {
		j, err := ParseScript([]byte("#!/bin/sh\n#SBATCH "+text+"\ntrue\n"), nil, lookup)
		if err == nil {
			err = cmp.Or(j.Options.ReadNodes(read), j.Options.Apply(j))
		}
		if err != nil {
			t.Fatal(text, err)
		}
		if got := shapeOf(&j.Spec.Stages[0]); !reflect.DeepEqual(got, want) || j.Spec.Stages[0].Tasks != 3 {
			t.Errorf("%s: %+v, %d tasks, want %+v", text, got, j.Spec.Stages[0].Tasks, want)
		}
	}
	j := parse(t, "#!/bin/sh\n#SBATCH -t 5\ntrue\n")
	top := NewOptions(lookup)
	if _, err := top.SayWords([]string{"-x", "/etc/none"}); err != nil {
		t.Fatal(err)
	}
	err := cmp.Or(j.Options.Overlay(top), j.Options.ReadNodes(read))
	if err == nil || !strings.Contains(err.Error(), "--exclude: the file of nodes cannot be read: no such file") {
		t.Errorf("a file that does not exist: %v", err)
	}
	for text, want := range map[string]string{"-w ./empty": "--nodelist: the file ./empty names no node", "--nodefile=empty": "--nodelist: the file ./empty names no node", "-x ./empty": "<nil>"} {
		j, err := ParseScript([]byte("#!/bin/sh\n#SBATCH "+text+"\ntrue\n"), nil, lookup)
		if err == nil {
			err = cmp.Or(j.Options.ReadNodes(read), j.Options.Apply(j))
		}
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// The command line replaces an option of the script. Then the file that the script names is not read.
func TestReplacedFilesOfNodesAreNotRead(t *testing.T) {
	for line, want := range map[string][]messages.Name{"--exclude=n1": {"n1"}, "--exclude=": nil, "--nodelist=n1": {"n1"}} {
		option, _, _ := strings.Cut(line, "=")
		j, err := ParseScript([]byte("#!/bin/sh\n#SBATCH "+option+"=/old/list\ntrue\n"), nil, lookup)
		if err != nil {
			t.Fatal(err)
		}
		top := NewOptions(lookup)
		if _, err := top.SayWords([]string{line}); err != nil {
			t.Fatal(err)
		}
		read := func(path string) ([]byte, error) { return nil, errors.New("no such file") }
		err = cmp.Or(j.Options.Overlay(top), j.Options.ReadNodes(read), j.Options.Apply(j))
		if s := j.Spec.Stages[0]; err != nil || !slices.Equal(append(s.Exclude, s.Nodes...), want) {
			t.Errorf("%s: %v, %v, %v", line, s.Exclude, s.Nodes, err)
		}
	}
}
