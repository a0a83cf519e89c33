package site_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/site"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

func newSite(t *testing.T) *clienttest.Site { return clienttest.New(t, site.Commands) }

// The resources and labels of the nodes are listed below the nodes.
func TestNodesShowWhatIsSold(t *testing.T) {
	s, nodes := newSite(t), clienttest.Nodes()
	nodes.Nodes[0].Resources, nodes.Nodes[0].Labels = &jobmsg.Resources{CPUs: 8, Memory: 16 << 30, GPUs: 2, GPUType: "a100"}, []messages.Name{"infiniband"}
	nodes.Nodes[0].Sold = &jobmsg.Resources{CPUs: 3, Memory: 6 << 30}
	nodes.Licenses = []jobmsg.LicenseStatus{{Name: "matlab", Total: 4, Used: 3}}
	clienttest.Reply(s, messages.Auctioneer, messages.VerbNodes, nodes)
	s.Run("nodes").Expect(t, cli.CodeOK, "LICENCE  TOTAL  USED\nmatlab       4     3\n", "")
	s.Run("nodes").Expect(t, cli.CodeOK, "3 of 8 cpus, 6G of 16G of memory, 0 of 2 gpus (a100)", "")
	s.Run("nodes").Expect(t, cli.CodeOK, "infiniband", "")
}

// The command markets shows how much each account, each project and a named project can have at once.
func TestMarketsSayTheirBounds(t *testing.T) {
	s, markets := newSite(t), clienttest.Markets()
	markets.Markets[0].Market.AtOnce = market.AtOnce{Account: market.Bound{Slots: 64, GPUs: 1}, Project: market.Bound{Tasks: 9}, Of: []market.OwnerBound{{Name: "physics"}}}
	clienttest.Reply(s, messages.Auctioneer, messages.VerbMarkets, markets)
	s.Width = 80
	if got := s.Run("markets", "-o", "name"); got.Code != cli.CodeOK || got.Out != "main\nnight\n" {
		t.Errorf("the names of the markets: %+v", got)
	}
	s.Run("markets").Expect(t, cli.CodeOK, "each account has at most 64 slots, 1 GPU at once\n  each project has at most 9 tasks at once\n  physics has any number at once\n", "")
}

func TestSiteViews(t *testing.T) {
	a := messages.Auctioneer
	top := func(s *clienttest.Site) {
		clienttest.Gives[messages.Empty](a, messages.VerbMarkets, clienttest.Markets())(s)
		clienttest.Gives[messages.Empty](a, messages.VerbNodes, clienttest.Nodes())(s)
		clienttest.Gives[money.AccountRequest](messages.Bank, messages.VerbAccount, clienttest.Account())(s)
	}
	clienttest.CheckViews(t, newSite, map[string]clienttest.View{
		"nodes":      {Line: "nodes", Serve: clienttest.Gives[messages.Empty](a, messages.VerbNodes, clienttest.Nodes())},
		"nodes_none": {Line: "nodes", Serve: clienttest.Gives[messages.Empty](a, messages.VerbNodes, market.NodesReply{})},
		"markets":    {Line: "markets", Serve: clienttest.Gives[messages.Empty](a, messages.VerbMarkets, clienttest.Markets())},
		"top":        {Line: "top", Serve: top},
	})
}

// TestTopAsJSON compares the output of "candor top --json" with top.json. The site is in the same state as for top.txt.
// The console's tests show this state too, and must use the same words.
func TestTopAsJSON(t *testing.T) {
	s := newSite(t)
	clienttest.Gives[messages.Empty](messages.Auctioneer, messages.VerbMarkets, clienttest.Markets())(s)
	clienttest.Gives[messages.Empty](messages.Auctioneer, messages.VerbNodes, clienttest.Nodes())(s)
	clienttest.Gives[money.AccountRequest](messages.Bank, messages.VerbAccount, clienttest.Account())(s)
	clienttest.Golden(t, "top.json", s.Run("top", "--json").Out)
}

// The table of markets must say in sentences what the fields allow, deny and default_for mean. If a list has many
// names, the table must show only the first of them.
func TestMarketsSayWhoseJobsTheyTake(t *testing.T) {
	m := market.Market{Name: "gpu", Mechanism: market.Proportional, Classes: []messages.Name{"gpu"}, Allow: []messages.Name{"physics"}, DefaultFor: []messages.Name{"physics", "ada"}}
	for i := range 20 {
		m.Deny = append(m.Deny, fmt.Sprintf("user%d", i))
	}
	s := newSite(t)
	clienttest.Gives[messages.Empty](messages.Auctioneer, messages.VerbMarkets, market.MarketsReply{Markets: []market.MarketStatus{{Market: m, Prices: []market.ClassPrice{{Class: "gpu", Sealed: true}}}}})(s)
	got := s.Run("markets")
	for _, words := range []string{"takes jobs of physics only\n", "takes no jobs of user0, user1, user2, user3, user4, user5, user6, user7, 12 others\n", "takes the jobs of physics, ada that name no market\n"} {
		if !strings.Contains(got.Out, words) {
			t.Errorf("no %q in:\n%s", words, got.Out)
		}
	}
}

func TestMarketsShowPriceAndNext(t *testing.T) {
	m := market.MarketStatus{Market: market.Market{Name: "spot", Mechanism: "highest-bid", Classes: []messages.Name{"cpu"}}, Gains: "rings of users",
		Prices:  []market.ClassPrice{{Class: "fpga", Slots: 2, Idle: 2, Bidders: 1, Sealed: true}, {Class: "cpu", Price: 0.000278, PerSecond: true}, {Class: "gpu", Price: 2, PerSecond: true}},
		Tariffs: []market.SlotTariff{{Class: "cpu", Price: 2 * messages.Credit}, {Class: "gpu", OwnBid: true}, {Class: "fpga", Sealed: true}, {Class: "map", Price: messages.Credit, Length: messages.Duration(time.Minute)}},
		Next:    []market.NextJob{{Class: "cpu", Job: 12, Account: "alice", Rate: 1_500_000}}}
	s := newSite(t)
	clienttest.Gives[messages.Empty](messages.Auctioneer, messages.VerbMarkets, market.MarketsReply{Markets: []market.MarketStatus{m}})(s)
	got := s.Run("markets")
	for _, words := range []string{"a slot of cpu costs 7200 credits an hour", "  1/h  ", "  7200/h  ", "of gpu costs the job's own bid", "the price of fpga is sealed", "sealed  ", "3600 credits an hour for a job of 1m0s", "next for cpu: job 12 of alice, which bids 5400 credits an hour", "known to gain more than a true bid: rings of users"} {
		if !strings.Contains(got.Out, words) {
			t.Errorf("no %q in:\n%s", words, got.Out)
		}
	}
}
