package slurm_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/cmd/candor/internal/client/slurm"
	"github.com/candor-grid/candor/cmd/candor/internal/client/submit"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

func newSite(t *testing.T) *clienttest.Site {
	return clienttest.New(t, submit.Commands, func(a *cli.App) []*cobra.Command { return []*cobra.Command{slurm.Command(a, "")} })
}

func slurmCall(s *clienttest.Site, name string, args ...string) clienttest.Result {
	s.T.Helper()
	var out, errs bytes.Buffer
	code := slurm.Run(context.Background(), s.App(&out, &errs), name, args)
	return clienttest.Result{Code: code, Out: out.String(), Err: errs.String()}
}

// slurmSite returns a site with jobs in every state for which programs look.
func slurmSite(t *testing.T) (s *clienttest.Site, submitted *[]job.JobSpec) {
	s = newSite(t)
	s.Env = map[string]string{"CANDOR_STATE": s.Path("state"), "CANDOR_BUDGET": "2", "MY_PARAMETER": "7", "AWS_SECRET_ACCESS_KEY": "x"}
	jobs := []job.JobSummary{
		{Job: 11, Name: "a1b2", Account: "alice", Payer: "climate", Market: "main", State: job.Waiting, Reason: "WaitingForShare", Budget: 2e6, Tasks: 1, Submitted: clienttest.At(3500)},
		{Job: 10, Name: "array", Account: "alice", Payer: "alice", Market: "main", State: job.Running, Budget: 2e6, Tasks: 4, Running: 1, Done: 1, Failed: 1,
			Submitted: clienttest.At(3400), Started: clienttest.At(3401), Array: job.Array{{First: 0, Last: 3, Step: 1}}},
		{Job: 9, Name: "killed", Account: "alice", Payer: "alice", Market: "main", State: job.Failed, Reason: "TaskFailed", ExitCode: 137, Tasks: 1, Failed: 1, Submitted: clienttest.At(3300), Started: clienttest.At(3300), Ended: clienttest.At(3390)},
		{Job: 8, Name: "late", Account: "alice", Payer: "alice", Market: "main", State: job.Failed, Reason: "TimeLimit", Tasks: 1, Failed: 1, Submitted: clienttest.At(3300), Started: clienttest.At(3300), Ended: clienttest.At(3390)},
		{Job: 7, Name: "gone", Account: "alice", Payer: "alice", Market: "main", State: job.Cancelled, Reason: "CancelledByUser", Tasks: 1, Submitted: clienttest.At(3300), Started: clienttest.At(3300), Ended: clienttest.At(3350)},
		{Job: 6, Name: "fine", Account: "alice", Payer: "alice", Market: "main", State: job.Completed, Charged: 123456, Tasks: 1, Done: 1, Submitted: clienttest.At(10), Started: clienttest.At(12), Ended: clienttest.At(100)},
	}
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJobs, func(r job.JobsRequest) (job.JobsReply, error) {
		var reply job.JobsReply
		for _, j := range jobs {
			if (r.Jobs == nil || slices.Contains(r.Jobs, j.Job)) && !(r.Active && j.State.Final()) && (r.Name == "" || r.Name == j.Name) && (r.Since == 0 || j.Ended == 0 || j.Ended >= r.Since) {
				reply.Jobs = append(reply.Jobs, j)
			}
		}
		return reply, nil
	})
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJob, func(r job.JobRequest) (job.JobDetail, error) {
		for _, j := range jobs {
			if j.Job == r.Job {
				return job.JobDetail{JobSummary: j, Spec: job.JobSpec{Dir: "/home/alice", Stages: []job.Stage{{Name: "main", TimeLimit: messages.Duration(600e9)}}}}, nil
			}
		}
		return job.JobDetail{}, messages.Errorf(messages.NotFound, "job %v does not exist", r.Job)
	})
	clienttest.Answer(s, messages.Auctioneer, messages.VerbTasks, func(r job.TasksRequest) (job.TasksReply, error) {
		code := func(n int) *int { return &n }
		switch r.Job {
		case 10:
			return job.TasksReply{Tasks: []job.TaskStatus{
				{Index: 0, Array: 0, State: "Done", Node: "node1", ExitCode: code(0), Claimed: clienttest.At(3401), Ended: clienttest.At(3411)},
				{Task: messages.TaskRef{Job: 10, Index: 1}, Attempt: 1, Index: 1, Array: 1, State: "Running", Node: "node2", Claimed: clienttest.At(3402)},
				{Index: 2, Array: 2, State: "Failed", Node: "node1", Reason: "MemoryLimit", ExitCode: code(137), Claimed: clienttest.At(3403), Ended: clienttest.At(3405)},
			}}, nil
		case 9:
			return job.TasksReply{Tasks: []job.TaskStatus{{State: "Failed", Node: "node1", Reason: "Signal", ExitCode: code(137), MaxRSS: 4 << 20}}}, nil
		case 8:
			return job.TasksReply{Tasks: []job.TaskStatus{{State: "Failed", Node: "node2", Reason: "TimeLimit"}}}, nil
		}
		return job.TasksReply{}, nil
	})
	clienttest.Reply(s, messages.Auctioneer, messages.VerbMarkets, market.MarketsReply{Markets: []market.MarketStatus{
		{Market: market.Market{Name: "main", Mechanism: "proportional", Classes: []messages.Name{"cpu"}}, Tariffs: []market.SlotTariff{{Class: "cpu", Price: 20_000}, {Class: "gpu", Price: 20_000, Length: messages.Duration(60e9)}}},
		{Market: market.Market{Name: "night", Mechanism: "fifo", Classes: []messages.Name{"cpu"}, TimeLimit: messages.Duration(3600e9)}}}})
	clienttest.Reply(s, messages.Auctioneer, messages.VerbNodes, market.NodesReply{Nodes: []market.NodeStatus{
		{Node: "node1", State: "Up", Slots: []job.ClassSlots{{Class: "cpu", Slots: 4}}, Used: []job.ClassSlots{{Class: "cpu", Slots: 1}},
			Resources: &job.Resources{CPUs: 4, Memory: 64 << 30, GPUs: 2, GPUType: "a100"}, Labels: []messages.Name{"ib", "rome"}},
		{Node: "node2", State: "Lost", Slots: []job.ClassSlots{{Class: "cpu", Slots: 4}}}}})
	clienttest.Answer(s, messages.Bank, messages.VerbAccounts, func(money.AccountsRequest) (money.AccountsReply, error) {
		return money.AccountsReply{Accounts: []money.AccountReply{{Account: "alice", Balance: 9e6, Available: 8e6, Reserved: 1e6}, {Account: "climate", Balance: 5e6, Available: 5e6}}}, nil
	})
	submitted = new([]job.JobSpec)
	clienttest.Answer(s, messages.Auctioneer, messages.VerbSubmit, func(r job.SubmitRequest) (job.SubmitReply, error) {
		*submitted = append(*submitted, r.Spec)
		return job.SubmitReply{Job: 33, Market: "main", Payer: "alice", Held: r.Spec.Budget}, nil
	})
	clienttest.Answer(s, messages.Auctioneer, messages.VerbCancel, func(r job.CancelRequest) (job.CancelReply, error) {
		s.Signals = append(s.Signals, cancelOf(&r))
		if r.Job < 9 {
			return job.CancelReply{}, messages.Errorf(messages.Ended, "job %v has ended", r.Job)
		}
		return job.CancelReply{Job: r.Job}, nil
	})
	s.Write("pbs.sh", "#PBS -N other\n#PBS -l walltime=2:00:00\n\nhostname\n")
	s.Write("sge.sh", "#!/bin/sh\n#$ -t 1-3 -cwd\nhostname\n")
	s.Write("job.sh", "#!/bin/bash\n#SBATCH -J sub -o %j.out -p main\n#SBATCH --time=5\nhostname\n")
	s.Write("tool.py", "#!/usr/bin/env python3\nprint('hello')\n")
	s.Write("free.sh", "hostname\n")
	s.Write("submitit.sh", "#!/bin/bash\n\n# Parameters\n#SBATCH --array=0-1%2\n#SBATCH --error=/tmp/logs/%A_%a_0_log.err\n#SBATCH --job-name=submitit\n#SBATCH --mem=1GB\n"+
		"#SBATCH --nodes=1\n#SBATCH --open-mode=append\n#SBATCH --output=/tmp/logs/%A_%a_0_log.out\n#SBATCH --signal=USR2@90\n#SBATCH --time=5\n#SBATCH --wckey=submitit\n\n"+
		"srun --unbuffered --output '/tmp/logs/%A_%a_%t_log.out' --error '/tmp/logs/%A_%a_%t_log.err' python3 -m submitit.core._submit /tmp/logs\n")
	s.Write("nextflow.sh", "#!/bin/bash\n#SBATCH -J nf-hello\n#SBATCH -o /scratch/hello/.command.log\n#SBATCH --no-requeue\n#SBATCH --signal B:USR2@30\n#SBATCH -t 00:10:00\n#SBATCH --mem 100M\n#SBATCH -p main\ntrue\n")
	s.Write("dask.sh", "#!/usr/bin/env bash\n\n#SBATCH -J dask-worker\n#SBATCH -e logs/dask-worker-%J.err\n#SBATCH -o logs/dask-worker-%J.out\n#SBATCH -p main\n#SBATCH -A climate\n#SBATCH -n 1\n#SBATCH -N 1\n"+
		"#SBATCH --cpus-per-task=1\n#SBATCH --mem=954M\n#SBATCH -t 00:30:00\npython3 -m distributed.cli.dask_worker tcp://127.0.0.1:8786\n")
	s.Write("parsl.sh", "#!/bin/bash\n\n#SBATCH --job-name=parsl.slurm.1\n#SBATCH --output=/tmp/p.stdout\n#SBATCH --error=/tmp/p.stderr\n#SBATCH --nodes=1\n#SBATCH --time=10\n#SBATCH --ntasks-per-node=1\n#SBATCH --partition=main\n\ntrue\n")
	clienttest.ServeAt(s, agent.StreamSubject("west", "node2", "*"), messages.VerbStream, func(r agent.StreamRequest) (agent.StreamReply, error) {
		s.Signals = append(s.Signals, fmt.Sprintf("%v.%d %s first %v rest %v", r.Attempt.Task, r.Attempt.Number, r.Signal, r.SignalFirst, r.SignalRest))
		return agent.StreamReply{}, nil
	})
	clienttest.Answer(s, messages.Auctioneer, job.VerbChange, func(r job.ChangeRequest) (job.ChangeReply, error) {
		most := -1
		if r.MaxRunning != nil {
			most = *r.MaxRunning
		}
		s.Signals = append(s.Signals, fmt.Sprintf("change job %v name %q limit %v at once %d", r.Job, r.Name, r.TimeLimit, most))
		return job.ChangeReply{Job: r.Job}, r.Validate()
	})
	clienttest.Answer(s, messages.Auctioneer, job.VerbRequeue, func(r job.RequeueRequest) (job.RequeueReply, error) {
		s.Signals = append(s.Signals, fmt.Sprintf("requeue job %v stage %v task %v", r.Job, *r.Stage, *r.Task))
		return job.RequeueReply{Job: r.Job, Tasks: 1}, nil
	})
	return s, submitted
}

// slurmCalls are calls of Slurm's commands by other programs, word for word.
var slurmCalls = [][]string{
	// These are command lines that the workflow engine Snakemake, version 7, runs.
	{"sbatch", "-J", "rule", "-o", "logs/%j.log", "--export=ALL", "-A", "climate", "-p", "main", "-t", "10", "--mem", "100", "--cpus-per-task=1", "-D", "/tmp", "--wrap=echo hello"},
	{"sacct", "-P", "-n", "--format=JobIdRaw,State", "-j", "6"},
	{"scontrol", "show", "jobid", "-dd", "9"},
	{"sacctmgr", "-n", "-s", "list", "user", "alice", "format=account%20"},
	{"scancel", "11"},
	{"sinfo", "-o", "%P"},
	// The workflow engine Snakemake, version 8, makes the following calls.
	{"sbatch", "--parsable", "--job-name", "a1b2", "--output", "x.log", "--comment", "rule_a", "--ntasks=1", "job.sh"},
	{"sacct", "-X", "--parsable2", "--clusters", "all", "--noheader", "--format=JobIdRaw,State", "--starttime", "2026-02-27T00:00", "--endtime", "now", "--name", "a1b2"},
	{"squeue", "--format=%i|%T", "--states=all", "--noheader", "--name", "a1b2"},
	{"sbatch", "--parsable", "--job-name", "a1b2", "--output", "r/%j.log", "--export=ALL", "--comment", "rule_a_wildcards_1", "-A", "climate", "-p", "main", "-t", "5", "--mem", "100", "--ntasks=1", "--cpus-per-task=1", "-D", "/tmp", "--array=1-3", "--wrap=true"},
	{"sacct", "-nu", "alice", "-o", "Account%256"},
	{"sshare", "-U", "--format", "Account%25", "--noheader"},
	{"sacct", "-j", "9", "-n", "-X", "-o", "nodelist%-25"},
	{"sacct", "-j", "9.0", "--format=Reason", "--noheader"},
	{"sacct", "--name=killed", "--parsable2", "--noheader", "--format=JobID,JobName,Comment,Elapsed,TotalCPU,NNodes,NCPUS,MaxRSS,ReqMem"},
	{"scancel", "11", "10", "--clusters=all"},
	{"scontrol", "show", "config"},
	{"scontrol", "show", "partition"},
	// These are command lines that the workflow engine Toil runs.
	{"sbatch", "-J", "toil_job", "--export=ALL,K=V", "-o", "/tmp/toil.%j.out.log", "-e", "/tmp/toil.%j.err.log", "--wrap=exec _toil_worker x"},
	{"sacct", "-n", "-j", "9,8,7", "--format", "JobIDRaw,State,ExitCode", "-P", "-S", "1970-01-01"},
	{"squeue", "-h", "--format", "%i %t %M"},
	// The library submitit makes the following calls.
	{"sbatch", "job.sh"},
	{"sacct", "-o", "JobID,State,NodeList", "--parsable2", "-j", "10", "-j", "9"},
	{"scancel", "10_3", "--signal", "KILL"},
	{"sbatch", "submitit.sh"},
	{"scancel", "10_1", "--signal", "SIGTERM"},
	{"scancel", "10_1", "--signal", "USR2"},
	{"scontrol", "requeue", "10_1"},
	// These are calls that dask-jobqueue and Parsl make.
	{"sacct", "-X", "--noheader", "--format=jobid,state%20", "--job", "11,10"},
	{"sbatch", "dask.sh"},
	{"sbatch", "parsl.sh"},
	{"sacct", "-X"},
	{"squeue", "--noheader", "--format=%i %t", "--job", "11,10"},
	// These are command lines that the workflow engine Nextflow runs.
	{"sbatch", "nextflow.sh"},
	{"squeue", "--noheader", "-o", "%i %t", "-t", "all", "--only-job-state"},
	{"squeue", "--noheader", "-o", "%i %t", "-t", "all", "-p", "main", "-u", "alice"},
	// These commands are sent by Cromwell, a workflow system.
	{"sbatch", "-J", "cromwell_1", "-D", "/tmp", "-o", "/tmp/stdout", "-e", "/tmp/stderr", "-t", "600", "-p", "main", "-n", "1", "--mem-per-cpu=100", "--wrap", "/usr/bin/env bash /tmp/script"},
	{"squeue", "-j", "11"},
	{"squeue", "-j", "99"},
	// These are command lines that a person types.
	{"sbatch", "--array", "0-7:2%3", "job.sh", "argument"},
	{"sbatch", "tool.py"},
	{"sbatch", "free.sh"},
	{"sbatch", "--nodes=2", "job.sh"},
	{"sbatch", "--gres=gpu:1", "job.sh"},
	{"sbatch", "missing.sh"},
	{"sbatch", "--version"},
	{"squeue"},
	{"squeue", "-r", "-o", "%A %K %T %R"},
	{"squeue", "-o", "job %i is %t"},
	{"squeue", "-h", "-o", "none"},
	{"squeue", "-o", "%z"},
	{"squeue", "-t", "NONSENSE"},
	{"squeue", "-O", "JobArrayID:8,Name,State:.10,tres-per-node"},
	{"squeue", "--Format=Nonsense"},
	{"squeue", "-o", "%i %b %c %m %f %n %h"},
	{"sacct", "-P", "-j", "9", "--format=JobID,NTasks,AveRSS,MaxVMSize,AllocTRES,Planned"},
	{"sacct"},
	{"sacct", "-j", "10", "--format=JobID,State,ExitCode,NodeList,MaxRSS,Charged", "-P"},
	{"sacct", "--format=Nonsense"},
	{"scancel"},
	{"scancel", "6"},
	{"scancel", "-s", "USR1", "11"},
	{"scancel", "-b", "-s", "10", "10"},
	{"scancel", "-s", "NONSENSE", "10"},
	{"scancel", "eleven"},
	{"sinfo"},
	{"sinfo", "-N", "-t", "mix,alloc"},
	{"sinfo", "-h", "-t", "drain", "-o", "%N"},
	{"sinfo", "-t", "NONSENSE"},
	{"sinfo", "-s"},
	{"sinfo", "-o", "%P %D %c %m %G %f %C"},
	{"scontrol", "show", "node", "node1"},
	{"squeue", "--notme", "-h"},
	{"sshare"},
	{"sacctmgr", "show", "qos"},
	{"srun", "--x11", "hostname"},
	{"srun", "-I", "hostname"},
	{"srun", "--jobid=10", "--overlap", "ps"},
	{"srun", "--gres=shard:1", "hostname"},
	{"scontrol", "show", "job", "99"},
	{"scontrol", "update", "JobId=11", "TimeLimit=5", "Name=other"},
	{"scontrol", "update", "job", "10", "arraytaskthrottle=3"},
	{"scontrol", "update", "jobid=11", "priority=5"},
	{"scontrol", "update", "jobid=11", "TimeLimit=UNLIMITED"},
	{"scontrol", "update", "jobid=10_1", "TimeLimit=5"},
	{"scontrol", "update", "TimeLimit=5"},
	{"squeue", "--start"},
	{"squeue", "-h", "-j", "10_1", "-o", "%L"},
	{"sprio"},
	{"sstat", "-j", "9"},
	{"sstat", "-e"},
	{"seff", "9"},
	{"seff", "10_1"},
	{"seff"},
	{"sreport", "cluster", "utilization"},
	{"salloc", "--overlap", "hostname"},
	{"qsub", "-N", "mine", "-l", "walltime=1:00:00", "-v", "A=b c", "pbs.sh", "argument"},
	{"qsub", "-terse", "sge.sh"},
	{"qsub", "sge.sh"},
	{"qsub", "job.sh"},
	{"qsub", "missing.sh"},
	{"qdel", "10[].west", "11.west"},
	{"qstat"},
	{"qstat", "-u", "alice"},
	{"qstat", "-f", "10[].west"},
	{"qstat", "11.west", "9", "99.west"},
	{"qstat", "-x", "9"},
	{"qstat", "-xf", "9"},
	{"qstat", "-j", "11"},
	{"qstat", "-j", "99"},
}

func TestSlurmCalls(t *testing.T) {
	s, submitted := slurmSite(t)
	old, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chdir(s.Dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chdir(old) })
	var b strings.Builder
	for _, line := range slurmCalls {
		*submitted, s.Signals = nil, nil
		r := slurmCall(s, line[0], line[1:]...)
		fmt.Fprintf(&b, "$ %s\n%s", strings.Join(line, " "), r.Out)
		if r.Err != "" {
			b.WriteString("standard error: " + r.Err)
		}
		for _, sent := range s.Signals {
			b.WriteString("sends: " + sent + "\n")
		}
		for _, spec := range *submitted {
			stage := spec.Stages[0]
			fmt.Fprintf(&b, "submits: name %q market %q project %q budget %v dir %q attempts %d time %v array %v most %d memory %d signal %+v\n", spec.Name, spec.Market, spec.Project, spec.Budget, spec.Dir, stage.Attempts, stage.TimeLimit, stage.Array, stage.MaxRunning, stage.Memory, stage.Signal)
			for _, v := range spec.Env {
				fmt.Fprintf(&b, "  %s=%s\n", v.Name, v.Value)
			}
			b.WriteString("  | " + strings.ReplaceAll(strings.TrimSpace(stage.Script), "\n", "\n  | ") + "\n")
		}
		fmt.Fprintf(&b, "exit code %d\n\n", r.Code)
	}
	if err := os.Chdir(old); err != nil {
		t.Fatal(err)
	}
	user := os.Getenv("USER")
	text := strings.ReplaceAll(b.String(), s.Dir, "DIR")
	host, _ := os.Hostname()
	text = strings.ReplaceAll(text, "SLURM_SUBMIT_HOST='"+host+"'", "SLURM_SUBMIT_HOST='HOST'")
	clienttest.Golden(t, "slurm.txt", strings.ReplaceAll(text, "SLURM_JOB_USER='"+user+"'", "SLURM_JOB_USER='USER'"))
}

// Some command lines have an option with an empty value, as from an unset shell variable. If scancel ignored this
// option, it would cancel more jobs than the user means. Other command lines name a step that does not run. In all these
// cases, no job may be cancelled.
func TestSlurmCancelsWhatIsNamed(t *testing.T) {
	s, _ := slurmSite(t)
	for _, line := range [][]string{
		{"--name", ""}, {"-n", ""}, {"-u", ""}, {"--user="}, {"-A", ""}, {"-p", ","}, {"-t", ""}, {"--me", "-t", " "},
		{""}, {"11", ""}, {"10_"}, {"10_[]"}, {"11.0"}, {"11.batch"}, {"11."}, {"-n", "name", "11.0"},
	} {
		if r := slurmCall(s, "scancel", line...); r.Code != 1 || !strings.HasPrefix(r.Err, "scancel: error: ") || s.Signals != nil {
			t.Errorf("scancel %q: exit code %d: %s; it sends %q", line, r.Code, r.Err, s.Signals)
		}
	}
}

// After the name of a script, sbatch must pass --wrap to the script as an argument. Before the name, --wrap is an
// option of sbatch.
func TestWrapIsAnOptionOfSbatchAlone(t *testing.T) {
	s, submitted := slurmSite(t)
	slurmCall(s, "sbatch", s.Path("job.sh"), "--wrap", "x").Expect(t, 0, "Submitted batch job 33\n", "")
	slurmCall(s, "sbatch", "--wrap", "-x").Expect(t, 0, "Submitted batch job 33\n", "")
	if len(*submitted) != 2 || !strings.Contains((*submitted)[0].Stages[0].Script, "hostname") || !strings.HasSuffix((*submitted)[1].Stages[0].Script, "\n-x\n") {
		t.Errorf("%+v", *submitted)
	}
	slurmCall(s, "sbatch", "--wrap").Expect(t, 1, "", "sbatch: error: --wrap needs a value")
	slurmCall(s, "sbatch", "--wrap=true", "job.sh").Expect(t, 1, "", "Script arguments not permitted with --wrap option")
}

// TestTheBudgetOfTheSiteIsForTerminals submits jobs without a budget. Programs read the standard output and the
// standard error of sbatch. So the warning about the budget must be in neither. Other warnings must still be printed.
func TestTheBudgetOfTheSiteIsForTerminals(t *testing.T) {
	s := newSite(t)
	s.Env = map[string]string{"CANDOR_STATE": s.Path("state")}
	s.Write("pbs.sh", "#PBS -N other\nhostname\n")
	clienttest.Answer(s, messages.Auctioneer, messages.VerbSubmit, func(r job.SubmitRequest) (job.SubmitReply, error) {
		return job.SubmitReply{Job: 33, Warnings: []string{job.NoBudget + ", and may cost 1 credit", "the limit is not enforced"}}, nil
	})
	for _, line := range [][]string{{"sbatch", "--wrap", "true"}, {"qsub", s.Path("pbs.sh")}} {
		if r := slurmCall(s, line[0], line[1:]...); r.Code != 0 || r.Err != line[0]+": the limit is not enforced\n" {
			t.Errorf("%q: %d, %s, %s", line, r.Code, r.Out, r.Err)
		}
	}
}

// TestSbatchIsInterrupted interrupts sbatch while it waits for its job. The job must continue.
func TestSbatchIsInterrupted(t *testing.T) {
	s := newSite(t)
	s.Env = map[string]string{"CANDOR_STATE": s.Path("state"), "CANDOR_BUDGET": "2"}
	clienttest.Answer(s, messages.Auctioneer, messages.VerbSubmit, func(r job.SubmitRequest) (job.SubmitReply, error) {
		return job.SubmitReply{Job: 33, Market: "main", Payer: "alice", Held: r.Spec.Budget}, nil
	})
	var out, errs bytes.Buffer
	ctx, interrupt := context.WithCancel(context.Background())
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJob, func(job.JobRequest) (job.JobDetail, error) {
		interrupt()
		return job.JobDetail{}, messages.Errorf(messages.Unavailable, "no leader")
	})
	code := slurm.Run(ctx, s.App(&out, &errs), "sbatch", []string{"--wait", "--wrap", "true"})
	if code != 130 || out.String() != "Submitted batch job 33\n" || errs.String() != "" {
		t.Errorf("exit code %d: %s%s", code, out.String(), errs.String())
	}
}

// "candor slurm link" makes links whose names are the names of Slurm's commands. The links lead to the candor program.
// The command must not overwrite an existing file.
func TestSlurmLink(t *testing.T) {
	s := newSite(t)
	s.Run("slurm", "link", s.Path("bin")).Expect(t, 0, "18 commands of Slurm", "")
	if to, err := os.Readlink(filepath.Join(s.Path("bin"), "sbatch")); err != nil || to == "" {
		t.Errorf("sbatch leads to %q, %v", to, err)
	}
	s.Run("slurm", "link", s.Path("bin")).Expect(t, 0, "18 commands of Slurm", "")
	s.Write("other/sacct", "a program")
	s.Run("slurm", "link", s.Path("other")).Expect(t, 2, "", "sacct exists already")
	if _, err := os.Lstat(filepath.Join(s.Path("other"), "sbatch")); err == nil {
		t.Error("some links were made though one could not be")
	}
}

// The site refuses the third element of an array on several nodes. The first two must have their indices in the array,
// and must be cancelled.
func TestAnArrayIsWithdrawn(t *testing.T) {
	s := newSite(t)
	s.Env = map[string]string{"CANDOR_STATE": s.Path("state"), "CANDOR_BUDGET": "2"}
	s.Write("job.sh", "#!/bin/bash\nhostname\n")
	var submitted, cancelled []string
	clienttest.Answer(s, messages.Auctioneer, messages.VerbSubmit, func(r job.SubmitRequest) (job.SubmitReply, error) {
		if len(submitted) == 2 {
			return job.SubmitReply{}, messages.Errorf(messages.Insufficient, "budget: the account has less")
		}
		submitted = append(submitted, fmt.Sprintf("%v budget %v after %v", r.Spec.Labels, r.Spec.Budget, r.Spec.AfterJobs))
		return job.SubmitReply{Job: messages.JobID(30 + len(submitted)), Market: "main", Payer: "alice", Held: r.Spec.Budget}, nil
	})
	clienttest.Answer(s, messages.Auctioneer, messages.VerbCancel, func(r job.CancelRequest) (job.CancelReply, error) {
		cancelled = append(cancelled, r.Job.String())
		return job.CancelReply{Job: r.Job}, nil
	})
	r := slurmCall(s, "sbatch", "-N", "2", "--array=1,4,6,7%1", s.Path("job.sh"))
	if r.Code != 1 || r.Out != "" || !strings.Contains(r.Err, "the account has less") {
		t.Errorf("%+v", r)
	}
	if want := []string{"slurm-array=first,slurm-index=1 budget 0.5 after []", "slurm-array=31,slurm-index=4 budget 0.5 after [31]"}; !slices.Equal(submitted, want) {
		t.Errorf("submitted %q, want %q", submitted, want)
	}
	if want := []string{"31", "32"}; !slices.Equal(cancelled, want) {
		t.Errorf("cancelled %q, want %q", cancelled, want)
	}
}

// A command whose output cannot be written must fail. If it submitted a job, standard error must have the job's number,
// because the user could not read it elsewhere.
func TestLostSlurmOutputIsAFailure(t *testing.T) {
	s, _ := slurmSite(t)
	for _, c := range []struct{ line, says string }{
		{"sbatch --wrap true", " is submitted, but its number was not written"},
		{"sbatch --parsable --wrap true", " is submitted, but its number was not written"},
		{"scontrol show job 10", "no space left"},
		{"sacct --helpformat", "no space left"},
	} {
		var errs bytes.Buffer
		args := strings.Fields(c.line)
		if code := slurm.Run(t.Context(), s.App(clienttest.FullDisk{}, &errs), args[0], args[1:]); code != cli.CodeFailed || !strings.Contains(errs.String(), c.says) {
			t.Errorf("%s: exit code %d, %q", c.line, code, errs.String())
		}
	}
}
