package bank

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/wire"
)

const (
	c = messages.Credit
	// patience is the longest wait of these tests for something that must happen.
	patience = await.Patience
)

// bed is a bank of one replica on a network in memory, with a clock that the test sets.
type bed struct {
	*testing.T
	network *bus.Network
	client  bus.Bus
	bank    *Bank
	box     *mailbox.Memory
	metrics *prometheus.Registry
	tune    func(*Config)

	mu  sync.Mutex
	now messages.Time
}

func start(t *testing.T) *bed { return startWith(t, func(*Config) {}) }

func begin(t *testing.T, tune func(*Config)) *bed {
	b := &bed{T: t, network: bus.NewMemory(), metrics: prometheus.NewRegistry(), now: 1000, tune: tune}
	b.client = b.network.Connect("test")
	b.bank = b.open("a", b.metrics)
	return b
}

func startWith(t *testing.T, tune func(*Config)) *bed {
	b := begin(t, tune)
	await.Until(b, "the bank serves", func() bool { return b.metric("candor_bank_serving_replicas", "") == 1 })
	return b
}

// open starts a bank, and stores its mailbox in the bed.
func (b *bed) open(replica string, metrics prometheus.Registerer) *Bank {
	b.Helper()
	config := Config{
		Site: "here", Replica: replica, Bus: b.network.Connect("bank"), Metrics: metrics,
		Operators: []messages.Name{"ops"}, Services: []messages.Name{"$auctioneer"},
		ExpiryInterval: messages.Duration(5 * time.Millisecond), Clock: b.clock, Mono: still, Late: -1,
		Open: func(m mailbox.Machine) (mailbox.Mailbox, error) {
			b.box = mailbox.NewMemory(m)
			return b.box, nil
		},
	}
	b.tune(&config)
	bank, err := Start(context.Background(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := bank.Close(); err != nil {
			b.Error(err)
		}
	})
	return bank
}

func (b *bed) clock() messages.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bed) setClock(now messages.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = now
}

func call[Reply any](b *bed, caller messages.Name, verb string, request any) (Reply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return bus.Call[Reply](ctx, b.client, messages.Subject("here", messages.Bank, verb, caller), request)
}

func must[Reply any](b *bed, caller messages.Name, verb string, request any) Reply {
	b.Helper()
	reply, err := call[Reply](b, caller, verb, request)
	if err != nil {
		b.Fatalf("%s by %s: %v", verb, caller, err)
	}
	return reply
}

func (b *bed) ask(caller messages.Name, verb string, request any) error {
	b.Helper()
	payload, err := wire.Marshal(request, wire.Msgpack)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err = b.client.Request(ctx, messages.Subject("here", messages.Bank, verb, caller), payload)
	return err
}

// admitted sends a request. The test fails if the answer is an error; any other answer is accepted.
func (b *bed) admitted(caller messages.Name, verb string, request any) {
	b.Helper()
	if err := b.ask(caller, verb, request); err != nil {
		b.Fatalf("%s by %s: %v", verb, caller, err)
	}
}

func (b *bed) refused(kind messages.Kind, caller messages.Name, verb string, request any) {
	b.Helper()
	err := b.ask(caller, verb, request)
	if err == nil || messages.KindOf(err) != kind {
		b.Fatalf("%s by %s: %v; want a refusal of kind %v", verb, caller, err, kind)
	}
	if e := messages.AsError("", err); e.Op != verb || e.Message == "" {
		b.Fatalf("%s by %s: refusal %+v without operation or message", verb, caller, e)
	}
}

func (b *bed) grant(key string, account messages.Name, amount messages.Credits) {
	b.Helper()
	must[money.AccountReply](b, "ops", messages.VerbGrant, money.GrantRequest{Key: key, Account: account, Amount: amount})
}

func (b *bed) transfer(ts ...money.Transfer) []money.TransferResult {
	b.Helper()
	return must[money.TransferReply](b, "$auctioneer", messages.VerbTransfer, money.TransferRequest{Transfers: ts}).Results
}

func hold(id string, account messages.Name, amount messages.Credits) money.Transfer {
	return money.Transfer{ID: id, Kind: money.Hold, Debit: account, Member: account, Amount: amount}
}

func post(id, hold string, amount messages.Credits) money.Transfer {
	return money.Transfer{ID: id, Kind: money.Post, Pending: hold, Credit: money.SiteAccount, Amount: amount}
}

// metric returns the value of a counter or gauge, or the count of a histogram. If the metric has a label, `label` is
// the label's value.
func (b *bed) metric(name, label string) float64 {
	b.Helper()
	families, err := b.metrics.Gather()
	if err != nil {
		b.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && (label == "" || m.GetLabel()[0].GetValue() == label) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	b.Fatalf("no metric %s{%s}", name, label)
	return 0
}

func still() messages.Duration { return 0 }
