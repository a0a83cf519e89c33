package bank

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/money"
)

func TestOneJob(t *testing.T) {
	b := start(t)
	b.grant("1", "ada", 100*c)
	if r := b.transfer(hold("h", "ada", 30*c), post("p", "h", 12*c)); r[0].Error != nil || r[1].Error != nil || r[1].Amount != 12*c {
		t.Fatalf("%+v", r)
	}
	a := must[money.AccountReply](b, "ada", messages.VerbAccount, money.AccountRequest{})
	want := money.AccountReply{Account: "ada", Balance: 88 * c, Available: 88 * c, Granted: 100 * c, Spent: 12 * c}
	if fmt.Sprint(a) != fmt.Sprint(want) {
		t.Fatalf("%+v", a)
	}
	s := must[money.StatementReply](b, "ada", messages.VerbStatement, money.StatementRequest{})
	if len(s.Entries) != 3 || s.Entries[2].Balance != 88*c || s.Account != "ada" {
		t.Fatalf("%+v", s)
	}
	books := must[money.BooksReply](b, "eve", messages.VerbBooks, messages.Empty{})
	if !books.Balanced || books.Issued != 100*c || books.Transfers != 3 {
		t.Fatalf("%+v", books)
	}
	status := must[messages.StatusReply](b, "eve", messages.VerbStatus, messages.Empty{})
	if status.Actor != messages.Bank || status.Site != "here" || status.Replica != "a" || status.Applied != 2 || status.Term != 1 {
		t.Fatalf("%+v", status)
	}
}

func TestPermissions(t *testing.T) {
	b := start(t)
	b.grant("1", "ada", 10)
	b.grant("2", "lab", 10)
	must[money.AccountReply](b, "ops", messages.VerbMember, money.MemberRequest{Account: "lab", Member: "ada"})
	for _, tc := range []struct {
		verb    string
		request any
		allowed []messages.Name
		denied  []messages.Name
	}{
		{messages.VerbTransfer, money.TransferRequest{}, []messages.Name{"ops", "$auctioneer"}, []messages.Name{"ada", "lab", "$estimator"}},
		{messages.VerbGrant, money.GrantRequest{Key: "k", Account: "ada", Amount: 1}, []messages.Name{"ops"}, []messages.Name{"ada", "$auctioneer"}},
		{messages.VerbMember, money.MemberRequest{Account: "lab", Member: "bob"}, []messages.Name{"ops", "lab"}, []messages.Name{"ada", "eve", "$auctioneer"}},
		{messages.VerbAccount, money.AccountRequest{Account: "lab"}, []messages.Name{"ops", "$auctioneer", "ada", "bob", "lab"}, []messages.Name{"eve", "$estimator"}},
		{messages.VerbAccount, money.AccountRequest{Account: "ada"}, []messages.Name{"ops", "$auctioneer", "ada"}, []messages.Name{"lab", "eve"}},
		{messages.VerbAccount, money.AccountRequest{Account: money.SiteAccount}, []messages.Name{"ops"}, []messages.Name{"ada"}},
		{messages.VerbStatement, money.StatementRequest{Account: "lab"}, []messages.Name{"ops", "ada"}, []messages.Name{"eve"}},
		{messages.VerbAccounts, messages.Empty{}, []messages.Name{"ops", "ada", "eve"}, nil},
		{messages.VerbBooks, messages.Empty{}, []messages.Name{"ops", "eve"}, nil},
		{messages.VerbStatus, messages.Empty{}, []messages.Name{"ops", "eve"}, nil},
	} {
		for _, caller := range tc.allowed {
			b.admitted(caller, tc.verb, tc.request)
		}
		for _, caller := range tc.denied {
			b.refused(messages.PermissionDenied, caller, tc.verb, tc.request)
		}
	}
	// A caller who may not see an account must not learn whether it exists.
	b.refused(messages.PermissionDenied, "eve", messages.VerbAccount, money.AccountRequest{Account: "nobody"})
	b.refused(messages.NotFound, "eve", messages.VerbAccount, money.AccountRequest{})
	b.refused(messages.NotFound, "ops", messages.VerbAccount, money.AccountRequest{Account: "nobody"})
}

func TestAccountsListsWhatTheCallerMaySee(t *testing.T) {
	b := start(t)
	b.grant("1", "ada", 1)
	b.grant("2", "lab", 1)
	must[money.AccountReply](b, "ops", messages.VerbMember, money.MemberRequest{Account: "lab", Member: "ada"})
	for caller, want := range map[messages.Name]string{
		"ops": "$issuer $site ada lab", "$auctioneer": "$issuer $site ada lab", "ada": "ada lab", "lab": "lab", "eve": "",
	} {
		var names []string
		for _, a := range must[money.AccountsReply](b, caller, messages.VerbAccounts, messages.Empty{}).Accounts {
			names = append(names, a.Account)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s sees %q, want %q", caller, got, want)
		}
	}
}

// TestLostAnswer: the answer to a command is lost. When the request is repeated, it must get the first result.
func TestLostAnswer(t *testing.T) {
	b := start(t)
	b.grant("1", "ada", 10)
	for _, loss := range []mailbox.Loss{mailbox.LoseAnswer, mailbox.LoseCommand} {
		b.box.LoseNext(loss)
		request := money.TransferRequest{Transfers: []money.Transfer{hold(fmt.Sprint("h", loss), "ada", 3)}}
		b.refused(messages.Unknown, "$auctioneer", messages.VerbTransfer, request)
		if r := b.transfer(request.Transfers...); r[0].Error != nil || r[0].Amount != 3 {
			t.Fatalf("again: %+v", r)
		}
	}
	a := must[money.AccountReply](b, "ada", messages.VerbAccount, money.AccountRequest{})
	if a.Reserved != 6 {
		t.Fatalf("%v reserved by two holds of 3", a.Reserved)
	}
}

func TestFullDisk(t *testing.T) {
	b := start(t)
	b.grant("1", "ada", 10)
	b.box.Fill(true)
	b.refused(messages.Exhausted, "$auctioneer", messages.VerbTransfer, money.TransferRequest{Transfers: []money.Transfer{hold("h", "ada", 3)}})
	must[money.AccountReply](b, "ada", messages.VerbAccount, money.AccountRequest{})
	b.box.Fill(false)
	if r := b.transfer(hold("h", "ada", 3)); r[0].Error != nil {
		t.Fatal(r[0].Error)
	}
}

func TestOnlyTheLeaderServes(t *testing.T) {
	b := start(t)
	b.grant("1", "ada", 10)
	b.box.Depose()
	serves := func() bool { return b.metric("candor_bank_serving_replicas", "") == 1 }
	await.Until(b, "the deposed replica withdraws", func() bool { return !serves() })
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, verb := range []string{messages.VerbTransfer, messages.VerbAccount, messages.VerbStatus} {
		if _, err := b.client.Request(ctx, messages.Subject("here", messages.Bank, verb, "ops"), []byte("{}")); messages.KindOf(err) != messages.Unavailable {
			t.Errorf("%s: %v", verb, err)
		}
	}
	b.box.Elect()
	await.Until(b, "the elected replica serves", serves)
	if a := must[money.AccountReply](b, "ada", messages.VerbAccount, money.AccountRequest{}); a.Balance != 10 {
		t.Fatalf("%+v", a)
	}
	if status := must[messages.StatusReply](b, "ada", messages.VerbStatus, messages.Empty{}); status.Term != 3 {
		t.Fatalf("%+v", status)
	}
}

// TestReadsAreVerified: a replica that lost the lead, and does not know it yet, must not answer from its old state.
func TestReadsAreVerified(t *testing.T) {
	b := start(t)
	b.grant("1", "ada", 10)
	b.box.Depose()
	for name, read := range map[string]func() error{
		"account": func() error {
			_, err := b.bank.queries.account(context.Background(), "ada", money.AccountRequest{})
			return err
		},
		"accounts": func() error {
			_, err := b.bank.queries.accounts(context.Background(), "ada", money.AccountsRequest{})
			return err
		},
		"statement": func() error {
			_, err := b.bank.queries.statement(context.Background(), "ada", money.StatementRequest{})
			return err
		},
		"books": func() error {
			_, err := b.bank.queries.books(context.Background(), "ada", money.BooksRequest{})
			return err
		},
		"status": func() error {
			_, err := b.bank.queries.status(context.Background(), "ada", messages.Empty{})
			return err
		},
	} {
		if err := read(); messages.KindOf(err) != messages.NotLeader {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHoldsLapseOnAnIdleSite lets time pass without any request. Due holds must lapse.
func TestHoldsLapseOnAnIdleSite(t *testing.T) {
	b := start(t)
	b.grant("1", "ada", 10)
	h := hold("h", "ada", 3)
	h.Expires = 5000
	b.transfer(h)
	before := b.bank.Status().Commands
	b.setClock(4999)
	b.bank.expire(context.Background())
	if got := b.bank.Status().Commands; got != before {
		t.Fatalf("%d commands while nothing is due", got-before)
	}
	b.setClock(5000)
	reserved := func() messages.Credits {
		return must[money.AccountReply](b, "ada", messages.VerbAccount, money.AccountRequest{}).Reserved
	}
	await.Until(b, "the hold lapses", func() bool { return reserved() == 0 })
	if got := b.metric("candor_bank_holds_lapsed_total", ""); got != 1 {
		t.Fatalf("%v holds lapsed by the metric", got)
	}
}

// TestHoldsAreExtendedAfterAnOutage: a hold became due while no auctioneer could extend it. The bank must keep it for
// some minutes more.
func TestHoldsAreExtendedAfterAnOutage(t *testing.T) {
	var mono atomic.Int64
	b := startWith(t, func(c *Config) {
		c.Late, c.Mono = 0, func() messages.Duration { return messages.Duration(mono.Load()) }
	})
	const hour = messages.Duration(3600e9)
	began := messages.Time(0).Add(24 * hour)
	b.setClock(began)
	b.grant("1", "ada", 10)
	for _, id := range []string{"lives", "forgotten"} {
		h := hold(id, "ada", 3)
		h.Expires = began.Add(hour)
		b.transfer(h)
	}
	b.setClock(began.Add(3 * hour)) // no process ran during this time
	b.grant("2", "ada", 1)
	b.bank.expire(context.Background())
	extended := b.transfer(money.Transfer{ID: "longer", Kind: money.Extend, Pending: "lives", Expires: began.Add(4 * hour)})
	if extended[0].Error != nil {
		t.Fatal(extended[0].Error)
	}
	reserved := func() messages.Credits {
		return must[money.AccountReply](b, "ada", messages.VerbAccount, money.AccountRequest{}).Reserved
	}
	if got := reserved(); got != 6 {
		t.Fatalf("%v are held while holds may be extended", got)
	}
	mono.Store(6 * 60e9)
	await.Until(b, "the other hold lapses", func() bool { return reserved() == 3 })
	b.setClock(began.Add(3*hour + 2*60e9))
	if r := b.transfer(post("p", "lives", 3)); r[0].Error != nil || b.bank.machine.ledger.Now() != b.clock() {
		t.Errorf("%+v at %v", r[0], b.bank.machine.ledger.Now())
	}
}

// TestRestartFromImage replaces the ledger of the running actor by a restored ledger. An image whose end is missing
// must be refused.
func TestRestartFromImage(t *testing.T) {
	b := start(t)
	b.grant("1", "ada", 10)
	b.transfer(hold("h", "ada", 3))
	hash := b.bank.Hash()
	image, err := b.box.Image()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.bank.machine.Restore(bytes.NewReader(image)); err != nil || b.bank.Hash() != hash {
		t.Fatalf("restored to another state: %v", err)
	}
	if err := b.bank.machine.Restore(bytes.NewReader(image[:len(image)-1])); err == nil || b.bank.Hash() != hash {
		t.Fatalf("a cut image: %v", err)
	}
	if r := b.transfer(hold("h", "ada", 3), post("p", "h", 2)); r[0].Error != nil || r[1].Error != nil {
		t.Fatalf("%+v", r)
	}
	a := must[money.AccountReply](b, "ada", messages.VerbAccount, money.AccountRequest{})
	if a.Balance != 8 || a.Reserved != 0 {
		t.Fatalf("%+v", a)
	}
}

func TestLimits(t *testing.T) {
	b := start(t)
	b.grant("1", "ada", 1_000_000)
	many := make([]money.Transfer, ledger.MaxBatch)
	for i := range many {
		many[i] = hold(fmt.Sprintf("h%05d", i), "ada", 1)
	}
	before := b.bank.Status().Commands
	for i, r := range b.transfer(many...) {
		if r.Error != nil || r.Amount != 1 {
			t.Fatalf("%d: %+v", i, r)
		}
	}
	if pieces := b.bank.Status().Commands - before; pieces < 4 || pieces > 20 {
		t.Errorf("%d commands for %d transfers", pieces, len(many))
	}
	b.refused(messages.TooLarge, "$auctioneer", messages.VerbTransfer, money.TransferRequest{Transfers: append(many, many[0])})
	for i := range many {
		many[i].Linked = true
		many[i].Reason = strings.Repeat("r", ledger.MaxReason)
	}
	before = b.bank.Status().Commands
	b.refused(messages.TooLarge, "$auctioneer", messages.VerbTransfer, money.TransferRequest{Transfers: many[:5000]})
	b.refused(messages.Invalid, "ops", messages.VerbGrant, money.GrantRequest{Key: "k", Account: "ada", Amount: -1})
	b.refused(messages.TooLarge, "ops", messages.VerbGrant, money.GrantRequest{Key: "k", Account: "ada", Amount: messages.MaxCredits + 1})
	b.refused(messages.Invalid, "ops", messages.VerbMember, money.MemberRequest{Account: "ada", Member: "Not A Name"})
	b.refused(messages.TooLarge, "ada", messages.VerbStatement, money.StatementRequest{Limit: 1001})
	if got := b.bank.Status().Commands; got != before {
		t.Errorf("%d refused requests reached the log", got-before)
	}
}

// TestSplitKeepsChains checks that split never cuts a chain of linked transfers in two.
func TestSplitKeepsChains(t *testing.T) {
	var ts []money.Transfer
	for i := range 4000 {
		x := hold(fmt.Sprint(i), "ada", 1)
		x.Linked = i%7 != 6
		ts = append(ts, x)
	}
	pieces, err := split(ts)
	if err != nil || len(pieces) < 3 {
		t.Fatalf("%d pieces, %v", len(pieces), err)
	}
	i := 0
	for _, piece := range pieces {
		for _, x := range piece {
			if x != ts[i] {
				t.Fatalf("transfer %d is not in its place", i)
			}
			i++
		}
		if i < len(ts) && piece[len(piece)-1].Linked {
			t.Fatalf("a chain is cut after transfer %d", i)
		}
	}
	if i != len(ts) {
		t.Fatalf("%d of %d transfers", i, len(ts))
	}
}

// TestConcurrentCallers sends holds and charges at the same time. No credits may be lost or doubled.
func TestConcurrentCallers(t *testing.T) {
	b := start(t)
	b.grant("1", "ada", 1000)
	var group sync.WaitGroup
	for caller := range 16 {
		group.Go(func() {
			for i := range 20 {
				id := fmt.Sprintf("%d/%d", caller, i)
				reply, err := call[money.TransferReply](b, "$auctioneer", messages.VerbTransfer,
					money.TransferRequest{Transfers: []money.Transfer{hold(id, "ada", 3), post(id+"/c", id, 2)}})
				if err != nil || reply.Results[0].Error != nil || reply.Results[1].Error != nil {
					t.Errorf("%s: %+v, %v", id, reply, err)
				}
				if _, err := call[money.BooksReply](b, "ada", messages.VerbBooks, messages.Empty{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	a := must[money.AccountReply](b, "ada", messages.VerbAccount, money.AccountRequest{})
	books := must[money.BooksReply](b, "ada", messages.VerbBooks, messages.Empty{})
	if a.Balance != 1000-640 || a.Spent != 640 || !books.Balanced || books.Transfers != 641 {
		t.Fatalf("%+v\n%+v", a, books)
	}
}

// TestJSON sends requests in JSON, as a client can write them by hand.
func TestJSON(t *testing.T) {
	b := start(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ask := func(caller, verb, request string) string {
		reply, err := b.client.Request(ctx, messages.Subject("here", messages.Bank, verb, caller), []byte(request))
		if err != nil {
			t.Fatal(err)
		}
		return string(reply)
	}
	ask("ops", messages.VerbGrant, `{"key":"1","account":"ada","amount":12.5}`)
	ask("$auctioneer", messages.VerbTransfer, `{"transfers":[{"id":"h","kind":"hold","debit":"ada","member":"ada","amount":"2.25"}]}`)
	if got := ask("ada", messages.VerbAccount, `{}`); !strings.Contains(got, `"available":10.25`) {
		t.Fatal(got)
	}
}

func TestMetrics(t *testing.T) {
	b := startWith(t, func(c *Config) { c.AccountsTold = 1 })
	b.grant("1", "ada", 10*c)
	b.transfer(hold("h", "ada", 4*c), hold("x", "ada", 40*c), hold("y", "nobody", 1))
	for name, want := range map[[2]string]float64{
		{"candor_bank_held_credits", ""}:               4,
		{"candor_bank_issued_credits", ""}:             10,
		{"candor_bank_pending_holds", ""}:              1,
		{"candor_bank_open_accounts", ""}:              3,
		{"candor_bank_refusals_total", "Insufficient"}: 1,
		{"candor_bank_refusals_total", "NotFound"}:     1,
		{"candor_bank_transfers_total", ""}:            1,
		{"candor_bank_commands_total", ""}:             2,
		{"candor_bank_serving_replicas", ""}:           1,
		{"candor_bank_request_seconds", "transfer"}:    1,
		{"candor_bank_holds_lapsed_total", ""}:         0,

		{"candor_bank_account_available_credits", "ada"}: 6,
		{"candor_bank_account_spent_credits", "ada"}:     0,
	} {
		if got := b.metric(name[0], name[1]); got != want {
			t.Errorf("%s{%s} is %v, want %v", name[0], name[1], got, want)
		}
	}
}

// TestConfig has a row for each error of Validate. A bank that could not start must leave no metrics behind.
func TestConfig(t *testing.T) {
	registry := prometheus.NewRegistry()
	good := func() Config {
		return Config{Site: "here", Replica: "a", Bus: bus.NewMemory().Connect("bank"), Metrics: registry,
			Open: func(m mailbox.Machine) (mailbox.Mailbox, error) { return nil, mailbox.ErrClosed }}
	}
	for name, change := range map[string]func(*Config){
		"site":     func(c *Config) { c.Site = "Not A Name" },
		"replica":  func(c *Config) { c.Replica = "" },
		"bus":      func(c *Config) { c.Bus = nil },
		"open":     func(c *Config) { c.Open = nil },
		"interval": func(c *Config) { c.ExpiryInterval = -1 },
		"operator": func(c *Config) { c.Operators = []messages.Name{"$ops"} },
		"service":  func(c *Config) { c.Services = []messages.Name{"auctioneer"} },
	} {
		config := good()
		change(&config)
		if _, err := Start(context.Background(), config); err == nil || !strings.Contains(err.Error(), "bank: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for range 2 { // the first start must leave no metrics
		if _, err := Start(context.Background(), good()); err == nil || !strings.Contains(err.Error(), "closed") {
			t.Fatalf("a mailbox that does not open: %v", err)
		}
	}
}

// TestGrantsExpireOnAnIdleSite lets time pass without any request. The unspent part of an expired grant must be
// returned.
func TestGrantsExpireOnAnIdleSite(t *testing.T) {
	b := start(t)
	must[money.AccountReply](b, "ops", messages.VerbGrant, money.GrantRequest{Key: "k", Account: "ada", Amount: 10 * c, Expires: 5000})
	b.transfer(hold("h", "ada", 3*c), post("p", "h", 3*c))
	b.setClock(5000)
	account := func() money.AccountReply {
		return must[money.AccountReply](b, "ada", messages.VerbAccount, money.AccountRequest{})
	}
	await.Until(b, "the grant expires", func() bool { return account().Balance == 0 })
	if a := account(); a.Granted != 10*c || a.Spent != 3*c || len(a.Expiring) != 0 {
		t.Fatalf("%+v", a)
	}
	if books := must[money.BooksReply](b, "ops", messages.VerbBooks, money.BooksRequest{Full: true}); !books.Balanced || books.Issued != 3*c {
		t.Fatalf("%+v", books)
	}
}

// TestANewBankWaitsForTheTime: a new bank must serve nobody before its host knows the time. A wrong time would stay,
// because the time of the books never goes back.
func TestANewBankWaitsForTheTime(t *testing.T) {
	var known atomic.Bool
	looks := make(chan struct{}, 1)
	b := begin(t, func(c *Config) {
		c.ClockKnown = func() bool {
			select {
			case looks <- struct{}{}:
			default:
			}
			return known.Load()
		}
	})
	for range 3 { // wait until the bank has asked for the time at least twice
		<-looks
	}
	if n := b.metric("candor_bank_serving_replicas", ""); n != 0 {
		t.Errorf("%v replicas serve without knowing the time", n)
	}
	known.Store(true)
	await.Until(t, "the bank serves", func() bool { return b.metric("candor_bank_serving_replicas", "") == 1 })
}
