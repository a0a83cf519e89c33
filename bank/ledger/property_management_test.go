package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// manage carries out a command about one account, and compares the ledger's answer with the model's.
func (p *pair) manage(t *rapid.T, g gen, cmd Command, model func() (messages.Kind, bool)) {
	what := fmt.Sprintf("command %d of %s", cmd.Verb, cmd.By)
	result := p.apply(g, cmd)
	kind, ok := model()
	p.model.sweepAll()
	sameRefusal(t, what, result.Error, kind, ok)
}

// caller draws who makes a request: an operator, or a user with any name.
func (g gen) caller() (messages.Name, Rank) {
	if g.odds(2) {
		return "ops", Operator
	}
	name := g.name()
	for name == "" || mayBe(name, Service) {
		name = g.name()
	}
	return name, User
}

// begin grants credits to the accounts. Some of these credits expire. It gives the project two members: one with a
// limit, and one without a limit.
func (p *pair) begin(t *rapid.T) {
	g := newGen(t)
	for i, name := range []messages.Name{"ada", "bob", "lab", "lab"} {
		r := money.GrantRequest{Key: "begin" + strconv.Itoa(i), Account: name, Amount: 60, Expires: messages.Time(i%2) * (20 + g.when()&63)}
		p.manage(t, g, Command{Verb: Grant, By: "ops", Grant: r}, func() (messages.Kind, bool) { return p.model.grant("ops", r) })
	}
	for i, name := range []messages.Name{"ada", "bob"} {
		limit := messages.Credits(25 * i)
		m := money.MemberRequest{Account: "lab", Member: name, Limit: &limit}
		p.manage(t, g, Command{Verb: Member, By: "ops", Member: m}, func() (messages.Kind, bool) { return p.model.member("ops", Operator, m) })
	}
}

func (p *pair) project(t *rapid.T) {
	g := newGen(t)
	r := money.ProjectRequest{Account: []messages.Name{"lab", "sea", "ada", "Bad"}[g.IntN(4)], Title: strconv.Itoa(g.IntN(2)), Owners: []messages.Name{"ada", "bob"}[:g.IntN(3)]}
	p.manage(t, g, Command{Verb: Project, By: "ops", Project: r}, func() (messages.Kind, bool) { return p.model.makeProject(r) })
}

func (p *pair) freeze(t *rapid.T) {
	g := newGen(t)
	by, rank := g.caller()
	r := money.FreezeRequest{Account: g.name(), Frozen: g.odds(3)}
	p.manage(t, g, Command{Verb: Freeze, By: by, Rank: rank, Freeze: r}, func() (messages.Kind, bool) { return p.model.freeze(by, rank, r) })
}

func (p *pair) credit(t *rapid.T) {
	g := newGen(t)
	r := money.CreditRequest{Account: g.name(), Credit: g.amount()}
	if g.odds(2) {
		r.Credit = 0
	}
	p.manage(t, g, Command{Verb: Credit, By: "ops", Credit: r}, func() (messages.Kind, bool) { return p.model.setCredit(r) })
}

func (p *pair) pay(t *rapid.T) {
	g := newGen(t)
	by, rank := g.caller()
	r := money.PayRequest{Key: strconv.Itoa(g.IntN(30)), From: g.name(), To: g.name(), Amount: g.amount()}
	if rank == User && g.odds(2) {
		r.From = by
	}
	p.manage(t, g, Command{Verb: Pay, By: by, Rank: rank, Pay: r}, func() (messages.Kind, bool) { return p.model.pay(by, rank, r) })
}

func (p *pair) withdraw(t *rapid.T) {
	g := newGen(t)
	r := money.WithdrawRequest{Key: strconv.Itoa(g.IntN(30)), Account: g.name(), Amount: g.amount(), Reason: "why"}
	p.manage(t, g, Command{Verb: Withdraw, By: "ops", Withdraw: r}, func() (messages.Kind, bool) { return p.model.withdraw("ops", r) })
}

func (p *pair) correct(t *rapid.T) {
	g := newGen(t)
	r := money.CorrectRequest{Transfer: g.id(), Reason: "why"}
	if ids := slices.Sorted(maps.Keys(p.model.answers)); len(ids) > 0 && !g.odds(10) {
		r.Transfer = ids[g.IntN(len(ids))]
	}
	if g.odds(2) {
		r.Amount = g.amount()
	}
	p.manage(t, g, Command{Verb: Correct, By: "ops", Correct: r}, func() (messages.Kind, bool) { return p.model.correct("ops", r, p.holds) })
}

// checkParts compares an account with the model: its settings, its members with their sums, and the unspent parts of
// its expiring grants.
func (p *pair) checkParts(t *rapid.T, a *money.AccountReply) {
	m := p.model
	title, project := m.project[a.Account]
	if a.Project != project || a.Title != title || (a.Frozen != "") != (m.frozen[a.Account] != thawed) || a.Credit != m.credit[a.Account] {
		t.Fatalf("%+v, and the model has title %q, frozen %v, credit %v", a, title, m.frozen[a.Account], m.credit[a.Account])
	}
	if !slices.Equal(a.Members, m.membersOf(a.Account)) {
		t.Fatalf("%+v, and the model has members %v", a, m.membersOf(a.Account))
	}
	for _, r := range a.Roles {
		if is := m.parts[modelPart{a.Account, r.Member}]; !is.in || is.role != r.Role || is.limit != r.Limit || is.spent.Int64() != int64(r.Spent) || m.heldBy(a.Account, r.Member).Int64() != int64(r.Held) {
			t.Fatalf("%s: member %+v, in the model %+v", a.Account, r, is)
		}
	}
	held := map[modelLot]messages.Credits{}
	for _, h := range m.pending {
		for lot, amount := range h.draws {
			held[lot] += amount
		}
	}
	var want []money.Expiring
	for _, lot := range m.sorted(a.Account) {
		if m.lots[lot]+held[lot] != 0 {
			want = append(want, money.Expiring{Grant: lot.grant, Expires: lot.expires, Free: m.lots[lot], Held: held[lot]})
		}
	}
	if !slices.Equal(a.Expiring, want) {
		t.Fatalf("%s: %+v expires, in the model %+v", a.Account, a.Expiring, want)
	}
}
