package client

import (
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
)

// A test's now is an hour after noon.
func TestInstants(t *testing.T) {
	a := &app{now: func() time.Time { return noon.Add(time.Hour) }, zone: time.FixedZone("east", 3600)}
	for text, want := range map[string]messages.Time{
		"":                     0,
		"now":                  at(3600),
		"today":                at(-13 * 3600),
		"yesterday":            at(-37 * 3600),
		"24h":                  at(3600 - 86400),
		"24h ago":              at(3600 - 86400),
		"90 minutes ago":       at(3600 - 5400),
		"7d":                   at(3600 - 7*86400),
		"2 weeks ago":          at(3600 - 14*86400),
		"2026-03-01":           at(-13 * 3600),
		"2026-03-01 12:00":     at(-3600),
		"2026-03-01T12:00:00Z": at(0),
	} {
		if got, err := a.instant("--from", text); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"then", "-3h", "7", "7 fortnights", "99999999999999d", "2026-13-01"} {
		if got, err := a.instant("--from", text); exitCode(err) != codeUsage || !strings.Contains(err.Error(), "--from") {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]messages.Time{"": 0, "90d": at(3600 + 90*86400), "in 2h": at(3 * 3600), "2026-03-02": at(11 * 3600)} {
		if got, err := a.future("--expires", text); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"2026-03-01", "never", "24h ago"} {
		if _, err := a.future("--expires", text); exitCode(err) != codeUsage {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// fullAccount has something of everything that an account can have.
func fullAccount() messages.AccountReply {
	r := someAccount()
	r.Project, r.Title, r.Credit, r.Holds = true, "Climate models", 20*credit, 3
	r.Frozen, r.Why = "operator", "audit"
	r.Members = []messages.Name{"alice", "bob"}
	r.Roles = []messages.Membership{
		{Member: "alice", Role: messages.RoleOwner, Spent: 6 * credit, Held: 2 * credit},
		{Member: "bob", Limit: 12 * credit, Spent: 2 * credit, Held: 10_500_000},
		{Member: "carol", Role: messages.RoleAuditor},
	}
	r.Expiring = []messages.Expiring{
		{Grant: "$grant/operator/spring", Expires: at(86400), Free: 10 * credit, Held: 2 * credit},
		{Grant: "$grant/operator/summer", Expires: at(90 * 86400), Free: 30 * credit},
	}
	return r
}

func TestAccountViews(t *testing.T) {
	for name, view := range map[string]func(*page){
		"account_full": func(p *page) { p.account(fullAccount()) },
		"projects": func(p *page) {
			p.projects(messages.AccountsReply{Accounts: []messages.AccountReply{fullAccount(), {Account: "sea", Title: "The sea"}}})
		},
		"projects_none": func(p *page) { p.projects(messages.AccountsReply{}) },
		"prediction": func(p *page) {
			p.prediction(predictFor(fullAccount(), messages.SubmitReply{Market: "main", Payer: "climate", Held: 15 * credit}, "bob"))
		},
	} {
		p := &page{now: at(3600), zone: time.UTC, columns: 80}
		view(p)
		golden(t, name+".txt", p.String())
	}
}

// TestPredict asks for the account that the site says will pay.
func TestPredict(t *testing.T) {
	s := newSite(t)
	answer(s, messages.Auctioneer, messages.VerbSubmit, func(r messages.SubmitRequest) (messages.SubmitReply, error) {
		if !r.DryRun || r.Spec.Project != "climate" {
			t.Errorf("%+v", r)
		}
		return messages.SubmitReply{Market: "main", Payer: "climate", Held: r.Spec.Budget}, nil
	})
	answer(s, messages.Bank, messages.VerbAccount, func(r messages.AccountRequest) (messages.AccountReply, error) {
		a := fullAccount()
		a.Frozen = ""
		if r.Account != "climate" {
			t.Errorf("asked for %q", r.Account)
		}
		return a, nil
	})
	s.write("job.yaml", "command: [sort]\nbudget: 15\nproject: climate\n")
	s.run("account", "predict", s.path("job.yaml")).expect(t, codeOK, "77 to 92", "")
	s.run("account", "predict", s.path("job.yaml"), "--json").expect(t, codeOK, `"least":77,"most":92,"limited":false`, "")
	s.run("account", "predict", s.path("job.yaml"), "--account", "bob").expect(t, codeCredits, "It would be refused now: the limit of \"bob\"", "")
	s.run("account", "predict", s.path("job.yaml"), "--account", "carol").expect(t, codeDenied, "It would be refused now", "")
	s.in = "echo hi\n"
	s.run("account", "predict").expect(t, codeUsage, "", "budget: missing")
}

// TestProjectRequests: what the commands ask the bank for.
func TestProjectRequests(t *testing.T) {
	s := newSite(t)
	var member messages.MemberRequest
	answer(s, messages.Bank, messages.VerbMember, func(r messages.MemberRequest) (messages.AccountReply, error) { member = r; return someAccount(), nil })
	var pay messages.PayRequest
	answer(s, messages.Bank, messages.VerbPay, func(r messages.PayRequest) (messages.AccountReply, error) { pay = r; return someAccount(), nil })
	var grant messages.GrantRequest
	answer(s, messages.Bank, messages.VerbGrant, func(r messages.GrantRequest) (messages.AccountReply, error) { grant = r; return someAccount(), nil })
	run := func(line string) { t.Helper(); s.run(strings.Fields(line)...).expect(t, codeOK, "", "") }

	run("project member add climate bob --role auditor --limit 5")
	if *member.Role != messages.RoleAuditor || *member.Limit != 5*credit || member.Account != "climate" || member.Member != "bob" {
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
	if *member.Role != messages.RoleOwner || member.Limit != nil {
		t.Errorf("%+v", member)
	}
	run("project member remove climate bob")
	if !member.Remove {
		t.Errorf("%+v", member)
	}
	run("transfer bob 5 --from climate --key k --reason thanks")
	if want := (messages.PayRequest{Key: "k", From: "climate", To: "bob", Amount: 5 * credit, Reason: "thanks"}); pay != want {
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
		"project":                                "say what to do: create, show, list, member, limit or role",
		"project creat climate":                  `unknown command "creat": did you mean create?`,
		"withdraw climate 5":                     `required flag(s) "reason" not set`,
		"correct x":                              `required flag(s) "reason" not set`,
		"grant climate 5 --expires 2020-01-01":   "has passed",
		"transfer bob much":                      `amount "much"`,
		"account credit climate -- -5 --reason=": "Usage: candor account credit",
	} {
		s.run(strings.Fields(line)...).expect(t, codeUsage, "", want)
	}
}

// An outcome that is not known says how to repeat the request.
func TestUnknownOutcomes(t *testing.T) {
	for verb, line := range map[string]string{
		messages.VerbGrant:    "grant bob 5 --key mine",
		messages.VerbPay:      "transfer bob 5 --key mine",
		messages.VerbWithdraw: "withdraw bob 5 --reason r --key mine",
	} {
		s := newSite(t)
		refuse[messages.Empty](s, messages.Bank, verb, messages.Errorf(messages.Internal, "x"))
		s.run(append(strings.Fields(line), "--timeout", "1ms", "--server", "nats://nobody:1", "--site", "east", "--account", "alice")...).
			expect(t, codeUnavailable, "", "repeat with --key mine, which cannot ")
	}
}
