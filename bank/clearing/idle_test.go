package clearing

import (
	"fmt"
	"testing"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	moneymsg "github.com/candor-grid/candor/messages/money"
)

// receipt returns a receipt without outcomes. A side may sign such a receipt at any time, because it says only what the
// side already had.
func (s *side) receipt(other *side) *clearing.SignedReceipt {
	s.Helper()
	r := clearing.Receipt{From: s.name, To: other.name, First: 1, Outcomes: []moneymsg.TransferResult{}, Total: Beginning(other.name, s.name), At: s.at}
	signed, err := SignReceipt(s.keys, r)
	if err != nil {
		s.Fatal(err)
	}
	return &signed
}

// TestWhatSaysNothingNewLeavesNoRecord: a peer signs messages that contain nothing new or are refused. The journal
// must not grow.
func TestWhatSaysNothingNewLeavesNoRecord(t *testing.T) {
	east, west := pair(t)
	west.pay(east, "p", 2)
	west.exchange(east)
	must := func(signed clearing.SignedInstructions) Command { return Command{Instructions: &signed} }
	said := func(change func(*clearing.Instructions)) func() Command {
		return func() Command {
			m := west.outgoing(east).Instructions
			m.At = west.at
			change(&m)
			return must(west.sign(m))
		}
	}
	east.pay(west, "q", 1) // so that an answer is due
	pay := clearing.Instruction{Kind: clearing.InstructPay, Account: "ada", Amount: 7}
	for what, say := range map[string]func() Command{
		"a receipt of nothing":     func() Command { return Command{Receipt: west.receipt(east)} },
		"an empty message":         said(func(*clearing.Instructions) {}),
		"a number after a gap":     said(func(m *clearing.Instructions) { m.First, m.List = 90, []clearing.Instruction{pay} }),
		"a number with other pay":  said(func(m *clearing.Instructions) { m.First, m.List = 1, []clearing.Instruction{pay, pay} }),
		"a total that is not ours": said(func(m *clearing.Instructions) { m.Known.Owed++ }),
	} {
		east.do(say()) // the first message may be recorded
		records := east.ledger.Totals().Records
		for range 50 {
			west.at, east.at = west.at+second, east.at+second
			c := say()
			settled := false
			if c.Receipt != nil {
				_, changes, _ := east.state.Learns(c.Receipt)
				settled = !changes
			} else {
				_, _, settled = east.state.Answered(c.Instructions)
			}
			if east.do(c); !settled {
				t.Fatalf("%s: it has to be in the log", what)
			}
		}
		if now := east.ledger.Totals().Records; now != records {
			t.Errorf("%s, 50 times: %d records", what, now-records)
		}
	}
	west.at, east.at = west.at.Add(2*heardEvery), east.at.Add(2*heardEvery)
	if _, changes, err := east.state.Learns(west.receipt(east)); !changes || err != nil {
		t.Errorf("that the peer was heard again after a while is not noted: %v", err)
	}
}

// A peer in a dispute may say that it was restored. TestALiarDoesNotCloseItsDispute checks that the dispute stays. Only
// an operator can end it.
func TestALiarDoesNotCloseItsDispute(t *testing.T) {
	east, west := pair(t)
	west.pay(east, "p", 2)
	west.exchange(east)
	m := west.outgoing(east).Instructions
	m.First, m.List = 1, []clearing.Instruction{{Kind: clearing.InstructPay, Account: "ada", Amount: 7}, {Kind: clearing.InstructPay, Account: "ada", Amount: 7}}
	lie := west.sign(m)
	east.refuse(Rewritten, messages.Conflict, Command{Instructions: &lie})
	dispute := east.state.Peers().Peers[0].Dispute
	west.must(Command{Incarnation: 5})
	west.must(Command{Compared: "east"})
	west.exchange(east)
	if got := east.state.Peers().Peers[0].Dispute; got != dispute || got == "" {
		t.Errorf("the dispute was %q, and is %q", dispute, got)
	}
	east.know(west, 100)
	if got := east.state.Peers().Peers[0].Dispute; got != "" {
		t.Errorf("the operator set new terms, and the dispute is %q", got)
	}
}

// project opens a project of olga with 50 credits and the member bob, who has a limit.
func (s *side) project(limit messages.Credits) {
	s.Helper()
	s.apply(ledger.Command{Verb: ledger.Project, Project: moneymsg.ProjectRequest{Account: "lab", Title: "a lab", Owners: []messages.Name{"olga"}}})
	s.limits("bob", limit)
	s.grant("lab", 50)
}

func (s *side) limits(member messages.Name, limit messages.Credits) {
	s.Helper()
	s.apply(ledger.Command{Verb: ledger.Member, Member: moneymsg.MemberRequest{Account: "lab", Member: member, Limit: &limit}})
}

// TestOwnersAndOperatorsRevokeWhatMembersBound checks that a member can authorise a peer only within its limit, and
// that owners and operators can revoke the authorisation.
func TestOwnersAndOperatorsRevokeWhatMembersBound(t *testing.T) {
	east, west := pair(t)
	east.project(0)
	authorise := func(by messages.Name, key string, credits messages.Credits) Command {
		return Command{By: by, Authorise: &clearing.AuthoriseRequest{Key: key, Account: "lab", Peer: "west", Amount: credits * messages.Credit, Interval: 90 * 24 * 3600 * span}}
	}
	east.refuse(Ordinary, messages.PermissionDenied, authorise("bob", "a", 10))
	east.must(authorise("olga", "o", 1))
	service := authorise("$auctioneer", "job/1", 1) // given back when the job of this authorisation ends
	service.Authorise.Member = "bob"
	east.must(service)
	east.limits("bob", 30*messages.Credit)
	if r := east.do(authorise("bob", "a", 40)); r.Error == nil || r.Error.Kind != messages.Insufficient {
		t.Errorf("more than the limit: %v", r.Error)
	}
	east.must(authorise("bob", "b", 10))
	east.must(authorise("bob", "c", 10))
	east.apply(ledger.Command{Verb: ledger.Member, Member: moneymsg.MemberRequest{Account: "lab", Member: "bob", Remove: true}})
	revoke := func(by messages.Name, id string) Command {
		return Command{By: by, Revoke: &clearing.RevokeRequest{ID: id}}
	}
	east.refuse(Ordinary, messages.NotFound, revoke("ada", "bob/b"))
	east.must(revoke("olga", "bob/b"))
	east.must(revoke("ops", "bob/c"))
	east.has("lab", 50, 22)
	east.exchange(west)
	east.has("lab", 50, 2)
}

// TestOnlyOwnersRemit checks that a member who is not an owner cannot pay another site from a project, even if a leader
// allows it.
func TestOnlyOwnersRemit(t *testing.T) {
	east, _ := pair(t)
	east.project(50 * messages.Credit)
	remit := func(by messages.Name) Command {
		return Command{By: by, Remit: &clearing.RemitRequest{Key: "k", Account: "lab", Peer: "west", Payee: "bob", Amount: messages.Credit}}
	}
	east.refuse(Ordinary, messages.PermissionDenied, remit("bob"))
	east.refuse(Ordinary, messages.PermissionDenied, remit("ada"))
	east.must(remit("olga"))
}

// A peer was installed again without its old data. So its new authorisations get numbers that it has used before.
// TestARebuiltPeerIsChargedUnderNumbersThatWereUsed checks that each of the new authorisations can be charged.
func TestARebuiltPeerIsChargedUnderNumbersThatWereUsed(t *testing.T) {
	east, west := pair(t)
	charged := func(from *side) {
		t.Helper()
		a := from.authorise(east, "job", 3)
		east.must(accepting(a))
		east.must(charging(a, 3))
		from.exchange(east)
		east.exchange(from)
		from.has("ada", 97, 0)
	}
	charged(west)
	east.has(moneymsg.SiteAccount, 3, 0)
	east.grant("ops", 10)
	east.must(abandoning("west", 3))
	again := newSide(t, "west")
	again.keys = newSide(t, "rebuilt").keys
	again.grant("ada", 100)
	again.know(east, 100)
	east.know(again, 100)
	east.at += 400 * day // everything signed before has ended
	again.at = east.at
	charged(again)
	east.has(moneymsg.SiteAccount, 6, 0)
}

// TestNoStepGoesThroughTheMembers checks that a remittance takes no longer if the project has very many members.
func TestNoStepGoesThroughTheMembers(t *testing.T) {
	cost := func(members int) float64 {
		east, _ := barePair(t)
		east.project(messages.Credit)
		for i := range members {
			east.limits(fmt.Sprint("m", i), messages.Credit)
		}
		n := 0
		return testing.AllocsPerRun(20, func() {
			n++
			east.must(Command{By: "olga", Remit: &clearing.RemitRequest{Key: fmt.Sprint(n), Account: "lab", Peer: "west", Payee: "bob", Amount: 1}})
		})
	}
	if few, many := cost(1), cost(2000); many > few+5 {
		t.Errorf("a remittance takes %v allocations with 2 members, and %v with 2,001", few, many)
	}
}
