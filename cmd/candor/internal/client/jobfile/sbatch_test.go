package jobfile

import (
	"cmp"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// optionsOfSbatch are the options in the manual of Slurm 25.05, two older names and the options of the plugin pyxis.
const optionsOfSbatch = `account acctg-freq array batch bb bbf begin chdir cluster cluster-constraint clusters comment consolidate-segments
constraint container container-id container-image container-mounts container-name container-workdir contiguous core-spec cores-per-socket cpu-bind cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot
dependency distribution error exclude exclusive export export-file extra extra-node-info get-user-env gid gpu-bind gpu-freq gpus
gpus-per-node gpus-per-socket gpus-per-task gres gres-flags help hint hold ignore-pbs input job-name kill-on-invalid-dep licenses
mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus network nice no-kill no-requeue nodefile nodelist nodes ntasks
ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket oom-kill-step open-mode output overcommit oversubscribe parsable
partition power prefer priority profile propagate qos quiet reboot requeue reservation resv-ports segment share signal sockets-per-node
spread-job stepmgr switches tasks-per-node test-only thread-spec threads-per-core time time-min tmp tres-bind tres-per-task uid usage use-min-nodes
verbose version wait wait-all-nodes wckey workdir wrap`

// Each option of sbatch must be translated, or be harmless, or be refused with an error that says why. Only the listed
// options may be ignored.
func TestNoOptionOfSbatchIsDropped(t *testing.T) {
	ignored := strings.Fields(`acctg-freq contiguous core-spec cores-per-socket cpu-bind cpu-freq delay-boot error extra extra-node-info get-user-env
gpu-bind gpu-freq gres-flags hint ignore-pbs mail-type mail-user mem-bind network nice no-kill ntasks-per-core ntasks-per-socket open-mode output overcommit
oversubscribe parsable power prefer priority profile propagate quiet requeue share sockets-per-node spread-job stepmgr switches thread-spec threads-per-core time-min
use-min-nodes verbose wait-all-nodes wckey`)
	values := map[string]string{"array": "0-1", "dependency": "afterok:7", "mem": "1G", "mem-per-cpu": "1G", "time": "5", "signal": "B:USR2@30", "begin": "now+1hour", "mail-type": "END",
		"distribution": "cyclic", "constraint": "a100", "nodelist": "node1", "exclude": "node1", "gres": "gpu", "cpus-per-gpu": "2", "cpus-per-task": "2", "mincpus": "2", "mem-per-gpu": "1G", "tmp": "1G",
		"licenses": "matlab:2", "ntasks": "2", "ntasks-per-node": "2", "tasks-per-node": "2", "nodes": "1-2", "gpus-per-task": "1", "ntasks-per-gpu": "1"}
	needs := map[string]string{"ntasks-per-gpu": " --gpus=1", "cpus-per-gpu": " --gpus=1", "mem-per-gpu": " --gpus=1"}
	shorts := map[byte]string{}
	for _, name := range strings.Fields(optionsOfSbatch) {
		r, known := sbatchOptions[name]
		if !known || r.text == "" {
			t.Errorf("--%s: nothing is said of it", name)
		}
		if r.short != 0 && shorts[r.short] != "" {
			t.Errorf("-%c is both %s and %s", r.short, name, shorts[r.short])
		}
		shorts[r.short] = name
		line := "#SBATCH --" + name
		if !r.alone {
			value := values[name]
			if value == "" {
				value = "X"
			}
			line += "=" + value
		}
		line += needs[name]
		job, err := ParseScript([]byte("#!/bin/sh\n"+line+"\ntrue\n"), nil, lookup)
		if (err != nil) != (r.manner == refused) || err != nil && !strings.Contains(err.Error(), r.text) {
			t.Errorf("%s: %v", line, err)
			continue
		}
		reported := err == nil && len(job.Warnings) > 0
		if want := slices.Contains(ignored, name); reported != want {
			t.Errorf("%s: ignored %v, want %v", line, reported, want)
		}
		if err == nil && !reported && len(job.Options.said) == 0 {
			t.Errorf("%s is dropped", line)
		}
	}
	for name := range sbatchOptions {
		if !slices.Contains(strings.Fields(optionsOfSbatch), name) {
			t.Errorf("--%s is no option of sbatch", name)
		}
	}
}

func TestSbatchDependencies(t *testing.T) {
	job := parse(t, "#!/bin/sh\n#SBATCH -d afterok:7:8,afterany:9,afterok:10 --kill-on-invalid-dep=yes\ntrue\n")
	if !reflect.DeepEqual(job.Spec.AfterOK, []messages.JobID{7, 8, 10}) || !reflect.DeepEqual(job.Spec.AfterJobs, []messages.JobID{9}) {
		t.Errorf("%+v", job.Spec)
	}
	if job := parse(t, "#!/bin/sh\n#SBATCH -HW -d AfterOK:7 --mail-user=a@example.org --mail-type=END,FAIL,\ntrue\n"); !reflect.DeepEqual(job.Spec.AfterOK, []messages.JobID{7}) || !job.Spec.Hold || !job.Options.Wait {
		t.Errorf("AfterOK, -HW: %+v", job.Spec)
	}
	if job := parse(t, "#!/bin/sh\n#SBATCH -d afterany:9,singleton\ntrue\n"); !job.Names.Singleton || !reflect.DeepEqual(job.Spec.AfterJobs, []messages.JobID{9}) {
		t.Errorf("singleton: %+v, %v", job.Names, job.Spec.AfterJobs)
	}
	if job := parse(t, "#!/bin/sh\n#SBATCH -d after:9:10,afternotok:8\ntrue\n"); !reflect.DeepEqual(job.Spec.AfterStart, []messages.JobID{9, 10}) || !reflect.DeepEqual(job.Spec.AfterFailed, []messages.JobID{8}) {
		t.Errorf("after and afternotok: %v, %v", job.Spec.AfterStart, job.Spec.AfterFailed)
	}
	if job := parse(t, "#!/bin/sh\n#SBATCH -d after:9+5:10+5\ntrue\n"); !reflect.DeepEqual(job.Spec.AfterStart, []messages.JobID{9, 10}) || job.Spec.StartDelay != messages.Duration(5*time.Minute) {
		t.Errorf("minutes after: %v, %v", job.Spec.AfterStart, job.Spec.StartDelay)
	}
	if job := parse(t, "#!/bin/sh\n#SBATCH -d afterok:7_3:8\ntrue\n"); !reflect.DeepEqual(job.Spec.AfterOK, []messages.JobID{7, 8}) || !strings.Contains(strings.Join(job.Warnings, " "), "7_3 is an element of array job 7") {
		t.Errorf("one element of an array: %v, %q", job.Spec.AfterOK, job.Warnings)
	}
	if job := parse(t, "#!/bin/sh\n#SBATCH -d afterok:7:8?afternotok:9\ntrue\n"); !job.Spec.AfterAny || !reflect.DeepEqual(job.Spec.AfterOK, []messages.JobID{7, 8}) || !reflect.DeepEqual(job.Spec.AfterFailed, []messages.JobID{9}) {
		t.Errorf("one of several: %+v", job.Spec)
	}
	if job := parse(t, "#!/bin/sh\n#SBATCH -a 1-3 -d aftercorr:7\ntrue\n"); job.Spec.AfterEach != 7 {
		t.Errorf("aftercorr: %v", job.Spec.AfterEach)
	}
	for text, want := range map[string]string{
		"-d after:7+5:8":                 "give the same number of minutes everywhere",
		"-d after:7:8+5":                 "give the same number of minutes everywhere",
		"-d after:7+x":                   `"x" is not a number of minutes`,
		"--dependency=aftercorr:7:8":     "of only one other array: wait for whole arrays with afterok",
		"-d aftercorr:7,aftercorr:8":     "of only one other array: wait for whole arrays with afterok",
		"-d afterok:7?afterok:8,after:9": "use commas or question marks, not both",
		"-d afterok:7?singleton":         `not with "singleton"`,
		"--dependency=before:7":          `not with "before"`,
		"--dependency=singleton:7":       `not with "singleton"`,
		"--dependency=afterok":           "the number of a job is missing: write it like afterok:7:8",
		"--dependency=afterok::8":        "the number of a job is missing",
		"-d afterok:8:,afterany:9":       "the number of a job is missing",
		"--depend=afterok:x":             `"x" is not the number of a job`,
		"--dependency":                   "--dependency needs a value",
		"-n x":                           "must be a whole number from 1",
		"--ntasks":                       "--ntasks needs a value",
		"--nonsense":                     "--nonsense is no option of sbatch that candor knows",
		"-J my job -c 3":                 `"job" is no option: a value with a space needs quotes, and a comment begins with #`,
		"-—mem=16G":                      "-—mem=16G is no option of sbatch that candor knows",
		"hetjob -n 2":                    "write hetjob alone in a line: it begins the next component of a heterogeneous job",
		"--container-image=x":            "start the container in the script",
		"--exclusive=user -b now+1hour":  "--exclusive=user is not possible here",
	} {
		_, err := ParseScript([]byte("#!/bin/sh\n#SBATCH "+text+"\ntrue\n"), nil, lookup)
		if err == nil || !strings.Contains(err.Error(), want) || messages.KindOf(err) != messages.Invalid {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestOlderFormsOfSbatch checks forms of older versions of Slurm, and an empty list of dependencies.
func TestOlderFormsOfSbatch(t *testing.T) {
	job := parse(t, "#!/bin/sh\n#SBATCH -d 7,9 --mem_bind=local --cpu_bind=cores\ntrue\n")
	if want := []messages.JobID{7, 9}; !reflect.DeepEqual(job.Spec.AfterJobs, want) {
		t.Errorf("waits for %v, want %v", job.Spec.AfterJobs, want)
	}
	parse(t, "#!/bin/sh\n#SBATCH --dependency=\ntrue\n")
}

func TestDirectivesOfOtherSystems(t *testing.T) {
	job := parse(t, "#!/bin/sh\n#$ -N x\n#SBATCH -J y\n#$HOME is no directive\ntrue\n")
	if want := []string{"line 2: #$ lines are for Grid Engine, and candor does not read them"}; !reflect.DeepEqual(job.Warnings, want) {
		t.Errorf("%q", job.Warnings)
	}
}

func TestSbatchMailIsNotify(t *testing.T) {
	job := parse(t, "#!/bin/sh\n#SBATCH --mail-user=ada@example.org\n#SBATCH --mail-type=FAIL,begin,FAIL\ntrue\n")
	want := []jobmsg.Notify{{To: "ada@example.org", On: []string{jobmsg.NotifyFailure, jobmsg.NotifyStart}}}
	if !reflect.DeepEqual(job.Spec.Notify, want) || !job.Options.Mail || len(job.Warnings) > 0 {
		t.Errorf("%+v, warnings %q", job.Spec.Notify, job.Warnings)
	}
	if job := parse(t, "#!/bin/sh\n#SBATCH --mail-user=ada@example.org --mail-type=NONE\ntrue\n"); job.Spec.Notify != nil || job.Options.Mail {
		t.Errorf("NONE asks for %+v", job.Spec.Notify)
	}
	if _, err := ParseScript([]byte("#!/bin/sh\n#SBATCH --mail-type=TIME_LIMIT_70\ntrue\n"), nil, lookup); err == nil || !strings.Contains(err.Error(), `--mail-type "TIME_LIMIT_70": no e-mail is sent about that`) {
		t.Errorf("%v", err)
	}
	job = parse(t, "#!/bin/sh\n#SBATCH --mail-user=ada@example.org --mail-type=end,error\ntrue\n")
	if !job.Options.Mail || !reflect.DeepEqual(job.Spec.Notify[0].On, []string{jobmsg.NotifyEnd}) || len(job.Warnings) != 1 || !strings.Contains(job.Warnings[0], "--mail-type=error") {
		t.Errorf("a known and an unknown event: %+v, %q", job.Spec.Notify, job.Warnings)
	}
}

// A heterogeneous job of Slurm has several components with different resources. Each component must become a stage of
// the job. All stages must start together.
func TestHetjob(t *testing.T) {
	const script = "#!/bin/sh\n#SBATCH -J x -t 10 -n 2 -c 3 --exclude=n9\n#SBATCH hetjob\n#SBATCH -N 2 --ntasks-per-node=4 --gres=gpu:a100:2\n#SBATCH packjob\n#SBATCH --mem=3G -t 5\ntrue\n"
	job := parse(t, script)
	top := NewOptions(nil)
	if words, err := top.SayWords([]string{"-n", "1", ":", "--constraint=ib", "job.sh"}); err != nil || !reflect.DeepEqual(words, []string{"job.sh"}) {
		t.Fatal(words, err)
	}
	if err := cmp.Or(job.Options.Overlay(top), job.Options.Apply(job), job.AddPrelude("ann")); err != nil {
		t.Fatal(err)
	}
	job.Assemble()
	if err := job.Spec.Validate(); err != nil && !strings.HasPrefix(messages.Detail(err), "budget") {
		t.Error(err)
	}
	type shape struct {
		tasks, cpus, gpus int
		memory            int64
		limit             messages.Duration
		constraint        string
	}
	want := []shape{{1, 3, 0, 0, 600e9, ""}, {2, 4, 2, 0, 600e9, "ib"}, {1, 0, 0, 3 << 30, 300e9, ""}}
	for i, s := range job.Spec.Stages {
		if got := (shape{s.Tasks, s.CPUs, s.GPUs, s.Memory, s.TimeLimit, s.Constraint}); i >= len(want) || got != want[i] || !s.Allocation || !s.Gang || !reflect.DeepEqual(s.Exclude, []messages.Name{"n9"}) {
			t.Errorf("component %d: %+v", i, s)
		}
	}
	if !job.Spec.Together || len(job.Spec.Stages) != len(want) {
		t.Errorf("%d stages, together: %v", len(job.Spec.Stages), job.Spec.Together)
	}
	cmd := exec.Command("sh", "-c", strings.Replace(job.Spec.Stages[0].Script, "\ntrue", "\necho $SLURM_HET_SIZE $SLURM_JOB_NODELIST $SLURM_JOB_NODELIST_HET_GROUP_0 $SLURM_JOB_NODELIST_HET_GROUP_1 $SLURM_JOB_NODELIST_HET_GROUP_2 $SLURM_NTASKS_HET_GROUP_1 $SLURM_GPUS_ON_NODE_HET_GROUP_1 $SLURM_JOB_CPUS_PER_NODE_HET_GROUP_1 $SLURM_MEM_PER_NODE_HET_GROUP_2", 1))
	cmd.Env = []string{"CANDOR_NODES=n1,n2,n3,n1", "CANDOR_NODE=n1", "CANDOR_JOB=7", "CANDOR_ATTEMPT=1", "PATH=" + os.Getenv("PATH")}
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "3 n1 n1 n2,n3 n1 8 2 4(x2) 3072\n" {
		t.Errorf("%v: %s", err, out)
	}
	for options, sentence := range map[string]string{
		"-a 0-3\n#SBATCH hetjob\n#SBATCH -n 1":                   "no arrays of heterogeneous jobs",
		"-n 1\n#SBATCH hetjob\n#SBATCH -d afterok:7":             "component 1: --dependency is an option of the whole job",
		"-n 1\n#SBATCH hetjob\n#SBATCH --mem=1G --mem-per-cpu=1": "cannot be used together",
	} {
		job, err := ParseScript([]byte("#!/bin/sh\n#SBATCH "+options+"\ntrue\n"), nil, nil)
		if err == nil {
			err = job.Options.Apply(job)
		}
		if err == nil || !strings.Contains(err.Error(), sentence) {
			t.Errorf("%s: %v, want %q", options, err, sentence)
		}
	}
}
