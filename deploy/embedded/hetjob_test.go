package embedded

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages/await"
)

// TestAHeterogeneousJob runs a script with two components of different shapes. The script must run once, and srun must
// start ranks on the component that it names.
func TestAHeterogeneousJob(t *testing.T) {
	t.Parallel()
	s := newSlurmSite(t)
	out, code := s.script(`-n 1 -c 3 --mem=1G
#SBATCH hetjob
#SBATCH -N 2 -n 4 -c 1 --mem=2G`, `echo x >> once
echo "$SLURM_HET_SIZE $SLURM_NTASKS $SLURM_NTASKS_HET_GROUP_0 $SLURM_NTASKS_HET_GROUP_1 $SLURM_CPUS_PER_TASK_HET_GROUP_0 $SLURM_CPUS_PER_TASK_HET_GROUP_1 $SLURM_JOB_NUM_NODES_HET_GROUP_1 $SLURM_TASKS_PER_NODE_HET_GROUP_1 $SLURM_JOB_CPUS_PER_NODE $SLURM_JOB_CPUS_PER_NODE_HET_GROUP_1 $SLURM_MEM_PER_NODE_HET_GROUP_1"
[ "$SLURM_JOB_ID_HET_GROUP_0" = "$SLURM_JOB_ID" ] && [ "$SLURM_JOB_NODELIST_HET_GROUP_0" = "$SLURM_JOB_NODELIST" ] && [ "$SLURM_JOB_NODELIST" = "$CANDOR_NODE" ] && echo first
scontrol show hostnames $SLURM_JOB_NODELIST_HET_GROUP_1 | sort -u | wc -l
who='echo "$SLURM_PROCID $SLURM_NTASKS $SLURM_LOCALID $SLURM_NODEID $CANDOR_CPUS $([ $CANDOR_NODE = $SLURMD_NODENAME ] && echo here)"'
on='case ,$SLURM_JOB_NODELIST_HET_GROUP_1, in *,$CANDOR_NODE,*) echo other;; *) echo alone;; esac'
echo zero; srun sh -c "$who"
echo one; srun --het-group=1 sh -c "$who" | sort
srun --het-group=1 sh -c "$on"
echo both; srun -l --het-group=0,1 sh -c "$who" | sort
echo two; srun -n 1 echo a : -n 2 echo b | sort
srun --het-group=1 -n 5 true; echo $?
srun --het-group=2 true; echo $?
srun --het-group=1 sh -c 'exit $((SLURM_PROCID == 2 ? 4 : 0))'`)
	want := `2 1 1 4 3 1 2 2(x2) 3 2(x2) 2048
first
2
zero
0 1 0 0 3 here
one
0 4 0 0 2 here
1 4 1 0 2 here
2 4 0 1 2 here
3 4 1 1 2 here
other
other
other
other
both
0: 0 5 0 0 3 here
1: 1 5 0 1 2 here
2: 2 5 1 1 2 here
3: 3 5 0 2 2 here
4: 4 5 1 2 2 here
two
a
b
b
`
	if code != 4 || !strings.HasPrefix(out, want) || s.read("once") != "x\n" {
		t.Errorf("exit code %d, it ran %q: %s, want %s", code, s.read("once"), out, want)
	}
	for _, part := range []string{"More processors requested than permitted\n1\n", `Invalid --het-group "2": the job has 2 components, from 0 on` + "\n1\n", "task 2: Exited with exit code 4"} {
		if !strings.Contains(out, part) {
			t.Errorf("no %q in %s", part, out)
		}
	}
}

// TestAHeterogeneousJobOnTheCommandLine submits a job with several components. On the command lines of sbatch, salloc
// and srun, a colon stands between two components. squeue and scancel must see one job.
func TestAHeterogeneousJobOnTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newSlurmSite(t)
	s.write("job.sh", "#!/bin/bash\n#SBATCH -o out\nsrun --het-group=0,1 printenv SLURM_PROCID | sort; sleep 100\n")
	if said, code := s.run("sbatch", "-n", "2", ":", "-n", "1", "-c", "4", "job.sh"); code != 0 || !strings.Contains(said, "Submitted batch job 1") {
		t.Fatalf("exit code %d: %s", code, said)
	}
	await.Until(t, "the ranks run", func() bool { return s.read("out") == "0\n1\n2\n" })
	if said, code := s.run("squeue", "-h", "-o", "%i %D %C %T"); code != 0 || said != "1 2 6 RUNNING\n" {
		t.Errorf("exit code %d: %s", code, said)
	}
	if said, code := s.run("scontrol", "show", "job", "1"); code != 0 || !strings.Contains(said, "ReqTRES=billing=6,cpu=6,mem=6144M,node=2\n") {
		t.Errorf("exit code %d: %s", code, said)
	}
	if said, code := s.run("sacct", "-X", "-n", "-P", "-j", "1", "-o", "ReqMem,NNodes,NCPUS"); code != 0 || said != "6144M|2|6\n" {
		t.Errorf("exit code %d: %s", code, said)
	}
	if said, code := s.run("scancel", "1"); code != 0 {
		t.Errorf("exit code %d: %s", code, said)
	}
	await.Until(t, "the job has ended", func() bool { said, _ := s.run("squeue", "-h"); return said == "" })
	for _, words := range [][]string{
		{"salloc", "-n", "1", ":", "-n", "1", "-c", "2", "srun", "sh", "-c", "echo $SLURM_PROCID", ":", "sh", "-c", "echo $SLURM_PROCID $CANDOR_CPUS"},
		{"srun", "-n", "1", "sh", "-c", "echo $SLURM_PROCID", ":", "-n", "1", "-c", "2", "sh", "-c", "echo $SLURM_PROCID $CANDOR_CPUS"},
	} {
		said, code := s.run(words...)
		if code != 0 || !strings.Contains(said, "0\n") || !strings.Contains(said, "1 2\n") {
			t.Errorf("%s: exit code %d: %s", words[0], code, said)
		}
	}
	for options, sentence := range map[string]string{
		"-n 1 : -n 1 -c 5":              "no node of class cpu has 5 cpus",
		"-N 2 -c 4 : -N 2 -c 4":         "the parts of the job start together and take 16 slots of class cpu, and all nodes of market cpu have 12",
		"-n 1 : -n 1 --begin=now+1hour": "component 1: --begin is an option of the whole job",
		"-a 0-3 -n 1 : -n 1":            "Slurm has no arrays of heterogeneous jobs",
		"-n 1 : -n 1 -p none":           `there is no market "none"`,
	} {
		s.write("job.sh", "#!/bin/bash\n#SBATCH "+strings.ReplaceAll(options, " : ", "\n#SBATCH hetjob\n#SBATCH ")+"\ntrue\n")
		if said, code := s.run("sbatch", "job.sh"); code != 1 || !strings.Contains(said, sentence) {
			t.Errorf("%s: exit code %d: %s, want %q", options, code, said, sentence)
		}
	}
}

// TestHeterogeneousJobsInOtherMarkets runs a job of two components in several markets. A highest-bid market must refuse
// it with a reason.
func TestHeterogeneousJobsInOtherMarkets(t *testing.T) {
	for mechanism, bid := range map[string]string{
		"batch-queue, pricing: pivot":          "--value 1 --length 20s",
		"reservation, cycle: 20s, granule: 1s": "--value 1 --length 6s",
		"highest-bid":                          "--rate 2/h",
	} {
		t.Run(mechanism, func(t *testing.T) {
			s := slurmSiteWith(t, mechanism, "n1", "n2", "n3")
			s.write("job.sh", "#!/bin/bash\n#CANDOR "+bid+"\n#SBATCH -n 1 -c 3 -o out\n#SBATCH hetjob\n#SBATCH -N 2 -n 4\nsrun --het-group=0,1 printenv SLURM_PROCID | sort\n")
			said, code := s.run("sbatch", "--wait", "job.sh")
			if mechanism == "highest-bid" {
				if reason := "all slots of a job are one unit, and a job on several nodes has no other stages"; code != 1 || !strings.Contains(said, reason) {
					t.Errorf("exit code %d: %s, want %q", code, said, reason)
				}
				return
			}
			if out := s.read("out"); code != 0 || out != "0\n1\n2\n3\n4\n" {
				t.Errorf("exit code %d: %s, it wrote %q", code, said, out)
			}
		})
	}
}
