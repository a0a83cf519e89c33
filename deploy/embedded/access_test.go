package embedded

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// Under allow and deny, markets and classes can name accounts and projects. TestAllowAndDenyAtMarketsAndClasses submits
// jobs there. If an account is denied, the error must say which market takes its jobs, and which does not.
func TestAllowAndDenyAtMarketsAndClasses(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	c.Replicas = 1
	c.Nodes = NodesAlike(1, Slots{{Class: "cpu", Slots: 1}, {Class: "gpu", Slots: 1}})
	c.Accounts = append(c.Accounts, Account{Name: "physics", Grant: 100 * messages.Credit, Members: []messages.Name{"alice", "carol"}})
	c.Markets = []market.Market{
		{Name: "main", Mechanism: market.Proportional, Classes: []messages.Name{"cpu"}, Deny: []messages.Name{"carol"}},
		{Name: "gpus", Mechanism: market.Proportional, Classes: []messages.Name{"gpu"}, Allow: []messages.Name{"physics", "bob"}, Deny: []messages.Name{"carol"}},
	}
	s := start(t, c)
	defer closeSite(t, s)
	for _, try := range []struct {
		account, project, market, class messages.Name
		runs                            messages.Name // the market that takes the job; "": none
		refusal                         string
	}{
		{"alice", "", "", "", "main", ""},
		{"alice", "", "gpus", "", "", "market: market gpus takes no jobs of alice; markets that take jobs of alice: main"},
		{"alice", "", "", "gpu", "", `stages[0].class: market main has no class "gpu"; its classes are cpu; market gpus has what the job needs, but takes no jobs of alice`},
		{"alice", "physics", "gpus", "", "gpus", ""},
		{"alice", "physics", "", "gpu", "gpus", ""},
		{"bob", "", "", "gpu", "gpus", ""},
		{"bob", "physics", "gpus", "", "", `"bob" is not a member of account "physics"`},
		{"carol", "physics", "gpus", "", "", "market: market gpus takes no jobs of carol for project physics; ask an operator for a market that takes such jobs"},
		{"carol", "", "", "", "", "market: market main takes no jobs of carol; ask an operator for a market that takes such jobs"},
	} {
		u := connect(t, s, try.account)
		key := strings.Join([]string{"k", try.project, try.market, try.class}, "-")
		got, err := bus.Call[jobmsg.SubmitReply](within(t), u.bus, messages.Subject(u.site, messages.Auctioneer, messages.VerbSubmit, u.name),
			jobmsg.SubmitRequest{Key: key, Spec: jobmsg.JobSpec{Project: try.project, Market: try.market, Budget: messages.Credit, Stages: []jobmsg.Stage{{Name: "main", Class: try.class, Script: "exit 0"}}}})
		if try.runs == "" {
			if messages.KindOf(err) != messages.PermissionDenied || !strings.Contains(messages.Detail(err), try.refusal) {
				t.Errorf("%+v: %v", try, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%+v: %v", try, err)
			continue
		}
		if job := u.final(got.Job); job.State != jobmsg.Completed || job.Market != try.runs {
			t.Errorf("%+v: %v in market %s", try, job.State, job.Market)
		}
	}
}

// TestSubmitFilter submits jobs at a site with a submit filter. The user must read what the filter changed or refused.
// If the filter's program fails, the site must refuse the job and say why.
func TestSubmitFilter(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	c.Replicas, c.SubmitFilter = 1, filepath.Join(t.TempDir(), "filter")
	program := func(script string) {
		t.Helper()
		if err := os.WriteFile(c.SubmitFilter+".new", []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(c.SubmitFilter+".new", c.SubmitFilter); err != nil {
			t.Fatal(err)
		}
	}
	program(`sed 's/"name":"slow"/"name":"fast"/'`)
	s, err := Start(within(t), c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	u := connect(t, s, "alice")
	submit := func(key string) (jobmsg.SubmitReply, error) {
		return bus.Call[jobmsg.SubmitReply](within(t), u.bus, messages.Subject(u.site, messages.Auctioneer, messages.VerbSubmit, u.name),
			jobmsg.SubmitRequest{Key: key, Spec: jobmsg.JobSpec{Name: "slow", Budget: messages.Credit, Stages: []jobmsg.Stage{{Name: "main", Class: c.Markets[0].Classes[0], Script: "exit 0"}}}})
	}
	first, err := submit("one")
	if err != nil || !slices.Contains(first.Warnings, "the site changed the job: name: slow → fast") {
		t.Fatalf("%v, %v", first.Warnings, err)
	}
	if job := u.final(first.Job); job.Name != "fast" || job.State != jobmsg.Completed {
		t.Errorf("the job %s is %v", job.Name, job.State)
	}
	program(`[ "$CANDOR_ACCOUNT" = alice ] && echo '{"refuse": "alice is away"}'`)
	if _, err := submit("two"); messages.KindOf(err) != messages.PermissionDenied || messages.Detail(err) != "the site's rules for jobs: alice is away" {
		t.Errorf("%v", err)
	}
	if again, err := submit("one"); err != nil || again.Job != first.Job {
		t.Errorf("a repeated request is answered %d, %v", again.Job, err)
	}
	broken := func(key, why string) {
		t.Helper()
		if _, err := submit(key); err == nil || !strings.Contains(err.Error(), "the site takes no jobs now: its filter "+c.SubmitFilter) || !strings.Contains(err.Error(), why) {
			t.Errorf("%v, want %s", err, why)
		}
	}
	runs := filepath.Join(t.TempDir(), "runs")
	program("echo run >> " + runs + "; sleep 60 & sleep 60")
	_, err = bus.Call[jobmsg.SubmitReply](context.Background(), u.bus, messages.Subject(u.site, messages.Auctioneer, messages.VerbSubmit, u.name), // one request, as a command sends it
		jobmsg.SubmitRequest{Key: "hangs", Spec: jobmsg.JobSpec{Budget: messages.Credit, Stages: []jobmsg.Stage{{Name: "main", Class: c.Markets[0].Classes[0], Script: "exit 0"}}}})
	if messages.KindOf(err) != messages.Internal || !strings.Contains(messages.Detail(err), "did not end within 5") {
		t.Errorf("a program that hangs: %v", err)
	}
	if text, err := os.ReadFile(runs); string(text) != "run\n" {
		t.Errorf("the program that hangs ran %d times, %v", strings.Count(string(text), "run"), err)
	}
	program("kill -SEGV $$")
	broken("crashes", "segmentation fault")
	program("head -c 2000 /dev/urandom")
	broken("garbage", "not a JSON object")
	if err := os.Remove(c.SubmitFilter); err != nil {
		t.Fatal(err)
	}
	broken("absent", "does not exist")
	closeSite(t, s)
}
