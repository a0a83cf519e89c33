package slurm_test

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/cmd/candor/internal/client/slurm"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/money"
)

// submittedBySrun runs srun outside of a job, up to the moment at which it submits a job. It returns the job.
func submittedBySrun(t *testing.T, env map[string]string, args ...string) (spec job.JobSpec) {
	t.Helper()
	s := newSite(t)
	s.Env = map[string]string{"CANDOR_STATE": s.Path("state"), "CANDOR_BUDGET": "2"}
	for name, value := range env {
		s.Env[name] = value
	}
	clienttest.Reply(s, messages.Auctioneer, messages.VerbMarkets, clienttest.Markets())
	clienttest.Reply(s, messages.Auctioneer, messages.VerbNodes, clienttest.Nodes())
	clienttest.Answer(s, messages.Bank, messages.VerbAccounts, func(money.AccountsRequest) (money.AccountsReply, error) {
		return money.AccountsReply{Accounts: []money.AccountReply{{Account: "alice"}, {Account: "climate"}}}, nil
	})
	ctx, interrupt := context.WithCancel(t.Context())
	clienttest.Answer(s, messages.Auctioneer, messages.VerbSubmit, func(r job.SubmitRequest) (job.SubmitReply, error) {
		spec = r.Spec
		interrupt()
		return job.SubmitReply{Job: 33, Market: "main", Payer: "alice"}, nil
	})
	var out, errs bytes.Buffer
	if slurm.Run(ctx, s.App(&out, &errs), "srun", args); len(spec.Stages) == 0 {
		t.Fatalf("srun %q submits no job: %s", args, errs.String())
	}
	return spec
}

// With --pty, the command must run once, at the terminal of rank 0, in a job with processors for all ranks.
func TestSrunAtATerminal(t *testing.T) {
	for _, line := range []string{"-n 4 --pty bash", "-N 1 --ntasks-per-node=4 --pty bash", "--pty=0 -n4 bash"} {
		stage := submittedBySrun(t, nil, strings.Fields(line)...).Stages[0]
		if !strings.Contains(stage.Script, "\nexec 'bash'\n") || !strings.Contains(stage.Script, " SLURM_NTASKS=4 ") || stage.Interactive == nil || !stage.Interactive.Terminal {
			t.Errorf("srun %s: %+v in %s", line, stage.Interactive, stage.Script)
		}
	}
}

// Outside of a job, variables set options of srun. Options on the command line must take precedence over them.
func TestVariablesOfSrunOutsideOfJobs(t *testing.T) {
	env := map[string]string{"SLURM_TIMELIMIT": "5", "SLURM_JOB_NAME": "named", "SLURM_PARTITION": "main", "SLURM_ACCOUNT": "climate", "SLURM_QOS": "high", "SLURM_MEM_PER_NODE": "2G"}
	spec := submittedBySrun(t, env, "true")
	if stage := spec.Stages[0]; stage.TimeLimit != messages.Duration(300e9) || spec.Name != "named" || spec.Market != "main" || stage.Memory != 2<<30 {
		t.Errorf("%+v", spec)
	}
	if spec := submittedBySrun(t, env, "-t", "7", "-J", "typed", "true"); spec.Stages[0].TimeLimit != messages.Duration(420e9) || spec.Name != "typed" {
		t.Errorf("%+v", spec)
	}
	if script := submittedBySrun(t, map[string]string{"SLURM_NTASKS": "3", "SLURM_LABELIO": "1", "SLURM_NPROCS": "2"}, "true").Stages[0].Script; !strings.Contains(script, " SLURM_NTASKS=3 ") || !strings.Contains(script, "'--label=true'") {
		t.Error(script)
	}
}

// Outside of a job, a single rank must also have Slurm's variables.
func TestOneRankHasVariables(t *testing.T) {
	for _, words := range [][]string{{"/usr/bin/env", "A B"}, {"--pty", "/usr/bin/env", "A B"}} {
		spec := submittedBySrun(t, nil, words...)
		if script := spec.Stages[0].Script; spec.Name != "env" || !strings.Contains(script, " SLURM_PROCID=") || !strings.Contains(script, " SLURM_NTASKS=1 ") || !strings.HasSuffix(script, "\nexec '/usr/bin/env' 'A B'\n") {
			t.Errorf("%q: %s: %s", words, spec.Name, script)
		}
	}
}

// An option with an optional value must take a value only after "=". A separate word after the option must be taken for
// the command.
func TestOptionalValuesOfSrun(t *testing.T) {
	for _, option := range []string{"--propagate", "--propagate=NONE", "--nice", "--nice=5", "--no-kill=off", "--unbuffered", "--exclusive", "--overlap", "--quit-on-interrupt", "--oom-kill-step=1", "--resv-ports", "-s"} {
		if script := submittedBySrun(t, nil, option, "./program", "-x").Stages[0].Script; !strings.HasSuffix(script, "\nexec './program' '-x'\n") {
			t.Errorf("%s: %q", option, script)
		}
	}
	for _, option := range []string{"--kill-on-bad-exit", "-K", "--kill-on-bad-exit=1"} {
		if script := submittedBySrun(t, nil, option, "./program").Stages[0].Script; !strings.Contains(script, "'--kill-on-bad-exit=") || !strings.Contains(script, " './program'") {
			t.Errorf("%s: %s", option, script)
		}
	}
}

// salloc and srun must say in Slurm's words when their job is queued and when it gets its resources. Programs look for
// the number of the job in these lines.
func TestSallocSaysHowItsJobGoesOn(t *testing.T) {
	for name, want := range map[string][]string{
		"salloc": {"salloc: Pending job allocation 33\nsalloc: job 33 queued and waiting for resources\n", "salloc: job 33 has been allocated resources\nsalloc: Granted job allocation 33\n", "salloc: Relinquishing job allocation 33\n"},
		"srun":   {"srun: job 33 queued and waiting for resources\n", "srun: job 33 has been allocated resources\n"},
	} {
		s := newSite(t)
		s.Env["CANDOR_BUDGET"] = "2"
		clienttest.Reply(s, messages.Auctioneer, messages.VerbMarkets, clienttest.Markets())
		clienttest.Reply(s, messages.Auctioneer, messages.VerbNodes, clienttest.Nodes())
		clienttest.Answer(s, messages.Auctioneer, messages.VerbSubmit, func(job.SubmitRequest) (job.SubmitReply, error) {
			return job.SubmitReply{Job: 33, Market: "main", Payer: "alice"}, nil
		})
		ended := false
		clienttest.Answer(s, messages.Auctioneer, messages.VerbJob, func(job.JobRequest) (job.JobDetail, error) {
			state := job.Running
			if ended {
				state = job.Completed
			}
			return job.JobDetail{JobSummary: job.JobSummary{Job: 33, State: state}}, nil
		})
		waits := 3
		clienttest.Answer(s, messages.Auctioneer, messages.VerbTasks, func(job.TasksRequest) (r job.TasksReply, err error) {
			state := "Running"
			if waits > 0 {
				state, waits, s.Now = "Pending", waits-1, s.Now.Add(time.Second)
			}
			return job.TasksReply{Tasks: []job.TaskStatus{{Task: messages.TaskRef{Job: 33}, Attempt: 1, Node: "node1", State: state}}}, nil
		})
		clienttest.ServeAt(s, agent.StreamSubject("west", "node1", "*"), messages.VerbStream, func(agent.StreamRequest) (agent.StreamReply, error) {
			ended = true
			return agent.StreamReply{Ended: true}, nil
		})
		var out, errs bytes.Buffer
		code := slurm.Run(t.Context(), s.App(&out, &errs), name, []string{"true"})
		for _, text := range want {
			if code != 0 || !strings.Contains(errs.String(), text) {
				t.Errorf("%s: exit code %d, %s, want %s", name, code, errs.String(), text)
			}
		}
	}
}

// If a program cannot be run, srun outside of a job must end with the same code and message as a step.
func TestSrunOfAMissingProgram(t *testing.T) {
	for program, want := range map[string]string{
		"missing":     "exit status 2: slurmstepd: error: execve(): missing: No such file or directory\n",
		"./missing":   "exit status 2: slurmstepd: error: execve(): ./missing: No such file or directory\n",
		"/etc/passwd": "exit status 13: slurmstepd: error: execve(): /etc/passwd: Permission denied\n",
		"/tmp":        "exit status 13: slurmstepd: error: execve(): /tmp: Permission denied\n",
		"/bin/true":   "<nil>: ",
		"true":        "<nil>: ",
	} {
		script := submittedBySrun(t, nil, program).Stages[0].Script
		lines := strings.Split(strings.TrimSpace(script), "\n")
		first := slices.IndexFunc(lines, func(line string) bool {
			return strings.HasPrefix(line, "[ ! -e") || strings.HasPrefix(line, "command -v")
		})
		out, err := exec.Command("bash", "-c", strings.Join(lines[first:], "\n")).CombinedOutput()
		if got := fmt.Sprintf("%v: %s", err, out); got != want {
			t.Errorf("%s, want %s, in %s", got, want, script)
		}
	}
}
