package client

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// TestAMemberWhoHasLeftSeesTheirOwnPast runs jobs of two members of a project on a real site. A member sees the
// project's account. Of the project's jobs, a member sees only his or her own jobs. A member who has left the project
// must still see these jobs and their use, but not the project's account.
func TestAMemberWhoHasLeftSeesTheirOwnPast(t *testing.T) {
	s := newSite(t)
	s.NATS = true
	c := embedded.Config{Site: "west", State: s.Path("state"), Listen: "127.0.0.1:0", Replicas: 1, Operators: []messages.Name{"operator"},
		Accounts: []embedded.Account{{Name: "alice", Grant: messages.Credit}, {Name: "bob", Grant: messages.Credit}},
		Markets:  []market.Market{{Name: "main", Mechanism: market.FIFO, Classes: []messages.Name{"cpu"}}},
		Nodes:    []embedded.Node{{Name: "node1", Slots: embedded.Slots{{Class: "cpu", Slots: 2}}}}}
	c.Tasks.User = runner.UserSelf
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	site, err := embedded.Start(ctx, c, embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = site.Close() })
	s.Write("state/site.json", fmt.Sprintf(`{"site":"west","server":%q,"default_account":"alice"}`, site.URL()))
	as := func(account, line string) string {
		t.Helper()
		s.Env["CANDOR_ACCOUNT"] = account
		r := s.Run(strings.Fields(line)...)
		if r.Code != cli.CodeOK {
			t.Fatalf("%s as %s: exit code %d\n%s%s", line, account, r.Code, r.Out, r.Err)
		}
		return r.Out
	}
	as("operator", "project create lab --owner bob")
	as("operator", "grant lab 10")
	as("bob", "project member add lab alice")
	for _, account := range []string{"alice", "bob"} {
		as(account, "submit --project lab --wait --timeout 60s -- true")
	}
	const usage = "usage --by project,user --from 2020-01-01 --to 2100-01-01 --csv"
	shows := func(when string) {
		t.Helper()
		if out := as("alice", usage); !strings.Contains(out, "\nlab,alice,1,1,") || strings.Contains(out, "bob") {
			t.Errorf("%s alice sees\n%s", when, out)
		}
	}
	shows("as a member")
	as("alice", "account lab")
	as("bob", "project member remove lab alice")
	shows("after leaving")
	if out := as("alice", "jobs --json"); !strings.Contains(out, `"payer":"lab"`) || strings.Contains(out, "bob") {
		t.Errorf("after leaving alice sees\n%s", out)
	}
	for _, line := range []string{"account lab", "statement lab"} {
		s.Env["CANDOR_ACCOUNT"] = "alice"
		if r := s.Run(strings.Fields(line)...); r.Code == cli.CodeOK {
			t.Errorf("after leaving, %s shows\n%s", line, r.Out)
		}
	}
	if out := as("operator", usage); !strings.Contains(out, "\nlab,alice,1,") || !strings.Contains(out, "\nlab,bob,1,") {
		t.Errorf("an operator sees\n%s", out)
	}
}
