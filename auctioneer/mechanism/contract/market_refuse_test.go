package contract

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

func TestAMarketOfOneClass(t *testing.T) {
	for _, classes := range [][]messages.Name{nil, {"cpu", "gpu"}} {
		_, err := NewMechanism(marketmsg.Market{Name: "contracts", Classes: classes})
		if messages.KindOf(err) != messages.Invalid || !strings.HasPrefix(messages.Detail(err), "market contracts: classes: must be exactly one") {
			t.Errorf("%v: %v", classes, err)
		}
	}
}

func TestBadBids(t *testing.T) {
	m, view := market(t, marketmsg.Market{}), grid(2, 2)
	good := take(t, quote(t, m, view, bidOf(1, view.Now, 3), 1), bidOf(1, view.Now, 3)).Bid
	good.Contract.Price, good.Contract.Promised = messages.Credit, 5
	if err := m.Admit(view, good); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		says  string
		kind  messages.Kind
		spoil func(*mechanism.Bid)
	}{
		{"contract: this market sells", messages.Invalid, func(b *mechanism.Bid) { b.Contract = nil }},
		{"contract.price: must be", messages.Invalid, func(b *mechanism.Bid) { b.Contract.Price = -1 }},
		{"contract.replica.class", messages.Invalid, func(b *mechanism.Bid) { b.Contract.Replica = job.Valuation{} }},
		{"contract: its completion time", messages.Expired, func(b *mechanism.Bid) { b.Contract.Completion = view.Now }},
		{"length: must be above 0", messages.Invalid, func(b *mechanism.Bid) { b.Length = 0 }},
		{"width: 2 tasks that start together must each take the same number of slots, so 3 slots in all are not possible", messages.Invalid, func(b *mechanism.Bid) { b.Width, b.Tasks = 3, 2 }},
		{"tasks: must be from 0", messages.Invalid, func(b *mechanism.Bid) { b.Tasks = -1 }},
		{"budget: must cover", messages.Invalid, func(b *mechanism.Bid) { b.Budget = messages.Credit }},
		{"budget: must cover", messages.Invalid, func(b *mechanism.Bid) { b.Budget = messages.MaxCredits + 1 }},
	} {
		bad, c := *good, *good.Contract
		bad.Contract = &c
		test.spoil(&bad)
		if err := m.Admit(view, &bad); err == nil || messages.KindOf(err) != test.kind || !strings.HasPrefix(err.(*messages.Error).Message, test.says) {
			t.Errorf("%v, want %q", err, test.says)
		}
	}
}

func TestQuotesThatAreRefused(t *testing.T) {
	view := grid(2, 2)
	hard := job.Valuation{Class: job.Hard, Max: 1, Deadline: 5}
	for _, test := range []struct {
		says  string
		kind  messages.Kind
		class []job.Valuation
		spoil func(*mechanism.Bid)
	}{
		{"valuation: is missing", messages.Invalid, class, func(b *mechanism.Bid) { b.Valuation = nil }},
		{"valuation.max", messages.Invalid, class, func(b *mechanism.Bid) { b.Valuation.Max = -1 }},
		{"length: must be above 0", messages.Invalid, class, func(b *mechanism.Bid) { b.Length = -1 }},
		{`samples[1]: is of class "hard"`, messages.Invalid, []job.Valuation{class[0], hard}, nil},
		{`samples: no type of class "sigmoidal" is known yet`, messages.Unavailable, nil, nil},
		{"samples: none of 10000 draws", messages.Invalid, []job.Valuation{{Class: job.Sigmoidal, Max: -1}}, nil},
	} {
		bid := bidOf(1, view.Now, 3)
		if test.spoil != nil {
			test.spoil(bid)
		}
		_, err := market(t, marketmsg.Market{Prior: []job.Valuation{hard}}).Quote(view, bid, test.class, 1)
		if err == nil || messages.KindOf(err) != test.kind || !strings.HasPrefix(err.(*messages.Error).Message, test.says) {
			t.Errorf("%v, want %q", err, test.says)
		}
	}
	if q, err := market(t, marketmsg.Market{Prior: []job.Valuation{hard, class[1]}}).Quote(view, bidOf(1, 0, 0), nil, 1); err != nil || q.Contracts[0].Surrogate.Class != job.Sigmoidal {
		t.Errorf("with a prior: %+v, %v", q, err)
	}
}
