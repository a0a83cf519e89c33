package courier

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/wire"
)

const ill = "\x1b[2J\x1b]0;mine\x07 \u009b31m \r\nSTATE \u202e\xff\x00"

// liar opens the bank of the site east, with a peer called west. The peer lies: it gives the answers that the test
// sets.
func liar(t *testing.T, position clearingmsg.Position, page clearingmsg.ClearingLine) (east *site, keys nkeys.KeyPair) {
	t.Helper()
	network := bus.NewMemory()
	east = open(t, network, "east")
	keys, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	public, err := keys.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	must[clearingmsg.PeerReply](east, "ops", clearingmsg.VerbPeer, clearingmsg.PeerRequest{Peer: "west", Keys: []string{public}, Limit: 100 * messages.Credit})
	grant := ledger.Command{Verb: ledger.Grant, At: east.clock(), By: "ops", Grant: money.GrantRequest{Key: "g", Account: "ada", Amount: 100 * messages.Credit}}
	if _, err := east.host.box.Propose(t.Context(), grant.Encode()); err != nil {
		t.Fatal(err)
	}
	at := func(verb string, h bus.Handler) bus.Endpoint {
		return bus.Endpoint{Name: verb, Subject: messages.Subject("west", messages.Bank, verb, "*"), Handle: h}
	}
	refuse := &messages.Error{Kind: messages.Unavailable, Op: ill, Message: ill}
	_, err = network.Connect("$west").Serve(bus.Service{Name: "liar", Version: "1.0.0", Endpoints: []bus.Endpoint{
		at(clearingmsg.VerbInstruct, bus.Handle("liar", func(context.Context, messages.Name, clearingmsg.SignedInstructions) (clearingmsg.SignedReceipt, error) {
			return clearingmsg.SignedReceipt{}, refuse
		})),
		at(clearingmsg.VerbTotals, bus.Handle("liar", func(context.Context, messages.Name, messages.Empty) (clearingmsg.SignedTotals, error) {
			return clearingmsg.SignedTotals{}, refuse
		})),
		at(clearingmsg.VerbPosition, bus.Handle("liar", func(context.Context, messages.Name, clearingmsg.CycleRequest) (clearingmsg.SignedPosition, error) {
			return clearing.SignPosition(keys, position)
		})),
		at(clearingmsg.VerbLines, bus.Handle("liar", func(_ context.Context, _ messages.Name, r clearingmsg.LinesRequest) (clearingmsg.SignedLines, error) {
			page.Number = r.From
			return clearing.SignLines(keys, clearingmsg.Lines{Site: "west", Peer: "east", Sender: r.Sender, Oldest: 1, Last: 1, List: []clearingmsg.ClearingLine{page}})
		})),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return east, keys
}

// TestPositionsThatCannotBeAreRefused checks that a peer's position with impossible amounts or sites is not in the
// report of a cycle.
func TestPositionsThatCannotBeAreRefused(t *testing.T) {
	many := make([]clearingmsg.Leg, 2000)
	for i := range many {
		many[i].Peer = fmt.Sprint("ghost", i)
	}
	for what, legs := range map[string][]clearingmsg.Leg{
		"a name that is none": {{Peer: ill}},
		"a payment below 0":   {{Peer: "east", Paid: math.MinInt64}},
		"an absurd payment":   {{Peer: "east", Received: math.MaxInt64}},
		"an absurd volume":    {{Peer: "east", Volume: math.MaxInt64}},
		"a site twice":        {{Peer: "east"}, {Peer: "east"}},
		"very many sites":     many,
	} {
		t.Run(what, func(t *testing.T) {
			east, _ := liar(t, clearingmsg.Position{Site: "west", Cycle: 1, Legs: legs, Net: math.MinInt64}, clearingmsg.ClearingLine{})
			must[clearingmsg.SignedPosition](east, "ops", clearingmsg.VerbClose, clearingmsg.CloseRequest{Cycle: 1})
			r := must[clearingmsg.NettingReport](east, "ops", clearingmsg.VerbNet, clearingmsg.CycleRequest{})
			if len(r.Positions) != 1 || len(r.Payments) != 0 || r.Volume != 0 || len(r.Faults) != 1 || strings.ContainsFunc(r.Faults[0], unicode.IsControl) || r.Balanced {
				t.Errorf("the report is %+v", r)
			}
		})
	}
}

// A peer's page of its book can say impossible things: more was moved than was asked, or a refused instruction moved
// something. TestPagesThatCannotBeAreRefused checks that such pages are refused.
func TestPagesThatCannotBeAreRefused(t *testing.T) {
	for what, line := range map[string]clearingmsg.ClearingLine{
		"more than was asked":        {Asked: 1, Moved: 2},
		"less than nothing":          {Asked: 1, Moved: -1},
		"an absurd amount":           {Asked: math.MaxInt64, Moved: math.MaxInt64},
		"asked for less than 0":      {Asked: math.MinInt64},
		"moved and refused, as well": {Asked: 1, Moved: 1, Refused: true},
	} {
		east, _ := liar(t, clearingmsg.Position{}, line)
		if _, err := east.courier.peers.reconcile(t.Context(), "west"); messages.KindOf(err) != messages.Invalid {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestWordsOfAPeersBankAreTamed checks that an error from a peer's bank contains nothing that a terminal, JSON or a
// browser would interpret.
func TestWordsOfAPeersBankAreTamed(t *testing.T) {
	east, _ := liar(t, clearingmsg.Position{}, clearingmsg.ClearingLine{})
	must[clearingmsg.ClearingReply](east, "ada", clearingmsg.VerbRemit, clearingmsg.RemitRequest{Key: "k", Peer: "west", Payee: "bob", Amount: messages.Credit})
	var failure string
	await.Until(t, "the peer's answer is known", func() bool {
		failure = must[clearingmsg.PeersReply](east, "ops", clearingmsg.VerbPeers, messages.Empty{}).Peers[0].Failure
		return failure != ""
	})
	if strings.ContainsFunc(failure, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("the failure is %q", failure)
	}
}

// TestAPeersInstructionsArePaced checks that a peer cannot fill this site's log, not even with refused instructions.
func TestAPeersInstructionsArePaced(t *testing.T) {
	east, keys := liar(t, clearingmsg.Position{}, clearingmsg.ClearingLine{})
	must[clearingmsg.PeerReply](east, "ops", clearingmsg.VerbPeer, clearingmsg.PeerRequest{Peer: "west", Keys: []string{sure(keys.PublicKey())}, Limit: 1000 * messages.Credit})
	known, account := clearing.Beginning("west", "east"), "ada"
	send := func() error {
		list := make([]clearingmsg.Instruction, clearingmsg.MaxInstructions)
		for i := range list {
			list[i] = clearingmsg.Instruction{Kind: clearingmsg.InstructPay, Account: account, Amount: east.courier.config.LeastVisit}
		}
		signed, err := clearing.SignInstructions(keys, clearingmsg.Instructions{From: "west", To: "east", First: known.Number + 1, List: list, Known: known, At: east.clock()})
		if err != nil {
			t.Fatal(err)
		}
		payload, err := wire.Marshal(signed, wire.Msgpack)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		data, err := east.client.Request(ctx, messages.Subject("east", messages.Bank, clearingmsg.VerbInstruct, "$west"), payload)
		if err != nil {
			return err
		}
		var r clearingmsg.SignedReceipt
		if err := wire.Unmarshal(data, wire.Msgpack, &r); err != nil {
			t.Fatal(err)
		}
		known = r.Receipt.Total
		return nil
	}
	sent := 0
	var err error
	for ; err == nil && sent <= 2*paceBurst; sent += clearingmsg.MaxInstructions {
		err = send()
	}
	if messages.KindOf(err) != messages.Exhausted || sent < paceBurst {
		t.Fatalf("after %d instructions: %v", sent, err)
	}
	east.refused(messages.Exhausted, "$west", clearingmsg.VerbLines, clearingmsg.LinesRequest{Sender: "west", From: 1})
	east.refused(messages.Exhausted, "$west", clearingmsg.VerbTotals, messages.Empty{})
	must[clearingmsg.ClearingReply](east, "ada", clearingmsg.VerbRemit, clearingmsg.RemitRequest{Key: "k", Peer: "west", Payee: "bob", Amount: messages.Credit})
	east.pass(messages.Duration(10 * time.Second))
	if err := send(); err != nil {
		t.Errorf("ten seconds later: %v", err)
	}

	account = "nobody"
	east.pass(hour)
	refused := 0
	for err = nil; err == nil && refused <= paceBurst; refused += clearingmsg.MaxInstructions {
		err = send()
	}
	if most := 2 * paceBurst / paceOfIdle; messages.KindOf(err) != messages.Exhausted || refused > most+clearingmsg.MaxInstructions {
		t.Errorf("%d instructions were taken that are refused, then %v; want about %d", refused, err, most)
	}
}

// TestARepeatedMessageIsPaced: a peer repeats one message, or sends wrong signatures. These repetitions and wrong
// messages may not be in the log, and the bank may check only as many signatures as the peer's rate allows.
func TestARepeatedMessageIsPaced(t *testing.T) {
	for what, forge := range map[string]bool{"repeated": false, "with a wrong signature": true} {
		t.Run(what, func(t *testing.T) {
			east, keys := liar(t, clearingmsg.Position{}, clearingmsg.ClearingLine{})
			greeting := sure(clearing.SignInstructions(keys, clearingmsg.Instructions{From: "west", To: "east", First: 1,
				List: []clearingmsg.Instruction{}, Known: clearing.Beginning("west", "east"), At: east.clock()}))
			must[clearingmsg.SignedReceipt](east, "$west", clearingmsg.VerbInstruct, greeting) // the first message is recorded
			if forge {
				greeting.Signature[0]++
			}
			send := func(messagesSent int) (last error) {
				subject := messages.Subject("east", messages.Bank, clearingmsg.VerbInstruct, "$west")
				for range messagesSent {
					_, last = bus.Call[clearingmsg.SignedReceipt](t.Context(), east.client, subject, greeting)
				}
				return last
			}
			const left = 300 // the number of messages that the burst still allows
			east.courier.pace.owe("west", paceBurst-left-1, east.clock())
			entries, before := east.host.box.Status().Applied, east.host.verified.Load()
			if err := send(2 * left); messages.KindOf(err) != messages.Exhausted {
				t.Errorf("the last of very many messages: %v", err)
			}
			if n := east.host.verified.Load() - before; n != left {
				t.Errorf("%d signatures were verified, want %d", n, left)
			}
			const seconds = 3
			east.pass(messages.Duration(seconds * time.Second))
			before, most := east.host.verified.Load(), int64(seconds*messages.Duration(time.Second)/paceEvery)
			_ = send(2 * int(most))
			if n := east.host.verified.Load() - before; n != most {
				t.Errorf("%d signatures were verified %d seconds later, want %d", n, seconds, most)
			}
			if now := east.host.box.Status().Applied; now != entries {
				t.Errorf("%d entries of the log are for nothing", now-entries)
			}
			east.refused(messages.Exhausted, "$west", clearingmsg.VerbPosition, clearingmsg.CycleRequest{})
		})
	}
}

func sure[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// TestAPeerThatAnswersNothingCostsNoLog: a peer signs empty answers again and again. It must be suspended like a silent
// peer.
func TestAPeerThatAnswersNothingCostsNoLog(t *testing.T) {
	network := bus.NewMemory()
	east := open(t, network, "east")
	keys := sure(nkeys.CreateAccount())
	total := clearing.Beginning("east", "west")
	_, err := network.Connect("$west").Serve(bus.Service{Name: "liar", Version: "1.0.0", Endpoints: []bus.Endpoint{{
		Name: clearingmsg.VerbInstruct, Subject: messages.Subject("west", messages.Bank, clearingmsg.VerbInstruct, "*"),
		Handle: bus.Handle("liar", func(_ context.Context, _ messages.Name, m clearingmsg.SignedInstructions) (clearingmsg.SignedReceipt, error) {
			return clearing.SignReceipt(keys, clearingmsg.Receipt{From: "west", To: "east", First: 1, Outcomes: []money.TransferResult{}, Total: total, At: east.clock()})
		}),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	must[clearingmsg.PeerReply](east, "ops", clearingmsg.VerbPeer, clearingmsg.PeerRequest{Peer: "west", Keys: []string{sure(keys.PublicKey())}, Limit: 100 * messages.Credit})
	grant := ledger.Command{Verb: ledger.Grant, At: east.clock(), By: "ops", Grant: money.GrantRequest{Key: "g", Account: "ada", Amount: 100 * messages.Credit}}
	if _, err := east.host.box.Propose(t.Context(), grant.Encode()); err != nil {
		t.Fatal(err)
	}
	must[clearingmsg.ClearingReply](east, "ada", clearingmsg.VerbRemit, clearingmsg.RemitRequest{Key: "k", Peer: "west", Payee: "bob", Amount: messages.Credit})
	west := func() clearingmsg.PeerReply {
		return must[clearingmsg.PeersReply](east, "ops", clearingmsg.VerbPeers, messages.Empty{}).Peers[0]
	}
	tried := func(n int) func() bool { return func() bool { return west().Tries >= n } }
	await.Until(t, "the peer is asked again", tried(3))
	entries := east.host.box.Status().Applied
	greet := func() {
		m := clearingmsg.Instructions{From: "west", To: "east", First: 1, List: []clearingmsg.Instruction{}, Known: clearing.Beginning("west", "east"), At: east.clock()}
		must[clearingmsg.SignedReceipt](east, "$west", clearingmsg.VerbInstruct, sure(clearing.SignInstructions(keys, m)))
	}
	greet() // the first greeting is recorded
	for range 100 {
		greet()
	}
	await.Until(t, "the peer is asked often", tried(30))
	if now := east.host.box.Status().Applied; now > entries+1 {
		t.Errorf("%d entries of the log are for nothing", now-entries)
	}
	if why := west().Failure; !strings.Contains(why, "answered, but without a result for the request") {
		t.Errorf("the peer fails as %q", why)
	}
	east.pass(2 * hour)
	await.Until(t, "the peer is suspended", func() bool { return west().Standing == clearingmsg.PeerSuspended })
	greet()
	if got := west().Standing; got != clearingmsg.PeerSuspended {
		t.Errorf("a greeting makes it %v", got)
	}
}

// TestTrivialRemittancesAreRefused checks that a very small remittance is refused, because it fills the logs of two
// banks as much as a large one.
func TestTrivialRemittancesAreRefused(t *testing.T) {
	east, _ := pair(t)
	least := east.courier.config.LeastVisit
	r := clearingmsg.RemitRequest{Key: "k", Peer: "west", Payee: "ada", Amount: least - 1}
	east.refused(messages.Invalid, "ada", clearingmsg.VerbRemit, r)
	r.Amount = least
	must[clearingmsg.ClearingReply](east, "ada", clearingmsg.VerbRemit, r)
}
