package jobfile

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// TestLinesOfOtherSystems compares scripts of PBS and Grid Engine with equivalent sbatch scripts.
func TestLinesOfOtherSystems(t *testing.T) {
	for lines, sbatch := range map[string]string{
		"#PBS -N sim -l nodes=1:ppn=8,walltime=24:00:00 -q batch -V -S /bin/bash": "-J sim -N 1 --ntasks-per-node=8 -t 24:00:00 -p batch",
		"#PBS -l nodes=2:ppn=4\n#PBS -l mem=16gb\n#PBS -l walltime=90":            "-N 2 --ntasks-per-node=4 --mem=8G -t 1:30",
		"#PBS -l nodes=1:ppn=4:gpus=2:ib -A proj -j oe -o logs/":                  "-N 1 --ntasks-per-node=4 --gpus-per-node=2 -C ib -A proj",
		"#PBS -l select=1:ncpus=8:mem=32gb:ngpus=1\n#PBS -P proj -r n":            "-N 1 -n 1 -c 8 --mem=32G --gpus-per-node=1 -A proj --no-requeue",
		"#PBS -l select=4:ncpus=16:mpiprocs=16:mem=64gb -l place=scatter:excl":    "-N 4 --ntasks-per-node=16 -c 1 --mem=64G --exclusive",
		"#PBS -l select=40:ncpus=2:mem=4gb":                                       "-n 40 -c 2 --mem-per-cpu=2G",
		"#PBS -l walltime=1:02:03:04":                                             "-t 1-02:03:04",
		"#PBS -l select=2 -l host=node1 -l walltime=24:0:0":                       "-N 2 --ntasks-per-node=1 -w node1 -t 24:0:0",
		"#PBS -l select=1:ncpus=2:bigmem=False:gpu_type=IVY":                      "-N 1 -c 2 -C ivy",
		"#PBS -l nodes=1:ppn=4:ib:bigmem:gpu_type=IVY":                            "-N 1 --ntasks-per-node=4 -C ib&bigmem&ivy",
		"#PBS -l nodes=cu01:ppn=4,mem=2gb":                                        "-N 1 --ntasks-per-node=4 --mem=2G -w cu01",
		"#PBS -l ncpus=4,mem=2000mb":                                              "-c 4 --mem=2000M",
		"#PBS -l procs=12,pmem=1gb -m abe -M a@example.org":                       "-n 12 --mem-per-cpu=1G --mail-type=FAIL,BEGIN,END --mail-user=a@example.org",
		"#PBS -t 1-10%2 -W depend=afterok:7.server:8.server -v A=1,B":             "-a 1-10%2 -d afterok:7:8 --export=ALL,A=1,B",
		"#PBS -W depend=afterok:7:6.srv,afterany:8.srv,block=true":                "-d afterok:7:6,afterany:8 -W",
		"#PBS -J 0-9:3 -h -W block=true":                                          "-a 0-9:3 -H -W",
		"#$ -N job\n#$ -cwd -V -S /bin/bash\n#$ -pe smp 4 -l h_vmem=4G,h_rt=3600": "-J job -c 4 --mem-per-cpu=4G -t 60:00",
		"#$ -pe mpi 16-32 -q all.q@node1 -l mem_free=2G,gpu=1 -j y -o out.txt":    "-n 16 -p all.q -w node1 --mem-per-cpu=2G --gpus-per-node=1",
		"#$ -t 1-100:5 -tc 3 -hold_jid 7,8 -m beas -M a@example.org -P lab":       "-a 1-100:5%3 -d afterany:7:8 --mail-type=BEGIN,END,FAIL --mail-user=a@example.org -A lab",
		"#$ -l h_rt=1:00:00,hostname=node1 -r y -wd /tmp":                         "-t 1:00:00 -w node1 -D /tmp",
		"#PBS -W depend=afterokarray:7[].srv":                                     "-d afterok:7",
		"#PBS -W depend=afterstartarray:7[].srv:8[]":                              "-d after:7:8",
		"#PBS -l place=scatter -l select=4:ncpus=8:mpiprocs=2":                    "-N 4 --ntasks-per-node=2 -c 4",
		"#PBS -l place=scatter:excl,select=2:ncpus=8":                             "-N 2 --ntasks-per-node=1 -c 8 --exclusive",
		"#PBS -lselect=1:ncpus=8:mem=96gb\n#PBS -lwalltime=1:00:00 -qbatch -joe":  "-N 1 -n 1 -c 8 --mem=96G -t 1:00:00 -p batch",
		"#PBS -l nodes=1:ppn=2:ib,feature=fast:big":                               "-N 1 --ntasks-per-node=2 -C ib&fast&big",
		"#PBS -l nodes=1:ppn=2,naccesspolicy=SINGLEJOB":                           "-N 1 --ntasks-per-node=2 --exclusive",
		"#PBS -l nodes=1:ppn=2:gpus=1:exclusive_process":                          "-N 1 --ntasks-per-node=2 --gpus-per-node=1",
		"#$ -q a.q@h1,b.q@h2":                                                     "-p a.q,b.q",
		"#PBS -l walltime=1:00,quark=3\n#PBS -l gres=ccm+matlab:2,ssd=20gb":       "-t 1:00 --gres=quark:3,ccm,matlab:2,ssd:20G",
		"#PBS -l mppwidth=48,mppnppn=24,mppdepth=2,scratch=1gb":                   "-n 48 --ntasks-per-node=24 -c 2 --tmp=1G",
		"#$ -l matlab=1,GPU=2,rl9=true -l highmem,qname=a.q":                      "--gpus-per-node=2 --gres=matlab:1,rl9:TRUE,highmem -p a.q",
		"#$ -cwd\necho\n#$ -pe smp 8\n#PBS -N no\n#$ x":                           "-c 8",
		"#PBS -N a\necho\n#PBS -l ncpus=8":                                        "-J a",
	} {
		got := parse(t, "#!/bin/sh\n"+lines+"\ntrue\n")
		want := parse(t, "#!/bin/sh\n#SBATCH "+sbatch+"\ntrue\n")
		for _, job := range []*Job{got, want} {
			job.Spec.Stages[0].Script = ""
		}
		if !reflect.DeepEqual(got.Spec, want.Spec) || !reflect.DeepEqual(got.Names, want.Names) || got.Ranks() != want.Ranks() || !got.Slurm {
			t.Errorf("%s:\n%+v\n%+v, want\n%+v\n%+v", lines, got.Spec, got.Names, want.Spec, want.Names)
		}
	}
}

func TestFilesOfOtherSystems(t *testing.T) {
	for lines, want := range map[string][2]string{
		"#PBS -N a":         {"%x.o%A", "%x.e%A"},
		"#PBS -j oe -t 1-2": {"%x.o%A-%a", ""},
		"#PBS -j eo":        {"%x.e%A", ""},
		"#PBS -o host:/tmp/logs/ -e err.$PBS_JOBID":   {"/tmp/logs/%x.o%A", "err.%j"},
		"#$ -o $HOME/logs -j y -cwd":                  {"/home/alice/logs", ""},
		"#$ -t 1-2 -cwd":                              {"%x.o%A.%a", "%x.e%A.%a"},
		"#$ -o out.$JOB_ID.$TASK_ID -t 1-2 -j y -cwd": {"out.%A.%a", ""},
	} {
		if got := parse(t, "#!/bin/sh\n"+lines+"\ntrue\n").Usual; got != want {
			t.Errorf("%s: %q, want %q", lines, got, want)
		}
	}
}

// The option for output names a directory. The output file must then be in this directory, with the name that it has by
// default.
func TestFilesInADirectory(t *testing.T) {
	for _, line := range []string{"#PBS -o logs -e logs -N a", "#$ -o logs -e logs -N a -cwd"} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "logs"), 0o700); err != nil {
			t.Fatal(err)
		}
		job := parse(t, "#!/bin/sh\n"+line+"\necho said; echo wrong >&2\n")
		job.Spec.Dir, job.Stdout, job.Stderr = dir, job.Usual[0], job.Usual[1]
		if err := job.AddPrelude("alice"); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", job.Spec.Stages[0].Script)
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "CANDOR_JOB=7", "CANDOR_JOB_NAME=a", "CANDOR_ATTEMPT=1", "CANDOR_NODE=n"}
		said, err := cmd.CombinedOutput()
		out, _ := os.ReadFile(filepath.Join(dir, "logs/a.o7"))
		errs, _ := os.ReadFile(filepath.Join(dir, "logs/a.e7"))
		if err != nil || string(out) != "said\n" || string(errs) != "wrong\n" {
			t.Errorf("%s: %v: %s; %q and %q", line, err, said, out, errs)
		}
	}
}

func TestOtherSystemsAreRefusedWhereTheyAskForMore(t *testing.T) {
	for lines, want := range map[string]string{
		"#PBS -l nodes=1:ppn=4+2:ppn=8": "all nodes of a job must have the same resources here",
		"#PBS -l select=n1":             "must be a whole number from 1",
		"#PBS -I":                       "-I is not possible here",
		"#PBS -N":                       "-N: is not an option, or its value is missing",
		"#PBS -l mem=lots":              `"lots" is not an amount of memory`,
		"#PBS -W stagein=x":             "-W stagein is not possible here",
		"#PBS -W depend=":               "-W depend=: names no job to wait for: write it like depend=afterok:7, or leave it out",
		"#PBS -W depend=afterok:":       "-W depend=afterok:: names no job to wait for",
		"#PBS -W depend=afterok:7,":     "-W depend=: names no job to wait for",
		"#PBS -W depend=afterok::8":     "-W depend=afterok::8: names no job to wait for",
		"#PBS -W depend=afterok:8:":     "-W depend=afterok:8:: names no job to wait for",
		"#$ -hold_jid ,8":               "-hold_jid ,8: names of jobs are not possible here",
		"#PBS -m x":                     "use letters of a, b, e and n",
		"#$ -pe smp many":               "must be a whole number from 1",
		"#$ -hold_jid other":            "names of jobs are not possible here",
		"#$ -soft":                      "-soft: is not an option, or its value is missing",
		"#BSUB -n 4":                    "#BSUB lines are for LSF, and candor does not read them",
		"#PBS -N a\n#$ -N b":            "lines are for",
	} {
		job, err := ParseScript([]byte("#!/bin/sh\n"+lines+"\ntrue\n"), nil, lookup)
		if err == nil {
			err = job.Options.Apply(job)
		}
		if err == nil || !strings.Contains(err.Error(), want) || messages.KindOf(err) != messages.Invalid {
			t.Errorf("%s: %v, want %q", lines, err, want)
		}
	}
}

// Scripts must find their directory, the job's number and the list of nodes.
func TestVariablesOfOtherSystems(t *testing.T) {
	for script, want := range map[string]string{
		"#PBS -l nodes=2:ppn=2\ncd $PBS_O_WORKDIR && echo $PWD ${PBS_JOBID%%.*} $PBS_NP $PBS_NUM_PPN $OMP_NUM_THREADS $(cat $PBS_NODEFILE)\n": "DIR 7 4 2 5 a a b b",
		"#PBS -t 3-4\necho $PBS_ARRAYID $PBS_ARRAY_INDEX $PBS_JOBID $(wc -l < $PBS_NODEFILE)\n":                                               "4 4 8 1",
		"#$ -pe smp 4\ncd $SGE_O_WORKDIR && echo $PWD $JOB_ID $NSLOTS $SGE_TASK_ID $NHOSTS $(cat $PE_HOSTFILE)\n":                             "DIR 7 4 undefined 1 a 4 m@a UNDEFINED",
		"#$ -pe mpi 2\n[ $TMP = $TMPDIR ] && echo $PE $SGE_O_HOME\n":                                                                          "mpi /home/alice",
		"#PBS -N a\necho $PBS_O_HOME\n": "/home/alice",
		"#$ -cwd\necho ${PE-none}\n":    "none",
		"#$ -t 2-8:2\necho $SGE_TASK_ID $SGE_TASK_FIRST $SGE_TASK_LAST $SGE_TASK_STEPSIZE\n": "4 2 8 2",
	} {
		dir := t.TempDir()
		job := parse(t, "#!/bin/sh\n"+script)
		job.Spec.Dir = dir
		if err := job.AddPrelude("alice"); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "script")
		if err := os.WriteFile(file, []byte(job.Spec.Stages[0].Script), 0o700); err != nil {
			t.Fatal(err)
		}
		nodes := "CANDOR_NODES=a"
		if strings.Contains(script, "nodes=2") {
			nodes = "CANDOR_NODES=a,b"
		}
		cmd := exec.CommandContext(t.Context(), file)
		cmd.Env = slices.Concat(os.Environ(), []string{"CANDOR_JOB=7", "CANDOR_TASK=1", "CANDOR_ATTEMPT=1", "CANDOR_NODE=a", "CANDOR_MARKET=m", "CANDOR_ARRAY_INDEX=4", "OMP_NUM_THREADS=5", nodes, "TMPDIR=" + dir})
		out, err := cmd.CombinedOutput()
		if got := strings.Join(strings.Fields(strings.ReplaceAll(string(out), dir, "DIR")), " "); err != nil || got != want {
			t.Errorf("%s: %v: %q, want %q", script, err, got, want)
		}
	}
}

// A script may write another script, for example for qsub. The directives in that other script must not count.
func TestDirectivesInHereDocuments(t *testing.T) {
	document := "cat >job.sh <<-'END'\n#!/bin/sh\n#$ -cwd\n\tEND\n"
	for script, gridEngine := range map[string]bool{
		"true\n" + document + "qsub job.sh\n":         false,
		"true\n" + document + "#$ -l h_rt=60\ntrue\n": true,
		"x=$((1<<n))\n#$ -cwd\ntrue\n":                true,
		"cat <<< word\n#$ -cwd\n":                     true,
		"true # <<END\n#$ -cwd\nEND\n":                true,
	} {
		if _, is, err := ForQsub([]byte(script), nil); err != nil || is != gridEngine {
			t.Errorf("%s: %v, for Grid Engine %v, want %v", script, err, is, gridEngine)
		}
	}
}

// Grid Engine also reads lines after the first command, with any blanks after the marker. The command line of qsub
// counts more than all of them.
func TestTheCommandLineOfQsubCountsMoreThanLateLines(t *testing.T) {
	for _, late := range []string{"#$ -N late", "#$  -N late", "#$\t-N late"} {
		script, _, err := ForQsub([]byte("#!/bin/sh\n#$ -N early\nhostname\n"+late+"\n"), []string{"-N", "typed"})
		if err != nil {
			t.Fatal(err)
		}
		if j := parse(t, string(script)); j.Spec.Name != "typed" {
			t.Errorf("%q: the job has the name %q", late, j.Spec.Name)
		}
		if _, is, err := ForQsub([]byte("#!/bin/sh\nhostname\n"+late+"\n"), nil); err != nil || !is {
			t.Errorf("%q: the script is not for Grid Engine (%v)", late, err)
		}
	}
}
