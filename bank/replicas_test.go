package bank

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/money"
)

type cluster struct {
	testing.TB
	site    messages.Name
	dir     string
	network *bus.Network
	client  bus.Bus
	log     *mailbox.Local
	mu      sync.Mutex
	now     messages.Time
	running map[string]*Bank
	history string                                          // directory of the journals, if they are in files
	tune    func(id string, c *Config, log *mailbox.Config) // changes the configuration of a replica; nil means no change
}

func startGroup(t testing.TB) *cluster { return startTuned(t, nil) }

func startTuned(t testing.TB, tune func(string, *Config, *mailbox.Config)) *cluster {
	return startSite(t, bus.NewMemory(), "here", tune)
}

func startSite(t testing.TB, network *bus.Network, site messages.Name, tune func(string, *Config, *mailbox.Config)) *cluster {
	g := &cluster{TB: t, site: site, dir: t.TempDir(), network: network, log: mailbox.NewLocal(), now: 1000, running: map[string]*Bank{}, tune: tune}
	g.client = g.network.Connect("test")
	t.Cleanup(func() {
		for id := range g.running {
			g.stop(id)
		}
	})
	for _, id := range []string{"a", "b", "c"} {
		g.start(id)
	}
	return g
}

func (g *cluster) start(id string) {
	g.Helper()
	if err := g.tryStart(id); err != nil {
		g.Fatal(err)
	}
}

func (g *cluster) tryStart(id string) error {
	config := Config{
		Site: g.site, Replica: id, Replicas: []string{"a", "b", "c"}, Bus: g.network.Connect("bank"), Metrics: prometheus.NewRegistry(),
		Operators: []messages.Name{"ops"}, Services: []messages.Name{"$auctioneer"}, Clock: g.clock, Mono: still,
	}
	log := mailbox.Config{
		ID: id, Name: "bank", Dir: filepath.Join(g.dir, id), Local: g.log,
		Bootstrap: []string{"a", "b", "c"}, Timeout: 200 * time.Millisecond, MinFreeBytes: 1,
		SegmentBytes: 8 << 20,
	}
	if g.tune != nil {
		g.tune(id, &config, &log)
	}
	config.Open = func(m mailbox.Machine) (mailbox.Mailbox, error) { return mailbox.OpenRaft(log, m) }
	bank, err := Start(context.Background(), config)
	if err == nil {
		g.running[id] = bank
	}
	return err
}

func (g *cluster) stop(id string) {
	g.Helper()
	if err := g.running[id].Close(); err != nil {
		g.Error(err)
	}
	delete(g.running, id)
}

// clock moves a little each time it is read.
func (g *cluster) clock() messages.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now++
	return g.now
}

// send sends a request as this account, and repeats it until the outcome is known.
func send[Reply any](g *cluster, caller messages.Name, verb string, request any) Reply {
	g.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	reply, err := bus.Call[Reply](ctx, g.client, messages.Subject(g.site, messages.Bank, verb, caller), request)
	if err != nil {
		g.Fatalf("%s %+v: %v", verb, request, err)
	}
	return reply
}

func (g *cluster) transfer(ts ...money.Transfer) money.TransferReply {
	g.Helper()
	return send[money.TransferReply](g, "$auctioneer", messages.VerbTransfer, money.TransferRequest{Transfers: ts})
}

func (g *cluster) grant(account messages.Name, amount messages.Credits) {
	g.Helper()
	send[money.AccountReply](g, "ops", messages.VerbGrant, money.GrantRequest{Key: account, Account: account, Amount: amount})
}

func (g *cluster) books() money.BooksReply {
	g.Helper()
	return send[money.BooksReply](g, "ada", messages.VerbBooks, messages.Empty{})
}

// leader waits until a running replica serves, and returns its name.
func (g *cluster) leader() string {
	g.Helper()
	g.books()
	for id, bank := range g.running {
		if bank.Status().Leader == id {
			return id
		}
	}
	g.Fatal("no running replica leads")
	return ""
}

// TestReplicasAgree sends holds and charges while the leader is replaced twice. The replicas must end with equal bytes.
func TestReplicasAgree(t *testing.T) {
	g := startGroup(t)
	g.grant("ada", 1000)
	done := 0
	work := func() {
		for range 20 {
			id := fmt.Sprint("h", done)
			r := g.transfer(hold(id, "ada", 3), post(id+"/c", id, 2))
			if r.Results[0].Error != nil || r.Results[1].Error != nil {
				t.Fatalf("%+v", r)
			}
			done++
		}
	}
	work()
	first := g.leader()
	g.stop(first)
	work()
	g.start(first)
	work()
	g.stop(g.leader())
	work()
	books := g.books()
	if !books.Balanced || books.Transfers != uint64(2*done+1) || books.Held != 0 || books.Issued != 1000 {
		t.Fatalf("%d jobs: %+v", done, books)
	}
	hashes := map[string]bool{}
	agree := func() bool {
		clear(hashes)
		for _, bank := range g.running {
			hashes[fmt.Sprintf("%x", bank.Hash())] = true
		}
		return len(hashes) == 1
	}
	deadline := time.After(patience)
	for !agree() {
		select {
		case <-deadline:
			t.Fatalf("the replicas differ: %v", hashes)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// BenchmarkBalance measures a request for the balance of one of a million accounts, at the leader of three durable
// replicas.
func BenchmarkBalance(b *testing.B) {
	g := startGroup(b)
	const accounts = 1_000_000
	g.grant("ada", messages.MaxCredits)
	var group sync.WaitGroup
	for worker := range 256 {
		group.Go(func() {
			for i := worker; i < accounts; i += 256 {
				g.grant(fmt.Sprint("user-", i), 1)
			}
		})
	}
	group.Wait()
	b.ResetTimer()
	for i := range b.N {
		name := fmt.Sprint("user-", i*7919%accounts)
		if r := send[money.AccountReply](g, name, messages.VerbAccount, money.AccountRequest{}); r.Balance != 1 {
			b.Fatalf("%+v", r)
		}
	}
}
