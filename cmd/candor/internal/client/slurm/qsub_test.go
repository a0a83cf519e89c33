package slurm_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/cmd/candor/internal/client/slurm"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// TestQsubWaits submits jobs for which qsub must wait. qsub must end with the exit code of the job.
func TestQsubWaits(t *testing.T) {
	s := newSite(t)
	s.Env = map[string]string{"CANDOR_STATE": s.Path("state"), "CANDOR_BUDGET": "2"}
	s.Write("pbs.sh", "#!/bin/bash\n#PBS -W block=true\nfalse\n")
	s.Write("sge.sh", "#!/bin/bash\n#$ -cwd\nfalse\n")
	clienttest.Answer(s, messages.Auctioneer, messages.VerbSubmit, func(r job.SubmitRequest) (job.SubmitReply, error) {
		return job.SubmitReply{Job: 33, Market: "main", Payer: "alice", Held: r.Spec.Budget}, nil
	})
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJob, func(r job.JobRequest) (detail job.JobDetail, err error) {
		detail.State, detail.ExitCode = job.Failed, 3
		return detail, nil
	})
	for _, line := range [][]string{{s.Path("pbs.sh")}, {"-sync", "y", s.Path("sge.sh")}, {"-Wblock=true", "--", "false"}} {
		if r := slurmCall(s, "qsub", line...); r.Code != 3 {
			t.Errorf("%q: exit code %d: %s%s", line, r.Code, r.Out, r.Err)
		}
	}
}

// TestQsubRunsCommands gives qsub commands in place of scripts. The jobs must run these commands.
func TestQsubRunsCommands(t *testing.T) {
	s := newSite(t)
	s.Env = map[string]string{"CANDOR_STATE": s.Path("state"), "CANDOR_BUDGET": "2"}
	var name, script string
	clienttest.Answer(s, messages.Auctioneer, messages.VerbSubmit, func(r job.SubmitRequest) (job.SubmitReply, error) {
		name, script = r.Spec.Name, r.Spec.Stages[0].Script
		return job.SubmitReply{Job: 33, Market: "main", Payer: "alice", Held: r.Spec.Budget}, nil
	})
	for _, line := range [][]string{{"-b", "y", "-cwd", "/bin/echo", "a b"}, {"-lwalltime=60", "--", "/bin/echo", "a b"}} {
		name, script = "", ""
		if r := slurmCall(s, "qsub", line...); r.Code != 0 || name != "echo" || !strings.Contains(script, "\nexec '/bin/echo' 'a b'\n") {
			t.Errorf("%q: exit code %d: %s%s; name %q, script %q", line, r.Code, r.Out, r.Err, name, script)
		}
	}
}

// TestQsubLinesAfterCommands submits a script whose directives come after a command. Grid Engine reads them, and options
// of the command line replace them.
func TestQsubLinesAfterCommands(t *testing.T) {
	s := newSite(t)
	s.Env = map[string]string{"CANDOR_STATE": s.Path("state"), "CANDOR_BUDGET": "2"}
	s.Write("sge.sh", "#!/bin/bash\nset -e\n#$ -pe smp 8\n#$ -l h_rt=48:0:0\ntrue\n")
	var stage job.Stage
	clienttest.Answer(s, messages.Auctioneer, messages.VerbSubmit, func(r job.SubmitRequest) (job.SubmitReply, error) {
		stage = r.Spec.Stages[0]
		return job.SubmitReply{Job: 33, Market: "main", Payer: "alice", Held: r.Spec.Budget}, nil
	})
	if r := slurmCall(s, "qsub", "-l", "h_rt=0:10:0", s.Path("sge.sh")); r.Code != 0 || stage.CPUs != 8 || stage.TimeLimit != messages.Duration(10*time.Minute) {
		t.Errorf("exit code %d: %s%s; %d processors for %v", r.Code, r.Out, r.Err, stage.CPUs, stage.TimeLimit)
	}
	if r := slurmCall(s, "qsub", "-b"); r.Code == 0 {
		t.Errorf("-b without a value: %s", r.Out)
	}
}

// TestAnInterruptedArrayIsWithdrawn interrupts sbatch after the first two elements of an array on several nodes. It must
// cancel them.
func TestAnInterruptedArrayIsWithdrawn(t *testing.T) {
	s := newSite(t)
	s.Env = map[string]string{"CANDOR_STATE": s.Path("state"), "CANDOR_BUDGET": "2"}
	s.Write("job.sh", "#!/bin/bash\nhostname\n")
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	submitted, cancelled := 0, ""
	clienttest.Answer(s, messages.Auctioneer, messages.VerbSubmit, func(r job.SubmitRequest) (job.SubmitReply, error) {
		if submitted++; submitted == 3 {
			interrupt()
			return job.SubmitReply{}, messages.Errorf(messages.Unavailable, "no leader")
		}
		return job.SubmitReply{Job: messages.JobID(30 + submitted), Market: "main", Payer: "alice", Held: r.Spec.Budget}, nil
	})
	clienttest.Answer(s, messages.Auctioneer, messages.VerbCancel, func(r job.CancelRequest) (job.CancelReply, error) {
		cancelled += r.Job.String() + " "
		return job.CancelReply{Job: r.Job}, nil
	})
	var out, errs bytes.Buffer
	code := slurm.Run(ctx, s.App(&out, &errs), "sbatch", []string{"-N", "2", "--array=1-4", s.Path("job.sh")})
	if code == 0 || cancelled != "31 32 " {
		t.Errorf("exit code %d, cancelled %q: %s%s", code, cancelled, out.String(), errs.String())
	}
}

// qdel and qstat take the numbers that qsub and qstat print. Grid Engine writes an element of an array as 7.3.
func TestNumbersOfQsub(t *testing.T) {
	s, _ := slurmSite(t)
	for line, want := range map[string]string{"10[3].west": "cancel 10 [{3 3 1}]", "10.3": "cancel 10 [{3 3 1}]", "10.0-3:2": "cancel 10 [{0 2 2}]", "10.1.west": "cancel 10 [{1 1 1}]",
		"10[0-3:2].west": "cancel 10 [{0 2 2}]", "10.1,11": "cancel 10 [{1 1 1}] cancel 11", "11.west,10[1,3].west": "cancel 11 cancel 10 [{1 3 2}]", "10[2-3].west": "cancel 10 [{2 3 1}]", "10[].west": "cancel 10", "10.west": "cancel 10"} {
		s.Signals = nil
		if r := slurmCall(s, "qdel", line); r.Code != 0 || strings.Join(s.Signals, " ") != want {
			t.Errorf("qdel %s: %+v sends %q, want %q", line, r, s.Signals, want)
		}
	}
	for _, line := range []string{"-u alice.west", "x.site", "10.1-", "10.1x", "10.0-3:0", "10.3-1", "10[x].west", "10.1,x", "11.1", "-u alice 11.1"} {
		s.Signals = nil
		if r := slurmCall(s, "qdel", strings.Fields(line)...); s.Signals != nil || (r.Code == 0) != (line == "-u alice.west") {
			t.Errorf("qdel %s: %+v sends %q", line, r, s.Signals)
		}
	}
}

// qstat must list only the jobs in the states that the user names, and only the elements of an array.
func TestQstatSelects(t *testing.T) {
	s, _ := slurmSite(t)
	for line, want := range map[string]string{
		"-r": "10[].west B", "-i": "11.west Q", "-r -i": "10[].west B 11.west Q", "-s r": "10[].west B", "-s p": "11.west Q", "-s pr": "10[].west B 11.west Q",
		"-s a": "10[].west B 11.west Q", "-s": "10[].west B 11.west Q", "-s 11.west": "11.west Q", "-s z 9 11": "9.west F", "-r 11": "", "-s hu": "", "-s h": "", "-s hup": "invalid", "-s prx": "invalid", "-s phup": "invalid", "-sp": "11.west Q", "-spr 10": "10[].west B",
		"10[1].west": "10[1].west R", "10.1": "10[1].west R", "-x 10[0-1].west": "10[0].west F 10[1].west R",
	} {
		r := slurmCall(s, "qstat", strings.Fields(line)...)
		var got []string
		for line := range strings.Lines(r.Out) {
			if words := strings.Fields(line); strings.Contains(line, ".west ") {
				for _, word := range words {
					if len(word) == 1 && strings.Contains("QHRBESF", word) {
						got = append(got, words[0], word)
					}
				}
			}
		}
		if r.Code != 0 && strings.Contains(r.Err, "Invalid job id specified") {
			got = []string{"invalid"}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("qstat %s: %+v lists %q, want %q", line, r, got, want)
		}
	}
	if r := slurmCall(s, "qstat", "10[9].west"); r.Code != 153 || r.Err != "qstat: Unknown Job Id 10[9].west\n" {
		t.Errorf("%+v", r)
	}
	if r := slurmCall(s, "qstat", "11.1"); r.Code != 153 || r.Out != "" || r.Err != "qstat: Unknown Job Id 11[1].west\n" {
		t.Errorf("an element of a job that is no array: %+v", r)
	}
	for line, want := range map[string]string{"10.1": "job-array tasks:            1\n", "10.1,11": "job_number:                 11\n"} {
		if r := slurmCall(s, "qstat", "-j", line); r.Code != 0 || !strings.Contains(r.Out, "job_number:                 10\n") || !strings.Contains(r.Out, want) {
			t.Errorf("qstat -j %s: %+v", line, r)
		}
	}
}
