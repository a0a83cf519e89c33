package accounts_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/accounts"
	"github.com/candor-grid/candor/cmd/candor/internal/client/submit"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/money"
)

func newSite(t *testing.T) *clienttest.Site { return clienttest.New(t, commands) }

func commands(a *cli.App) []*cobra.Command { return accounts.Commands(a, submit.PredictCommand) }

func fullAccount() money.AccountReply {
	r := clienttest.Account()
	r.Project, r.Title, r.Credit, r.Holds = true, "Climate models", 20*messages.Credit, 3
	r.Frozen, r.Why = "operator", "audit"
	r.Members = []messages.Name{"alice", "bob"}
	r.Roles = []money.Membership{
		{Member: "alice", Role: money.RoleOwner, Spent: 6 * messages.Credit, Held: 2 * messages.Credit},
		{Member: "bob", Limit: 12 * messages.Credit, Spent: 2 * messages.Credit, Held: 10_500_000},
		{Member: "carol", Role: money.RoleAuditor},
	}
	r.Expiring = []money.Expiring{
		{Grant: "$grant/operator/spring", Expires: clienttest.At(86400), Free: 10 * messages.Credit, Held: 2 * messages.Credit},
		{Grant: "$grant/operator/summer", Expires: clienttest.At(90 * 86400), Free: 30 * messages.Credit},
	}
	return r
}

func TestAccountViews(t *testing.T) {
	predicted := func(s *clienttest.Site) {
		s.Write("job.yaml", "command: [sort]\nbudget: 15\nproject: climate\n")
		clienttest.Gives[job.SubmitRequest](messages.Auctioneer, messages.VerbSubmit, job.SubmitReply{Market: "main", Payer: "climate", Held: 15 * messages.Credit})(s)
		clienttest.Gives[money.AccountRequest](messages.Bank, messages.VerbAccount, fullAccount())(s)
	}
	projects := money.AccountsReply{Accounts: []money.AccountReply{fullAccount(), {Account: "sea", Title: "The sea"}}}
	two := money.AccountsReply{Accounts: []money.AccountReply{clienttest.Account(), {Account: "alice"}}}
	statement := func(s *clienttest.Site) {
		clienttest.Gives[money.StatementRequest](messages.Bank, messages.VerbStatement, clienttest.Statement())(s)
		clienttest.Gives[job.JobsRequest](messages.Auctioneer, messages.VerbJobs, job.JobsReply{Jobs: []job.JobSummary{clienttest.Job().JobSummary}})(s)
		clienttest.Gives[messages.Empty](messages.Auctioneer, messages.VerbMarkets, clienttest.Markets())(s)
	}
	clienttest.CheckViews(t, newSite, map[string]clienttest.View{
		"account":         {Line: "account", Serve: clienttest.Gives[money.AccountRequest](messages.Bank, messages.VerbAccount, clienttest.Account())},
		"accounts":        {Line: "account --all", Serve: clienttest.Gives[money.AccountsRequest](messages.Bank, messages.VerbAccounts, two)},
		"statement":       {Line: "statement --limit 3", Serve: statement},
		"statement_empty": {Line: "statement", Serve: clienttest.Gives[money.StatementRequest](messages.Bank, messages.VerbStatement, money.StatementReply{Account: "carol", Opening: messages.Credit})},
		"account_full":    {Line: "account climate", Serve: clienttest.Gives[money.AccountRequest](messages.Bank, messages.VerbAccount, fullAccount())},
		"projects":        {Line: "project list", Serve: clienttest.Gives[money.AccountsRequest](messages.Bank, messages.VerbAccounts, projects)},
		"projects_none":   {Line: "project list", Serve: clienttest.Gives[money.AccountsRequest](messages.Bank, messages.VerbAccounts, money.AccountsReply{})},
		"prediction":      {Line: "account predict $DIR/job.yaml --account bob", Serve: predicted},
	})
}

// The command predict must show the account's balance after the job. The dry run must say which account pays.
func TestPredict(t *testing.T) {
	s := clienttest.New(t, commands, submit.Commands)
	clienttest.Answer(s, messages.Auctioneer, messages.VerbSubmit, func(r job.SubmitRequest) (job.SubmitReply, error) {
		if !r.DryRun || r.Spec.Project != "climate" {
			t.Errorf("%+v", r)
		}
		return job.SubmitReply{Market: "main", Payer: "climate", Held: cmp.Or(r.Spec.Budget, 7*messages.Credit), Buys: "what it buys"}, nil
	})
	clienttest.Answer(s, messages.Bank, messages.VerbAccount, func(r money.AccountRequest) (money.AccountReply, error) {
		a := fullAccount()
		a.Frozen = ""
		if r.Account != "climate" {
			t.Errorf("asked for %q", r.Account)
		}
		return a, nil
	})
	s.Write("job.yaml", "command: [sort]\nbudget: 15\nproject: climate\n")
	s.Run("account", "predict", s.Path("job.yaml")).Expect(t, cli.CodeOK, "77 to 92", "")
	s.Run("submit", "--dry-run", s.Path("job.yaml")).Expect(t, cli.CodeOK, "15 credits held from climate\n  what it buys\n", "")
	s.Run("account", "predict", s.Path("job.yaml"), "--json").Expect(t, cli.CodeOK, `"least":77,"most":92,"limited":false`, "")
	s.Run("account", "predict", s.Path("job.yaml"), "--account", "bob").Expect(t, cli.CodeCredits, "The site would refuse the job now: the limit of \"bob\"", "")
	s.Run("account", "predict", s.Path("job.yaml"), "--account", "carol").Expect(t, cli.CodeDenied, "The site would refuse the job now", "")
	s.In = "#CANDOR --project climate\necho hi\n" // the market says how much the job may cost
	s.Run("account", "predict").Expect(t, cli.CodeOK, "may cost up to 7 credits", "")
}

func TestProjectRequests(t *testing.T) {
	s := newSite(t)
	clienttest.Answer(s, messages.Bank, messages.VerbAccount, func(money.AccountRequest) (money.AccountReply, error) { return clienttest.Account(), nil })
	var member money.MemberRequest
	clienttest.Answer(s, messages.Bank, messages.VerbMember, func(r money.MemberRequest) (money.AccountReply, error) { member = r; return clienttest.Account(), nil })
	var pay money.PayRequest
	clienttest.Answer(s, messages.Bank, money.VerbPay, func(r money.PayRequest) (money.AccountReply, error) { pay = r; return clienttest.Account(), nil })
	var grant money.GrantRequest
	clienttest.Answer(s, messages.Bank, messages.VerbGrant, func(r money.GrantRequest) (money.AccountReply, error) { grant = r; return clienttest.Account(), nil })
	run := func(line string) { t.Helper(); s.Run(strings.Fields(line)...).Expect(t, cli.CodeOK, "", "") }

	run("project member add climate bob --role auditor --limit 5")
	if *member.Role != money.RoleAuditor || *member.Limit != 5*messages.Credit || member.Account != "climate" || member.Member != "bob" {
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
	if want := (money.PayRequest{Key: "k", From: "climate", To: "bob", Amount: 5 * messages.Credit, Reason: "thanks"}); pay != want {
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
		s.Run(strings.Fields(line)...).Expect(t, cli.CodeUsage, "", want)
	}
}

func TestUnknownOutcomes(t *testing.T) {
	for verb, line := range map[string]string{
		messages.VerbGrant: "grant bob 5 --key mine",
		money.VerbPay:      "transfer bob 5 --key mine",
		money.VerbWithdraw: "withdraw bob 5 --reason r --key mine",
	} {
		s := newSite(t)
		clienttest.Refuse[messages.Empty](s, messages.Bank, verb, messages.Errorf(messages.Internal, "x"))
		s.Run(append(strings.Fields(line), "--timeout", "1ms", "--server", "nats://nobody:1", "--site", "east", "--account", "alice")...).
			Expect(t, cli.CodeUnavailable, "", "repeat the command with --key mine, which cannot ")
	}
}

// The user repeats the key of an earlier grant with another amount. The error must name the command's option --key.
func TestAKeyOfAnotherGrant(t *testing.T) {
	s := newSite(t)
	clienttest.Refuse[money.GrantRequest](s, messages.Bank, messages.VerbGrant, messages.Errorf(messages.Conflict, "transfer was answered before"))
	r := s.Run("grant", "bob", "5", "--yes", "--key", "mine")
	if r.Code == cli.CodeOK || !strings.Contains(r.Err, "--key mine belongs to an earlier request with other values") {
		t.Errorf("%+v", r)
	}
}

// A grant to an account that does not exist may be due to a misspelt name. If there is no terminal on which the user
// can be asked, the command must refuse the grant, and say that the option --yes opens the account.
func TestGrantToAnUnknownAccount(t *testing.T) {
	s := newSite(t)
	clienttest.Refuse[money.AccountRequest](s, messages.Bank, messages.VerbAccount, messages.Errorf(messages.NotFound, "no account"))
	granted := 0
	clienttest.Answer(s, messages.Bank, messages.VerbGrant, func(r money.GrantRequest) (money.AccountReply, error) {
		granted++
		return money.AccountReply{Account: r.Account, Available: r.Amount}, nil
	})
	s.Run("grant", "clmate", "5").Expect(t, cli.CodeUsage, "", "there is no account clmate yet: check the name, or open it with --yes")
	if granted != 0 {
		t.Error("it was granted nevertheless")
	}
	s.Run("grant", "climate", "5", "--yes").Expect(t, cli.CodeOK, "Granted 5 credits to climate", "")
}

// No command acts as the operator unless the user names the operator. Owners use their own account.
func TestOperatorsAreNamed(t *testing.T) {
	s := newSite(t)
	s.Write("state/creds/operator.creds", "")
	clienttest.Gives[money.AccountRequest](messages.Bank, messages.VerbAccount, clienttest.Account())(s)
	clienttest.Gives[money.GrantRequest](messages.Bank, messages.VerbGrant, clienttest.Account())(s)
	clienttest.Gives[money.MemberRequest](messages.Bank, messages.VerbMember, clienttest.Account())(s)
	s.RunIn(t.Context(), "grant", "climate", "5").Expect(t, cli.CodeUsage, "", clienttest.ForOperators)
	if got := s.Run("--account", "operator", "grant", "climate", "5"); got.Err != "" || s.Last.Account != "operator" {
		t.Errorf("%q as %s", got.Err, s.Last.Account)
	}
	if got := s.Run("project", "member", "add", "climate", "bob"); got.Err != "" || s.Last.Account != "alice" {
		t.Errorf("%q as %s", got.Err, s.Last.Account)
	}
}

// A project may have an owner without an account. The command must say that the name may be wrong.
func TestOwnerWithoutAnAccountIsNamed(t *testing.T) {
	s := newSite(t)
	clienttest.Answer(s, messages.Bank, money.VerbProject, func(money.ProjectRequest) (money.AccountReply, error) { return fullAccount(), nil })
	clienttest.Answer(s, messages.Bank, messages.VerbAccount, func(r money.AccountRequest) (money.AccountReply, error) {
		if r.Account != "alice" {
			return money.AccountReply{}, messages.Errorf(messages.NotFound, "there is no account %q", r.Account)
		}
		return clienttest.Account(), nil
	})
	s.Run("--account", "operator", "project", "create", "climate", "--owner", "alice", "--owner", "alcie").
		Expect(t, 0, "Account climate", "candor project create: owner alcie has no account of credits; if the name is wrong, remove the owner with candor project member remove climate alcie")
}

// The account for the settled debts of a peer has no credits to spend: its balance is what this site owes. The commands
// must describe it as a debt.
func TestClearingAccountsSayWhoOwes(t *testing.T) {
	for balance, want := range map[messages.Credits]string{
		3 * messages.Credit:  "Withdrew 5 credits from clearing--west; this site still owes 3 credits on clearing--west\n",
		0:                    "Withdrew 5 credits from clearing--west; nothing is owed on clearing--west now\n",
		-3 * messages.Credit: "Withdrew 5 credits from clearing--west; this site is still owed 3 credits on clearing--west\n",
	} {
		s := newSite(t)
		clienttest.Gives[money.WithdrawRequest](messages.Bank, money.VerbWithdraw, money.AccountReply{Account: "clearing--west", Balance: balance, Available: balance})(s)
		s.Run("withdraw", "clearing--west", "5", "--reason", "paid", "--account", "operator").Expect(t, cli.CodeOK, want, "")
	}
}
