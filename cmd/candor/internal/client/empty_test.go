package client

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// A script with an unset variable gives a flag an empty value. Every flag must refuse it.
func TestNoFlagIsEmpty(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	n := 0
	walk(whole(), func(c *cobra.Command) {
		c.InheritedFlags() // adds the flags of the parent commands to the set
		if c.DisableFlagParsing {
			return
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			n++
			if err := c.ParseFlags([]string{"--" + f.Name + "="}); err == nil {
				t.Errorf("%s --%s \"\" was taken", c.CommandPath(), f.Name)
			}
		})
	})
	if n < 500 {
		t.Errorf("only %d flags were tried", n)
	}
}

// In each of these command lines, an option has an empty value. If the command ignored the option, it would affect more
// jobs or tasks. So the command must fail, and the site must get no request.
func TestEmptyValuesChangeNothing(t *testing.T) {
	s := clienttest.AnswerAll(newSite(t))
	asked := false
	clienttest.Answer(s, messages.Auctioneer, messages.VerbCancel, func(job.CancelRequest) (job.CancelReply, error) {
		asked = true
		return job.CancelReply{}, nil
	})
	clienttest.Answer(s, messages.Auctioneer, job.VerbRequeue, func(job.RequeueRequest) (job.RequeueReply, error) {
		asked = true
		return job.RequeueReply{}, nil
	})
	const flag, argument = `"": the value is empty: set the shell variable that gives it, or leave the flag out`, `"": the value is empty`
	for _, c := range []struct {
		line []string
		want string
	}{
		{[]string{"cancel", "103", "--task", ""}, "candor cancel: --task " + flag},
		{[]string{"cancel", "103", "--array", ""}, "--array " + flag},
		{[]string{"cancel", "103", "--task", "1", "--stage", ""}, "--stage " + flag},
		{[]string{"cancel", "--name", "", "--state", "Running", "--yes"}, "--name " + flag},
		{[]string{"cancel", "--label", "", "--label", "run=7", "--yes"}, "--label " + flag},
		{[]string{"cancel", "--all", "--owner", "", "--yes"}, "--owner " + flag},
		{[]string{"cancel", "103", "--account", " "}, `--account " ": the value is empty`},
		{[]string{"cancel", "103", ""}, "candor cancel: argument 2 " + argument},
		{[]string{"requeue", "103", "--stage", ""}, "--stage " + flag},
		{[]string{"hold", ""}, "argument 1 " + argument},
		{[]string{"rerun", "103", "--key", ""}, "--key " + flag},
		{[]string{"tasks", "103", "--state", ","}, `--state ",": the value is empty`},
		{[]string{"node", "remove", ""}, "argument 1 " + argument},
		{[]string{"account", ""}, "argument 1 " + argument},
	} {
		s.Run(c.line...).Expect(t, cli.CodeUsage, "", c.want)
	}
	if asked {
		t.Error("the site was asked to change something")
	}
	s.Write("show.sh", "#!/bin/sh\necho \"[$1]\"\n")
	clienttest.Answer(s, messages.Auctioneer, messages.VerbSubmit, func(job.SubmitRequest) (job.SubmitReply, error) {
		return job.SubmitReply{Job: 1}, nil
	})
	s.Run("submit", "--budget", "1", s.Path("show.sh"), "").Expect(t, cli.CodeOK, "job 1", "")
}
