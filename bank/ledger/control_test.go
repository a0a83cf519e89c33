package ledger

import (
	"bytes"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

func (b *bed) plant(by messages.Name, rank Rank, s step) {
	b.records.rank = rank
	b.books.do(&s)
	b.books.commit(by, &s)
}

func (b *bed) plantPosted(by messages.Name, rank Rank, t money.Transfer) {
	b.plant(by, rank, step{asked: &t, debit: b.accounts.byName[t.Debit], credit: b.accounts.byName[t.Credit], amount: t.Amount, job: t.Job})
}

func (b *bed) plantHold(by messages.Name, rank Rank, t money.Transfer) {
	h := newHold(&t, b.accounts.byName[t.Debit])
	h.by = by
	b.plant(by, rank, step{asked: &t, debit: h.account, held: t.Amount, hold: h, job: t.Job, member: h.member})
}

func (b *bed) plantPost(by messages.Name, rank Rank, t money.Transfer) {
	h := b.holds.byID[t.Pending]
	b.plant(by, rank, step{asked: &t, debit: h.account, credit: b.accounts.byName[t.Credit], amount: t.Amount, held: -h.amount, hold: h, job: h.job, spent: t.Amount, member: h.member})
}

func (b *bed) plantRefusal(by messages.Name, rank Rank, t money.Transfer, err *messages.Error) {
	b.records.rank = rank
	b.books.refuse(by, &t, err, stamp{})
}

func (b *bed) plantChange(by messages.Name, rank Rank, ch change) {
	b.records.rank = rank
	b.books.change(by, ch)
}

func (b *bed) plantMember(by messages.Name, rank Rank, account, member messages.Name) {
	b.records.rank = rank
	b.accounts.setMember(b.accounts.byName[account], member, false)
	b.books.write(&record{what: membership, at: b.records.now, by: by, account: account, member: member}, nil, nil)
}

func under(id string, t money.Transfer) money.Transfer {
	t.ID = id
	return t
}

// control is a fault that a test plants, to see whether the checks find it. An attacker with write access to the
// journal could plant the same fault. All sums stay correct.
type control struct {
	plant func(*bed)
}

const service messages.Name = "$auctioneer"

var controls = map[string]control{
	"a movement of less than nothing": {plant: func(b *bed) { b.plantPosted(service, Service, posted("x", "ada", "$site", -50)) }},
	"a transfer out of the issuer":    {plant: func(b *bed) { b.plantPosted(service, Service, posted("x", "$issuer", "ada", 50)) }},
	"a post after the hold's expiry": {plant: func(b *bed) {
		b.records.now = 2500
		b.plantPost(service, Service, post("x", "h", 5))
	}},
	"a post by another service": {plant: func(b *bed) { b.plantPost("$other", Service, post("x", "h", 5)) }},
	"a post by a user":          {plant: func(b *bed) { b.plantPost("ada", User, post("x", "h", 5)) }},
	"a post to another payee": {plant: func(b *bed) {
		b.plantPost(service, Service, money.Transfer{ID: "x", Kind: money.Post, Pending: "for site", Credit: "bob", Amount: 5})
	}},
	"half a linked chain": {plant: func(b *bed) {
		b.plantPosted(service, Service, linked(posted("x", "ada", "$site", 5), posted("y", "ada", "$site", 5))[0])
	}},
	"half a linked chain, and others": {plant: func(b *bed) {
		b.plantPosted(service, Service, linked(posted("x", "ada", "$site", 5), posted("y", "ada", "$site", 5))[0])
		b.at++
		b.do(posted("z", "ada", "$site", 5))
	}},
	"a chain of which one was refused": {plant: func(b *bed) {
		chain := linked(posted("x", "ada", "$site", 5), posted("y", "ada", "$site", 1000))
		b.plantPosted(service, Service, chain[0])
		b.plantRefusal(service, Service, chain[1], messages.Errorf(messages.Insufficient, "no"))
	}},
	"a chain by two": {plant: func(b *bed) {
		chain := linked(posted("x", "ada", "$site", 5), posted("y", "ada", "$site", 5))
		b.plantPosted(service, Service, chain[0])
		b.plantPosted("$other", Service, chain[1])
	}},
	"an invented refusal": {plant: func(b *bed) {
		b.plantRefusal(service, Service, posted("x", "ada", "$site", 5), messages.Errorf(messages.Insufficient, "no"))
	}},
	"a refusal of another kind": {plant: func(b *bed) {
		b.plantRefusal(service, Service, posted("x", "ada", "$site", 5000), messages.Errorf(messages.NotFound, "no"))
	}},
	"a refusal of what is malformed": {plant: func(b *bed) {
		b.plantRefusal(service, Service, posted("x", "ada", "$site", 0), messages.Errorf(messages.Invalid, "no"))
	}},
	"an invented refusal of a grant": {plant: func(b *bed) {
		b.plantRefusal("ops", Operator, under("$grant/ops/x", posted("", "$issuer", "ada", 5)), messages.Errorf(messages.TooLarge, "no"))
	}},
	"an invented refusal of a payment": {plant: func(b *bed) {
		b.plantRefusal("ada", User, under("$pay/ada/x", posted("", "ada", "bob", 5)), messages.Errorf(messages.Insufficient, "no"))
	}},
	"a transfer by a user":             {plant: func(b *bed) { b.plantPosted("ada", User, posted("x", "ada", "$site", 5)) }},
	"a transfer by nobody":             {plant: func(b *bed) { b.plantPosted("$auctioneer", User, posted("x", "ada", "$site", 5)) }},
	"a service as an operator":         {plant: func(b *bed) { b.plantPost("$other", Operator, post("x", "h", 5)) }},
	"a rank that there is not":         {plant: func(b *bed) { b.plantPosted("ops", 9, posted("x", "ada", "$site", 5)) }},
	"a transfer to the issuer":         {plant: func(b *bed) { b.plantPosted(service, Service, posted("x", "ada", "$issuer", 5)) }},
	"a transfer to oneself":            {plant: func(b *bed) { b.plantPosted(service, Service, posted("x", "ada", "ada", 5)) }},
	"a transfer from a frozen account": {plant: func(b *bed) { b.plantPosted(service, Service, posted("x", "ice", "ada", 5)) }},
	"a hold on a frozen account":       {plant: func(b *bed) { b.plantHold(service, Service, held("x", "ice", 5)) }},
	"a hold on a stranger's word": {plant: func(b *bed) {
		b.plantHold(service, Service, money.Transfer{ID: "x", Kind: money.Hold, Debit: "lab", Member: "eve", Amount: 5})
	}},
	"a hold above a member's limit": {plant: func(b *bed) {
		b.plantHold(service, Service, money.Transfer{ID: "x", Kind: money.Hold, Debit: "lab", Member: "bob", Amount: 50})
	}},
	"a hold that is past its expiry": {plant: func(b *bed) { h := held("x", "ada", 5); h.Expires = 900; b.plantHold(service, Service, h) }},
	"a text of two lines": {plant: func(b *bed) {
		t := posted("x", "ada", "$site", 5)
		t.Reason = "a\nb"
		b.plantPosted(service, Service, t)
	}},
	"an identifier used twice": {plant: func(b *bed) { b.plantPosted(service, Service, posted("done", "ada", "$site", 5)) }},
	"a grant by a user":        {plant: func(b *bed) { b.plantPosted("ada", User, under("$grant/ada/x", posted("", "$issuer", "ada", 5))) }},
	"a grant by a service": {plant: func(b *bed) {
		b.plantPosted(service, Service, under("$grant/$auctioneer/x", posted("", "$issuer", "ada", 5)))
	}},
	"a grant under the key of another": {plant: func(b *bed) { b.plantPosted("ops", Operator, under("$grant/eve/x", posted("", "$issuer", "ada", 5))) }},
	"a grant that has a job": {plant: func(b *bed) {
		t := under("$grant/ops/x", posted("", "$issuer", "ada", 5))
		t.Job = 7
		b.plantPosted("ops", Operator, t)
	}},
	"a grant from another account": {plant: func(b *bed) { b.plantPosted("ops", Operator, under("$grant/ops/x", posted("", "ada", "bob", 5))) }},
	"a withdrawal by a user": {plant: func(b *bed) {
		t := under("$withdraw/ada/x", posted("", "bob", "$issuer", 5))
		t.Reason = "r"
		b.plantPosted("ada", User, t)
	}},
	"a withdrawal without a reason": {plant: func(b *bed) {
		b.plantPosted("ops", Operator, under("$withdraw/ops/x", posted("", "bob", "$issuer", 5)))
	}},
	"a payment by who does not own":   {plant: func(b *bed) { b.plantPosted("eve", User, under("$pay/eve/x", posted("", "ada", "bob", 5))) }},
	"a correction by a user":          {plant: func(b *bed) { b.plantCorrection("ada", User, "done", 5) }},
	"a correction of more than was":   {plant: func(b *bed) { b.plantCorrection("ops", Operator, "done", 50) }},
	"a correction of nothing":         {plant: func(b *bed) { b.plantCorrection("ops", Operator, "h", 5) }},
	"credit given by a user":          {plant: func(b *bed) { b.plantChange("ada", User, change{setting: creditLimit, account: "ada", number: 5}) }},
	"credit given by a service":       {plant: func(b *bed) { b.plantChange(service, Service, change{setting: creditLimit, account: "ada", number: 5}) }},
	"a project made by a user":        {plant: func(b *bed) { b.plantChange("ada", User, change{setting: asProject, account: "lab", text: "mine"}) }},
	"somebody's account as a project": {plant: func(b *bed) { b.plantChange("ops", Operator, change{setting: asProject, account: "ada"}) }},
	"an account thawed by its owner":  {plant: func(b *bed) { b.plantChange("ice", User, change{setting: freeze, account: "ice"}) }},
	"an account frozen by a stranger": {plant: func(b *bed) {
		b.plantChange("eve", User, change{setting: freeze, account: "ada", number: int64(frozenByOwner)})
	}},
	"a limit raised by its member": {plant: func(b *bed) {
		b.plantChange("bob", User, change{setting: memberLimit, account: "lab", member: "bob", number: 500})
	}},
	"a role above the last": {plant: func(b *bed) {
		b.accounts.byName["lab"].member("bob").role = 9
		b.records.rank = Operator
		b.books.write(&record{what: changed, at: b.records.now, by: "ops", change: change{setting: memberRole, account: "lab", member: "bob", number: 9}}, nil, nil)
	}},
	"a member taken in by a stranger": {plant: func(b *bed) { b.plantMember("eve", User, "lab", "eve") }},
	"a member taken in by a service":  {plant: func(b *bed) { b.plantMember(service, Service, "lab", "eve") }},
	"a member of no account's name":   {plant: func(b *bed) { b.plantMember("ops", Operator, "lab", "Not A Name") }},
	"an account opened for nothing":   {plant: func(b *bed) { b.records.rank = Operator; b.books.openFor("ops", "eve") }},
	"a lapse before its time":         {plant: func(b *bed) { b.Ledger.expiry.lapse(b.holds.byID["h"]) }},
	"a lapse left out": {plant: func(b *bed) {
		b.records.now = 2500
		b.Ledger.holds.remove(b.holds.byID["h"])
		b.accounts.byName["ada"].reserved -= 10
		b.do(posted("z", "bob", "$site", 5))
	}},
	"a return before its time": {plant: func(b *bed) { b.expiry.giveBack(b.accounts.byName["bob"], "$grant/ops/short", 5) }},
	"a return of another amount": {plant: func(b *bed) {
		b.records.now = 3500
		b.Ledger.expiry.lapse(b.holds.byID["h"])
		b.expiry.giveBack(b.accounts.byName["bob"], "$grant/ops/short", 5)
		b.forgetDues()
	}},
	"a return left out at the end": {plant: func(b *bed) { b.records.now = 3500; b.Ledger.expiry.lapse(b.holds.byID["h"]); b.forgetDues() }},
	"time that runs backwards": {plant: func(b *bed) {
		b.records.now = 500
		b.plantPosted(service, Service, posted("x", "ada", "$site", 5))
		b.records.now = 1000
	}},
}

func (b *bed) plantCorrection(by messages.Name, rank Rank, id string, amount messages.Credits) {
	t := money.Transfer{ID: correctPrefix + id, Kind: money.Posted, Debit: "$site", Credit: "ada", Amount: amount, Pending: id, Reason: "r"}
	b.plantPosted(by, rank, t)
}

func newControlBed(t *testing.T) *bed {
	b := newBed(t)
	b.grant("ada", 100)
	b.grant("bob", 100)
	b.grant("ice", 100)
	b.command(Command{Verb: Grant, By: "ops", Grant: money.GrantRequest{Key: "short", Account: "bob", Amount: 20, Expires: 3000}})
	b.command(Command{Verb: Project, By: "ops", Project: money.ProjectRequest{Account: "lab", Title: "a lab", Owners: []messages.Name{"ada"}}})
	b.grant("lab", 100)
	role, limit := money.RoleMember, messages.Credits(20)
	b.command(Command{Verb: Member, By: "ada", Rank: User, Member: money.MemberRequest{Account: "lab", Member: "bob", Role: &role, Limit: &limit}})
	b.do(posted("done", "ada", "$site", 5))
	h := held("h", "ada", 10)
	h.Expires = 2000
	b.do(h)
	h = held("for site", "ada", 10)
	h.Credit = money.SiteAccount
	b.do(h)
	b.refuse(messages.Insufficient, posted("no", "ada", "$site", 10_000))
	b.command(Command{Verb: Freeze, By: "ops", Freeze: money.FreezeRequest{Account: "ice", Frozen: true}})
	b.balanced()
	return b
}

func journalOf(t testing.TB, l *Ledger) (all [][]byte) {
	t.Helper()
	history := l.History()
	for n := uint64(1); n <= history.Count(); n++ {
		record, err := history.Record(n)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, bytes.Clone(record))
	}
	return all
}

// TestControlsAreSeen inserts faults into the books. Each fault breaks one rule, although all sums are right. Verifying
// the journal and restoring the image must fail for each fault.
func TestControlsAreSeen(t *testing.T) {
	sound := newControlBed(t)
	if _, err := verify(journalOf(t, sound.Ledger), true); err != nil {
		t.Fatalf("sound books: %v", err)
	}
	if restored := restore(t, encodeImage(t, sound.Ledger)); restored.Hash() != sound.Hash() {
		t.Fatal("sound books are restored to others")
	}
	for name, c := range controls {
		b := newControlBed(t)
		c.plant(b)
		if _, err := verify(journalOf(t, b.Ledger), true); err == nil {
			t.Errorf("%s: it verifies", name)
		}
		for _, a := range b.accounts.order {
			b.accounts.touch(a)
		}
		if err := New().Restore(bytes.NewReader(encodeImage(t, b.Ledger))); err == nil {
			t.Errorf("%s: it is restored", name)
		}
	}
}
