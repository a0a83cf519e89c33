package ledger

import (
	"bytes"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// TestLedgerAgreesWithModel applies the same random commands to the ledger and to a model of the ledger. The commands
// often use the same few identifiers, holds and accounts. Amounts and times are often extreme.
func TestLedgerAgreesWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &pair{T: t, ledger: Open(someStore(t)), model: newModel(), holds: map[string]modelHold{}}
		p.begin(t)
		t.Repeat(map[string]func(*rapid.T){
			"":          p.check,
			"grant":     p.grant,
			"member":    p.member,
			"project":   p.project,
			"freeze":    p.freeze,
			"credit":    p.credit,
			"pay":       p.pay,
			"withdraw":  p.withdraw,
			"correct":   p.correct,
			"transfers": p.transfers,
			"charges":   p.charges,
			"more":      p.charges,
			"time":      p.time,
			"restart":   p.restart,
		})
		p.replay()
	})
}

// someStore returns a store in memory, or a store with small or large segments. The difference matters in a restore:
// only a ledger with segments takes its state from the image.
func someStore(t *rapid.T) Store {
	if bytes := rapid.SampledFrom([]int{0, 100, 3000}).Draw(t, "segment bytes"); bytes > 0 {
		return newKept(bytes)
	}
	return memory{}
}

type pair struct {
	*rapid.T
	ledger   *Ledger
	model    *model
	commands [][]byte
	holds    map[string]modelHold // all holds that were ever made
	last     string               // identifier of the last drawn transfer
}

// gen draws all values with equal probabilities; rapid prefers some values. But rapid still draws a seed for each
// command, so it can shorten the sequence of commands.
type gen struct{ *rand.Rand }

func newGen(t *rapid.T) gen {
	return gen{rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))}
}

func (g gen) odds(n int) bool { return g.IntN(n) == 0 }

func (g gen) name() messages.Name {
	if g.odds(20) {
		return []messages.Name{money.IssuerAccount, "nobody", "", "Not A Name"}[g.IntN(4)]
	}
	return []messages.Name{"ada", "bob", "lab", money.SiteAccount}[g.IntN(4)]
}

func (g gen) amount() messages.Credits {
	if g.odds(12) {
		return []messages.Credits{0, messages.MaxCredits, messages.MaxCredits + 1, -1, math.MaxInt64, math.MinInt64}[g.IntN(6)]
	}
	return messages.Credits(1 + g.IntN(20))
}

// id returns a new identifier in most cases, and otherwise one that is in use.
func (g gen) id() string {
	if g.odds(40) {
		return []string{"", "$grant/ops/1", "line\nbreak"}[g.IntN(3)]
	}
	return strconv.Itoa(g.IntN(300))
}

func (g gen) when() messages.Time {
	if g.odds(10) {
		return []messages.Time{-1, math.MaxInt64, math.MinInt64}[g.IntN(3)]
	}
	return messages.Time(g.IntN(150))
}

func (p *pair) apply(g gen, cmd Command) Result {
	cmd.At = p.model.now + messages.Time(g.IntN(12)-3)
	cmd.At = max(cmd.At, 0)
	data := cmd.Encode()
	p.commands = append(p.commands, data)
	p.model.advance(cmd.At)
	return p.ledger.Apply(data)
}

func (p *pair) charges(t *rapid.T) {
	g := newGen(t)
	hold := held(g.id(), "lab", messages.Credits(1+g.IntN(15)))
	hold.Member = []messages.Name{"ada", "bob", "lab"}[g.IntN(3)]
	batch := []money.Transfer{hold}
	for range g.IntN(4) {
		batch = append(batch, post(g.id(), p.pending(g), messages.Credits(g.IntN(12))))
	}
	p.send(t, g, batch)
}

func (p *pair) grant(t *rapid.T) {
	g := newGen(t)
	r := money.GrantRequest{Key: strconv.Itoa(g.IntN(30)), Account: g.name(), Amount: g.amount()}
	if g.odds(5) {
		r.Amount = messages.MaxCredits // the sum of ten such amounts is too large
	}
	if g.odds(2) {
		r.Expires = g.when()
	}
	result := p.apply(g, Command{Verb: Grant, By: "ops", Grant: r})
	kind, ok := p.model.grant("ops", r)
	if sameRefusal(t, "grant", result.Error, kind, ok); ok && result.Account.Account != r.Account {
		t.Fatalf("grant to %s answered with account %+v", r.Account, result.Account)
	}
}

func (p *pair) member(t *rapid.T) {
	g := newGen(t)
	by, rank := g.caller()
	m := money.MemberRequest{Account: g.name(), Member: g.name(), Remove: g.odds(3)}
	if role := money.Role(g.IntN(5)); !m.Remove && role < 4 || g.odds(20) {
		m.Role = &role
	}
	if limit := g.amount(); !m.Remove && g.odds(2) || g.odds(20) {
		m.Limit = &limit
	}
	p.manage(t, g, Command{Verb: Member, By: by, Rank: rank, Member: m}, func() (messages.Kind, bool) { return p.model.member(by, rank, m) })
}

func (p *pair) time(t *rapid.T) { p.apply(newGen(t), Command{Verb: Expire}) }

func (p *pair) transfers(t *rapid.T) {
	g := newGen(t)
	batch := make([]money.Transfer, g.IntN(10))
	for i := range batch {
		batch[i] = p.transfer(g)
	}
	p.send(t, g, batch)
}

func (p *pair) send(t *rapid.T, g gen, batch []money.Transfer) {
	by, rank := messages.Name("$auctioneer"), Service
	switch {
	case g.odds(2):
		by, rank = "ops", Operator
	case g.odds(8):
		by = "$other"
	}
	r := p.apply(g, Command{Verb: Transfers, By: by, Rank: rank, Transfers: batch})
	want := p.model.transfers(by, rank, batch)
	for _, t := range batch {
		if h, made := p.model.pending[t.ID]; made {
			p.holds[t.ID] = h
		} else if a := p.model.answers[t.ID]; a.asked.Kind == money.Hold && !a.failed {
			p.holds[t.ID] = modelHold{account: a.asked.Debit, payee: a.asked.Credit, member: a.asked.Member}
		}
	}
	if r.Error != nil || len(r.Transfers) != len(want) {
		t.Fatalf("batch of %d: %d results, error %v", len(batch), len(r.Transfers), r.Error)
	}
	for i, got := range r.Transfers {
		if got.Amount != want[i].amount {
			t.Fatalf("transfer %+v: amount %v, the model says %v", batch[i], got.Amount, want[i].amount)
		}
		sameRefusal(t, "transfer "+batch[i].ID, got.Error, want[i].kind, !want[i].failed)
	}
}

// transfer returns a random transfer, usually well formed. Sometimes it repeats a transfer that the ledger has already
// answered.
func (p *pair) transfer(g gen) money.Transfer {
	x := money.Transfer{ID: g.id(), Kind: money.TransferKind(g.IntN(5)), Amount: g.amount(), Linked: g.odds(3)}
	if before, known := p.model.answers[x.ID]; known && g.odds(2) {
		if before.asked.Kind == money.Hold && g.odds(2) {
			before.asked.Expires = g.when()
		}
		return before.asked
	}
	if g.odds(60) {
		x.Kind, x.Reason = money.Extend+1, "\x00"
	}
	odd := g.odds(30) // sets fields that only other kinds have
	if x.Kind == money.Posted || x.Kind == money.Hold || g.odds(8) || odd {
		x.Debit = g.name()
	}
	if x.Kind == money.Posted || (x.Kind == money.Post && !g.odds(3)) || (x.Kind == money.Hold && g.odds(4)) || odd {
		x.Credit = g.name()
	}
	if x.Kind == money.Hold || odd {
		x.Member = x.Debit
		if g.odds(4) {
			x.Member = g.name()
		}
	}
	if (x.Kind == money.Hold || x.Kind == money.Extend) && !g.odds(3) || odd {
		x.Expires = g.when()
	} else if x.Kind == money.Hold && g.odds(2) || x.Kind == money.Extend && g.odds(3) || g.odds(50) {
		x.Timeout = []messages.Duration{1000, 20_000, 100_000, math.MaxInt64, 999, -1}[g.IntN(6)]
	}
	if resolves(x.Kind) || odd {
		x.Pending = p.pending(g)
	}
	if (x.Kind == money.Void || x.Kind == money.Extend) && !g.odds(10) {
		x.Amount = 0
	}
	if resolves(x.Kind) && g.odds(3) {
		x.Job = messages.JobID(g.IntN(3))
	}
	p.last = x.ID
	return x
}

// pending returns the identifier of a pending hold in most cases, and otherwise any identifier.
func (p *pair) pending(g gen) string {
	if g.odds(5) {
		return p.last // perhaps a hold of the same chain
	}
	if ids := slices.Sorted(maps.Keys(p.model.pending)); len(ids) > 0 && !g.odds(4) {
		return ids[g.IntN(len(ids))]
	}
	return g.id()
}

func sameRefusal(t *rapid.T, what string, got *messages.Error, kind messages.Kind, ok bool) {
	switch {
	case ok && got != nil:
		t.Fatalf("%s: refused (%v), and the model did it", what, got)
	case !ok && got == nil:
		t.Fatalf("%s: done, and the model refused it as %v", what, kind)
	case !ok && got.Kind != kind:
		t.Fatalf("%s: refused as %v, and by the model as %v", what, got, kind)
	case !ok && got.Message == "":
		t.Fatalf("%s: refused without a word", what)
	}
}

func (p *pair) check(t *rapid.T) {
	if len(p.ledger.Accounts()) != len(p.model.balance) || len(p.ledger.holds.byID) != len(p.model.pending) {
		t.Fatalf("%d accounts and %d holds, the model has %d and %d",
			len(p.ledger.Accounts()), len(p.ledger.holds.byID), len(p.model.balance), len(p.model.pending))
	}
	for _, a := range p.ledger.Accounts() {
		same := is(a.Balance, p.model.balance[a.Account]) && is(a.Reserved, p.model.reserved(a.Account)) &&
			is(a.Available, p.model.available(a.Account)) &&
			is(a.Granted, p.model.granted[a.Account]) && is(a.Spent, p.model.spent[a.Account])
		if !same {
			t.Fatalf("%+v, and the model has balance %v, reserved %v", a, p.model.balance[a.Account], p.model.reserved(a.Account))
		}
		p.checkParts(t, &a)
	}
	for id, h := range p.ledger.holds.byID {
		if h.expires != p.model.pending[id].expires || (h.expires != 0) != (h.place >= 0) {
			t.Fatalf("hold %s expires at %v (place %d), in the model at %v", id, h.expires, h.place, p.model.pending[id].expires)
		}
	}
	books := p.ledger.Capture().Audit()
	if !books.Balanced || books.Held != p.ledger.holds.sum || books.Issued != books.Balances || books.Transfers != p.model.done {
		t.Fatalf("books: %+v, and the model did %d transfers", books, p.model.done)
	}
	p.checkStatements(t)
}

func is(got messages.Credits, want *big.Int) bool { return want.Cmp(big.NewInt(int64(got))) == 0 }

// checkStatements adds up the entries in the statement of each account. The sums must equal the balances in the
// entries.
func (p *pair) checkStatements(t *rapid.T) {
	for _, a := range p.ledger.Accounts() {
		s, err := p.ledger.Statement(money.StatementRequest{Account: a.Account, Limit: MaxPage})
		if err != nil || s.More || s.Opening != 0 {
			t.Fatalf("statement of %s: %+v, %v", a.Account, s, err)
		}
		var balance, reserved messages.Credits
		for _, e := range s.Entries {
			balance += e.Change
			reserved += e.Hold
			if e.Balance != balance || e.Reserved != reserved {
				t.Fatalf("%s: entry %+v, and the entries before it come to %v, %v", a.Account, e, balance, reserved)
			}
		}
		if balance != a.Balance || reserved != a.Reserved {
			t.Fatalf("%s: the statement ends with %v, %v: %+v", a.Account, balance, reserved, a)
		}
	}
}

func (p *pair) restart(t *rapid.T) {
	before := p.ledger.Hash()
	var image bytes.Buffer
	if _, err := p.ledger.Capture().WriteTo(&image); err != nil {
		t.Fatal(err)
	}
	fresh := Open(p.ledger.records.journal.store)
	if err := fresh.Restore(&image); err != nil {
		t.Fatal(err)
	}
	if fresh.Hash() != before || fresh.Totals() != p.ledger.Totals() {
		t.Fatalf("restored to %+v from %+v", fresh.Totals(), p.ledger.Totals())
	}
	p.ledger = fresh
}

// replay applies all commands to a second replica. Its state must equal the first replica's, byte for byte.
func (p *pair) replay() {
	second := New()
	for _, data := range p.commands {
		second.Apply(slices.Clone(data))
	}
	if second.Hash() != p.ledger.Hash() {
		p.Fatalf("a second replica differs after %d commands", len(p.commands))
	}
	for _, a := range second.accounts.order {
		second.accounts.touch(a) // so that the next image copies every account
	}
	if second.Hash() != p.ledger.Hash() {
		p.Fatal("an image missed a change of some account")
	}
}
