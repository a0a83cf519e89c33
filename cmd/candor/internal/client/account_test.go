package client

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/money"
)

// fullAccount returns an account in which every field is set.
func fullAccount() money.AccountReply {
	r := someAccount()
	r.Project, r.Title, r.Credit, r.Holds = true, "Climate models", 20*credit, 3
	r.Frozen, r.Why = "operator", "audit"
	r.Members = []messages.Name{"alice", "bob"}
	r.Roles = []money.Membership{
		{Member: "alice", Role: money.RoleOwner, Spent: 6 * credit, Held: 2 * credit},
		{Member: "bob", Limit: 12 * credit, Spent: 2 * credit, Held: 10_500_000},
		{Member: "carol", Role: money.RoleAuditor},
	}
	r.Expiring = []money.Expiring{
		{Grant: "$grant/operator/spring", Expires: at(86400), Free: 10 * credit, Held: 2 * credit},
		{Grant: "$grant/operator/summer", Expires: at(90 * 86400), Free: 30 * credit},
	}
	return r
}

func TestAccountViews(t *testing.T) {
	predicted := func(s *fakeSite) {
		s.write("job.yaml", "command: [sort]\nbudget: 15\nproject: climate\n")
		gives[job.SubmitRequest](messages.Auctioneer, messages.VerbSubmit, job.SubmitReply{Market: "main", Payer: "climate", Held: 15 * credit})(s)
		gives[money.AccountRequest](messages.Bank, messages.VerbAccount, fullAccount())(s)
	}
	projects := money.AccountsReply{Accounts: []money.AccountReply{fullAccount(), {Account: "sea", Title: "The sea"}}}
	checkViews(t, map[string]view{
		"account_full":  {"account climate", gives[money.AccountRequest](messages.Bank, messages.VerbAccount, fullAccount())},
		"projects":      {"project list", gives[money.AccountsRequest](messages.Bank, messages.VerbAccounts, projects)},
		"projects_none": {"project list", gives[money.AccountsRequest](messages.Bank, messages.VerbAccounts, money.AccountsReply{})},
		"prediction":    {"account predict $DIR/job.yaml --account bob", predicted},
	})
}

// TestPredict checks that predict asks the bank about the account that pays for the job, and shows what the job would
// leave there. The auctioneer's answer to a dry run names this account.
func TestPredict(t *testing.T) {
	s := newSite(t)
	answer(s, messages.Auctioneer, messages.VerbSubmit, func(r job.SubmitRequest) (job.SubmitReply, error) {
		if !r.DryRun || r.Spec.Project != "climate" {
			t.Errorf("%+v", r)
		}
		return job.SubmitReply{Market: "main", Payer: "climate", Held: cmp.Or(r.Spec.Budget, 7*messages.Credit), Buys: "what it buys"}, nil
	})
	answer(s, messages.Bank, messages.VerbAccount, func(r money.AccountRequest) (money.AccountReply, error) {
		a := fullAccount()
		a.Frozen = ""
		if r.Account != "climate" {
			t.Errorf("asked for %q", r.Account)
		}
		return a, nil
	})
	s.write("job.yaml", "command: [sort]\nbudget: 15\nproject: climate\n")
	s.run("account", "predict", s.path("job.yaml")).expect(t, cli.CodeOK, "77 to 92", "")
	s.run("submit", "--dry-run", s.path("job.yaml")).expect(t, cli.CodeOK, "15 credits held from climate\n  what it buys\n", "")
	s.run("account", "predict", s.path("job.yaml"), "--json").expect(t, cli.CodeOK, `"least":77,"most":92,"limited":false`, "")
	s.run("account", "predict", s.path("job.yaml"), "--account", "bob").expect(t, cli.CodeCredits, "The site would refuse the job now: the limit of \"bob\"", "")
	s.run("account", "predict", s.path("job.yaml"), "--account", "carol").expect(t, cli.CodeDenied, "The site would refuse the job now", "")
	s.in = "#CANDOR --project climate\necho hi\n" // the market says how much the job may cost
	s.run("account", "predict").expect(t, cli.CodeOK, "may cost up to 7 credits", "")
}

// TestProjectRequests checks the requests that the commands about projects send to the bank.
func TestProjectRequests(t *testing.T) {
	s := newSite(t)
	answer(s, messages.Bank, messages.VerbAccount, func(money.AccountRequest) (money.AccountReply, error) { return someAccount(), nil })
	var member money.MemberRequest
	answer(s, messages.Bank, messages.VerbMember, func(r money.MemberRequest) (money.AccountReply, error) { member = r; return someAccount(), nil })
	var pay money.PayRequest
	answer(s, messages.Bank, money.VerbPay, func(r money.PayRequest) (money.AccountReply, error) { pay = r; return someAccount(), nil })
	var grant money.GrantRequest
	answer(s, messages.Bank, messages.VerbGrant, func(r money.GrantRequest) (money.AccountReply, error) { grant = r; return someAccount(), nil })
	run := func(line string) { t.Helper(); s.run(strings.Fields(line)...).expect(t, cli.CodeOK, "", "") }

	run("project member add climate bob --role auditor --limit 5")
	if *member.Role != money.RoleAuditor || *member.Limit != 5*credit || member.Account != "climate" || member.Member != "bob" {
		t.Errorf("%+v", member)
	}
	run("project member add climate bob")
	if member.Role != nil || member.Limit != nil || member.Remove {
		t.Errorf("%+v", member)
	}
	run("project limit climate bob none")
	if member.Role != nil || *member.Limit != 0 {
		t.Errorf("%+v", member)
	}
	run("project role climate bob owner")
	if *member.Role != money.RoleOwner || member.Limit != nil {
		t.Errorf("%+v", member)
	}
	run("project member remove climate bob")
	if !member.Remove {
		t.Errorf("%+v", member)
	}
	run("transfer bob 5 --from climate --key k --reason thanks")
	if want := (money.PayRequest{Key: "k", From: "climate", To: "bob", Amount: 5 * credit, Reason: "thanks"}); pay != want {
		t.Errorf("%+v", pay)
	}
	run("grant climate 5 --key k --expires 2026-04-01")
	if grant.Expires != messages.TimeOf(time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v", grant)
	}
	for line, want := range map[string]string{
		"project role climate bob self":          `role "self": use member, owner or auditor`,
		"project limit climate bob 0":            "give an amount above 0, or none",
		"project limit climate bob x":            `amount "x"`,
		"project limit climate bob":              "Usage: candor project limit",
		"project":                                "say what to do: create, limit, list, member, role or show",
		"project creat climate":                  `unknown command "creat": did you mean create?`,
		"withdraw climate 5":                     `missing: --reason`,
		"correct x":                              `missing: --reason`,
		"grant climate 5 --expires 2020-01-01":   "is in the past",
		"transfer bob much":                      `amount "much"`,
		"account credit climate -- -5 --reason=": "Usage: candor account credit",
	} {
		s.run(strings.Fields(line)...).expect(t, cli.CodeUsage, "", want)
	}
}

// TestUnknownOutcomes checks that an error about an unknown outcome says how to repeat the request.
func TestUnknownOutcomes(t *testing.T) {
	for verb, line := range map[string]string{
		messages.VerbGrant: "grant bob 5 --key mine",
		money.VerbPay:      "transfer bob 5 --key mine",
		money.VerbWithdraw: "withdraw bob 5 --reason r --key mine",
	} {
		s := newSite(t)
		refuse[messages.Empty](s, messages.Bank, verb, messages.Errorf(messages.Internal, "x"))
		s.run(append(strings.Fields(line), "--timeout", "1ms", "--server", "nats://nobody:1", "--site", "east", "--account", "alice")...).
			expect(t, cli.CodeUnavailable, "", "repeat the command with --key mine, which cannot ")
	}
}

// TestGrantToAnUnknownAccount grants credits to a name that the bank does not know. The name may be misspelt, so
// without a terminal the command must ask for --yes.
func TestGrantToAnUnknownAccount(t *testing.T) {
	s := newSite(t)
	refuse[money.AccountRequest](s, messages.Bank, messages.VerbAccount, messages.Errorf(messages.NotFound, "no account"))
	granted := 0
	answer(s, messages.Bank, messages.VerbGrant, func(r money.GrantRequest) (money.AccountReply, error) {
		granted++
		return money.AccountReply{Account: r.Account, Available: r.Amount}, nil
	})
	s.run("grant", "clmate", "5").expect(t, cli.CodeUsage, "", "there is no account clmate yet: check the name, or open it with --yes")
	if granted != 0 {
		t.Error("it was granted nevertheless")
	}
	s.run("grant", "climate", "5", "--yes").expect(t, cli.CodeOK, "Granted 5 credits to climate", "")
}

// TestOperatorsAreNamed checks that no command acts as the operator unless the user names the operator. A command for
// owners uses the user's own account.
func TestOperatorsAreNamed(t *testing.T) {
	s := newSite(t)
	s.write("state/creds/operator.creds", "")
	gives[money.AccountRequest](messages.Bank, messages.VerbAccount, someAccount())(s)
	gives[money.GrantRequest](messages.Bank, messages.VerbGrant, someAccount())(s)
	gives[money.MemberRequest](messages.Bank, messages.VerbMember, someAccount())(s)
	s.runIn(t.Context(), "grant", "climate", "5").expect(t, cli.CodeUsage, "", forOperators)
	if got := s.run("--account", "operator", "grant", "climate", "5"); got.err != "" || s.last.Account != "operator" {
		t.Errorf("%q as %s", got.err, s.last.Account)
	}
	if got := s.run("project", "member", "add", "climate", "bob"); got.err != "" || s.last.Account != "alice" {
		t.Errorf("%q as %s", got.err, s.last.Account)
	}
}

// TestOwnerWithoutAnAccountIsNamed creates a project with an owner that has no account. This is allowed, but the
// command must say that the name may be wrong.
func TestOwnerWithoutAnAccountIsNamed(t *testing.T) {
	s := newSite(t)
	answer(s, messages.Bank, money.VerbProject, func(money.ProjectRequest) (money.AccountReply, error) { return fullAccount(), nil })
	answer(s, messages.Bank, messages.VerbAccount, func(r money.AccountRequest) (money.AccountReply, error) {
		if r.Account != "alice" {
			return money.AccountReply{}, messages.Errorf(messages.NotFound, "there is no account %q", r.Account)
		}
		return someAccount(), nil
	})
	s.run("--account", "operator", "project", "create", "climate", "--owner", "alice", "--owner", "alcie").
		expect(t, 0, "Account climate", "candor project create: owner alcie has no account of credits; if the name is wrong, remove the owner with candor project member remove climate alcie")
}
