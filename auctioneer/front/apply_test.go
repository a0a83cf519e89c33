package front

import (
	"reflect"
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/listing"
	"github.com/candor-grid/candor/messages"
)

// pageOf lists jobs as an auctioneer does.
func pageOf(all []messages.JobSummary, r messages.JobsRequest) (reply messages.JobsReply, err error) {
	p, err := listing.New(&r)
	if err != nil {
		return reply, err
	}
	for i := range all {
		p.AddArchived(&all[i])
	}
	return p.Reply(nil), nil
}

// applying is an auctioneer whose markets can be replaced, once with each key.
type applying struct {
	markets []messages.Market
	version uint64
	known   map[string]messages.ApplyReply
	changes int
	silent  bool
	asked   func() // for its markets; nil: nothing
}

func (a *applying) apply(_ messages.Name, r messages.ApplyRequest) (reply messages.ApplyReply, err error) {
	if a.silent {
		return reply, messages.Errorf(messages.NotLeader, "ask again")
	}
	if known, is := a.known[r.Key]; is && r.Key != "" {
		return known, nil
	}
	if r.Version != 0 && r.Version != a.version {
		return reply, messages.Errorf(messages.Conflict, "version: is another")
	}
	names := func(list []messages.Market) map[messages.Name]bool {
		has := map[messages.Name]bool{}
		for i := range list {
			has[list[i].Name] = true
		}
		return has
	}
	was, is := names(a.markets), names(r.Markets)
	for name := range is {
		if !was[name] {
			reply.Added = append(reply.Added, name)
		}
	}
	for name := range was {
		if !is[name] {
			reply.Removed = append(reply.Removed, name)
		}
	}
	if reply.Version = a.version; r.DryRun {
		return reply, nil
	}
	if len(reply.Added)+len(reply.Removed) > 0 {
		a.version++
		a.changes++
		reply.Version = a.version
		a.markets = r.Markets
	}
	if r.Key != "" {
		a.known[r.Key] = reply
	}
	return reply, nil
}

// TestMarketsAreAppliedWhereTheyAre: a change disturbs no auctioneer that it does not concern,
// changes nothing if another was made before, and can be repeated.
func TestMarketsAreAppliedWhereTheyAre(t *testing.T) {
	f := newFixture(t)
	main, spot, eve := messages.Market{Name: "main", Classes: []messages.Name{"map"}}, messages.Market{Name: "spot", Classes: []messages.Name{"rack"}}, messages.Market{Name: "eve", Classes: []messages.Name{"map"}}
	both := map[string]*applying{
		"day":   {markets: []messages.Market{main}, version: 1, known: map[string]messages.ApplyReply{}},
		"night": {markets: []messages.Market{spot}, version: 1, known: map[string]messages.ApplyReply{}},
	}
	for name, a := range both {
		serve(f, name, messages.VerbApply, a.apply)
		serve(f, name, messages.VerbMarkets, func(messages.Name, messages.Empty) (messages.MarketsReply, error) {
			reply := messages.MarketsReply{Version: a.version}
			for _, m := range a.markets {
				reply.Markets = append(reply.Markets, messages.MarketStatus{Market: m})
			}
			return reply, nil
		})
	}
	apply := func(r messages.ApplyRequest) (messages.ApplyReply, error) {
		return ask1[messages.ApplyReply](f, messages.VerbApply, r, messages.Msgpack)
	}
	if _, err := apply(messages.ApplyRequest{Markets: []messages.Market{main, spot, eve}}); messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), "which auctioneer has the market") {
		t.Errorf("a new market of nobody: %v", err)
	}
	change := messages.ApplyRequest{Key: "k", Version: 2, Markets: []messages.Market{main, eve, spot}, Auctioneers: []messages.AuctioneerMarkets{{Name: "day", Markets: []messages.Name{"main", "eve"}}}}
	want := messages.ApplyReply{Added: []messages.Name{"eve"}, Version: 3}
	for range 2 {
		if reply, err := apply(change); err != nil || !reflect.DeepEqual(reply, want) {
			t.Errorf("applied: %+v, %v", reply, err)
		}
	}
	if both["day"].changes != 1 || both["night"].changes != 0 {
		t.Errorf("day changed %d times, night %d", both["day"].changes, both["night"].changes)
	}
	stale := change
	stale.Key = "other"
	if _, err := apply(stale); messages.KindOf(err) != messages.Conflict || !strings.Contains(err.Error(), "version 3, not 2") {
		t.Errorf("a change for another version: %v", err)
	}

	// eve goes from day to night, which for a time does not answer.
	moved := messages.ApplyRequest{Key: "m", Version: 3, Markets: []messages.Market{main, {Name: "eve", Classes: []messages.Name{"rack"}}, spot},
		Auctioneers: []messages.AuctioneerMarkets{{Name: "night", Markets: []messages.Name{"eve"}}}}
	mixed := moved
	mixed.Markets = []messages.Market{main, eve, spot}
	if _, err := apply(mixed); messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), `class "map" is in markets of the auctioneers day and night`) {
		t.Errorf("a class of two auctioneers: %v", err)
	}
	reply, err := apply(moved)
	if want := (messages.ApplyReply{Changed: []messages.Name{"eve"}, Version: 5}); err != nil || !reflect.DeepEqual(reply, want) {
		t.Errorf("moved: %+v, %v", reply, err)
	}
	// The same, cut off after the first part: repeated, it is one change.
	back := messages.ApplyRequest{Key: "b", Version: 5, Markets: []messages.Market{main, eve, spot}, Auctioneers: []messages.AuctioneerMarkets{{Name: "day", Markets: []messages.Name{"eve"}}}}
	part := messages.ApplyRequest{Key: "b", Markets: []messages.Market{spot}}
	if _, err := both["night"].apply("operator", part); err != nil {
		t.Fatal(err)
	}
	reply, err = apply(back)
	if err != nil || reply.Version != 7 || both["day"].changes != 3 || both["night"].changes != 2 {
		t.Errorf("the rest of a change: %+v, %v", reply, err)
	}
	both["night"].silent = true
	if _, err := apply(messages.ApplyRequest{Key: "s", Markets: []messages.Market{main, spot}}); !messages.KindOf(err).Retriable() {
		t.Errorf("applied where one does not answer: %v", err)
	}
}
