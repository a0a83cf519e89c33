package slurm_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/cmd/candor/internal/client/slurm"
	"github.com/candor-grid/candor/messages"
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

// With --pty, the command runs once, at the terminal of rank 0, in a job with room for all ranks.
func TestSrunAtATerminal(t *testing.T) {
	for _, line := range []string{"-n 4 --pty bash", "-N 1 --ntasks-per-node=4 --pty bash", "--pty=0 -n4 bash"} {
		stage := submittedBySrun(t, nil, strings.Fields(line)...).Stages[0]
		if !strings.Contains(stage.Script, "\nexec 'bash'\n") || !strings.Contains(stage.Script, " SLURM_NTASKS=4 ") || stage.Interactive == nil || !stage.Interactive.Terminal {
			t.Errorf("srun %s: %+v in %s", line, stage.Interactive, stage.Script)
		}
	}
}

// Outside of a job, variables set options of srun. Options on the command line win.
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

// Outside of a job, one rank also has Slurm's variables.
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
