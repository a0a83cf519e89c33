package front

import (
	"bytes"
	"slices"
	"sync"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// TestJobsAreFoundWhereverTheyAre: a job that has gone to another auctioneer than its number says
// is asked about, cancelled and listed there; while that one does not answer nobody says that
// there is no such job.
func TestJobsAreFoundWhereverTheyAre(t *testing.T) {
	both(t, func(t *testing.T, format messages.Format) {
		f := newFixture(t)
		f.withMarkets()
		has := map[string][]messages.JobID{"day": {1}, "night": {2, messages.JobsOfOne + 3}} // 2 has gone to night
		find := func(name string, id messages.JobID) error {
			if slices.Contains(has[name], id) {
				return nil
			}
			return messages.Errorf(messages.NotFound, "there is no job %d", id)
		}
		open := func(name string) {
			serve(f, name, messages.VerbJobs, func(_ messages.Name, r messages.JobsRequest) (messages.JobsReply, error) {
				var all []messages.JobSummary
				for _, id := range has[name] {
					all = append(all, messages.JobSummary{Job: id})
				}
				return pageOf(all, r)
			})
			serve(f, name, messages.VerbCancel, func(_ messages.Name, r messages.CancelRequest) (reply messages.CancelReply, err error) {
				for _, id := range r.Jobs {
					one := messages.CancelOutcome{Job: id}
					if err := find(name, id); err != nil {
						one.Error = messages.AsError("", err)
					}
					reply.Jobs = append(reply.Jobs, one)
				}
				return reply, nil
			})
		}
		job := func(name string) {
			serve(f, name, messages.VerbJob, func(_ messages.Name, r messages.JobRequest) (reply messages.JobDetail, err error) {
				reply.Job, reply.Name = r.Job, name
				return reply, find(name, r.Job)
			})
		}
		open("day")
		open("night")
		job("day")
		if _, err := ask1[messages.JobDetail](f, messages.VerbJob, messages.JobRequest{Job: 2}, format); !messages.KindOf(err).Retriable() {
			t.Errorf("while night does not answer: %v", err)
		}
		job("night")
		for id, want := range map[messages.JobID]string{1: "day", 2: "night", messages.JobsOfOne + 3: "night"} {
			if reply, err := ask1[messages.JobDetail](f, messages.VerbJob, messages.JobRequest{Job: id}, format); err != nil || reply.Name != want {
				t.Errorf("job %d: %+v, %v", id, reply, err)
			}
		}
		if _, err := ask1[messages.JobDetail](f, messages.VerbJob, messages.JobRequest{Job: 9}, format); messages.KindOf(err) != messages.NotFound {
			t.Errorf("a job that is nowhere: %v", err)
		}
		all := []messages.JobID{1, 2, messages.JobsOfOne + 3, 9}
		done, err := ask1[messages.CancelReply](f, messages.VerbCancel, messages.CancelRequest{Jobs: all}, format)
		if err != nil || len(done.Jobs) != 4 || done.Jobs[1].Error != nil || messages.KindOf(done.Jobs[3].Error) != messages.NotFound {
			t.Errorf("cancelled: %+v, %v", done, err)
		}
		has["day"] = []messages.JobID{1, 2} // at the moment both have it
		list, err := ask1[messages.JobsReply](f, messages.VerbJobs, messages.JobsRequest{Jobs: all}, format)
		if err != nil || len(list.Jobs) != 3 {
			t.Errorf("listed: %+v, %v", list, err)
		}
	})
}

// TestAMarketIsSeenOnce, and not at both auctioneers or at none, if it goes from one to the other
// while they are asked.
func TestAMarketIsSeenOnce(t *testing.T) {
	for _, has := range []map[string][][]messages.Name{
		{"day": {{"main", "eve"}, {"main"}}, "night": {{"spot", "eve"}}},
		{"day": {{"main"}}, "night": {{"spot"}, {"spot", "eve"}}},
	} {
		f := newFixture(t)
		for name, answers := range has { // to one question after another
			asked := 0
			serve(f, name, messages.VerbMarkets, func(messages.Name, messages.Empty) (reply messages.MarketsReply, err error) {
				asked++
				reply.Version = uint64(min(asked, len(answers)))
				for _, market := range answers[reply.Version-1] {
					reply.Markets = append(reply.Markets, messages.MarketStatus{Market: messages.Market{Name: market}})
				}
				return reply, nil
			})
		}
		reply, err := ask1[messages.MarketsReply](f, messages.VerbMarkets, messages.Empty{}, messages.Msgpack)
		if err != nil {
			t.Fatal(err)
		}
		var names []messages.Name
		for _, m := range reply.Markets {
			names = append(names, m.Auctioneer+"/"+m.Market.Name)
		}
		if !slices.Equal(names, []messages.Name{"day/main", "night/spot", "night/eve"}) {
			t.Errorf("saw %v", names)
		}
	}
}

// TestAMarketGoesAsItIs: the auctioneer that has a market is told where it goes, and keeps it until
// it is there. One that is described otherwise is taken from it and given to the other.
func TestAMarketGoesAsItIs(t *testing.T) {
	f := newFixture(t)
	main, eve, spot := messages.Market{Name: "main", Mechanism: messages.FIFO, Classes: []messages.Name{"map"}}, messages.Market{Name: "eve", Mechanism: messages.BatchQueue, Classes: []messages.Name{"lab"}}, messages.Market{Name: "spot", Classes: []messages.Name{"rack"}}
	waiting, moving, asked := 0, (*messages.MarketMove)(nil), map[string]messages.ApplyRequest{}
	for name, markets := range map[string][]messages.Market{"day": {main, eve}, "night": {spot}} {
		serve(f, name, messages.VerbMarkets, func(messages.Name, messages.Empty) (reply messages.MarketsReply, err error) {
			reply.Version = 1
			for _, m := range markets {
				status := messages.MarketStatus{Market: m, Waiting: waiting}
				if m.Name == "eve" {
					status.Moving = moving
				}
				reply.Markets = append(reply.Markets, status)
			}
			return reply, nil
		})
		serve(f, name, messages.VerbApply, func(_ messages.Name, r messages.ApplyRequest) (reply messages.ApplyReply, err error) {
			if !r.DryRun {
				asked[name] = r
			}
			for _, of := range r.Auctioneers {
				reply.Moving = append(reply.Moving, of.Markets...)
			}
			return reply, nil
		})
	}
	apply := func(to ...messages.AuctioneerMarkets) messages.ApplyReply {
		t.Helper()
		reply, err := ask1[messages.ApplyReply](f, messages.VerbApply, messages.ApplyRequest{Key: "k", Within: 7, Markets: []messages.Market{main, eve, spot}, Auctioneers: to}, messages.Msgpack)
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	night := messages.AuctioneerMarkets{Name: "night", Markets: []messages.Name{"eve"}}
	names := func(of string) (out []messages.Name) {
		for _, m := range asked[of].Markets {
			out = append(out, m.Name)
		}
		return out
	}
	apply(night) // a batch queue without jobs
	if !slices.Equal(names("day"), []messages.Name{"main"}) || !slices.Equal(names("night"), []messages.Name{"eve", "spot"}) || asked["day"].Key != "k" {
		t.Errorf("asked %+v", asked)
	}
	waiting = 1
	for range 2 {
		reply := apply(night)
		if !slices.Equal(reply.Moving, []messages.Name{"eve"}) || !slices.Equal(names("day"), []messages.Name{"main", "eve"}) || !slices.Equal(names("night"), []messages.Name{"spot"}) ||
			asked["day"].Within != 7 || asked["day"].Key != "k" || !bytes.Equal(asked["day"].Whole, asked["night"].Whole) || len(asked["day"].Auctioneers) != 1 || asked["day"].Auctioneers[0].Name != "night" || asked["night"].Auctioneers != nil {
			t.Errorf("asked %+v", asked)
		}
		waiting, moving = 0, &messages.MarketMove{To: "night"}
	}
	if apply(); asked["day"].Auctioneers == nil { // that does not name it: it goes on
		t.Errorf("asked %+v", asked)
	}
	if apply(messages.AuctioneerMarkets{Name: "day", Markets: []messages.Name{"main", "eve"}}); asked["day"].Auctioneers != nil { // it is to stay
		t.Errorf("asked %+v", asked)
	}
}

// places has two auctioneers say and apply their markets.
func (f *fixture) places(both map[string]*applying, moving map[string]*messages.MarketMove) {
	var mu sync.Mutex
	for name, a := range both {
		a.known = map[string]messages.ApplyReply{}
		serve(f, name, messages.VerbApply, func(caller messages.Name, r messages.ApplyRequest) (messages.ApplyReply, error) {
			mu.Lock()
			defer mu.Unlock()
			if a.asked != nil {
				a.asked()
			}
			return a.apply(caller, r)
		})
		serve(f, name, messages.VerbMarkets, func(messages.Name, messages.Empty) (messages.MarketsReply, error) {
			mu.Lock()
			defer mu.Unlock()
			reply := messages.MarketsReply{Version: a.version}
			for _, m := range a.markets {
				reply.Markets = append(reply.Markets, messages.MarketStatus{Market: m, Moving: moving[name+" "+m.Name]})
			}
			return reply, nil
		})
	}
}

// TestAMarketThatHasGoneIsNotAddedAgain: a change is for the places at which it looked.
func TestAMarketThatHasGoneIsNotAddedAgain(t *testing.T) {
	f := newFixture(t)
	main, eve, spot := messages.Market{Name: "main"}, messages.Market{Name: "eve"}, messages.Market{Name: "spot"}
	both := map[string]*applying{"day": {markets: []messages.Market{main, eve}, version: 1}, "night": {markets: []messages.Market{spot}, version: 1}}
	both["day"].asked = func() { // once it was looked where the markets are
		if both["day"].version == 1 {
			both["day"].markets, both["day"].version = []messages.Market{main}, 2
			both["night"].markets, both["night"].version = []messages.Market{spot, eve}, 2
		}
	}
	f.places(both, nil)
	r := messages.ApplyRequest{Key: "k", Markets: []messages.Market{main, eve, spot}}
	if _, err := ask1[messages.ApplyReply](f, messages.VerbApply, r, messages.Msgpack); messages.KindOf(err) != messages.Unavailable {
		t.Errorf("a change for places of before: %v", err)
	}
	if _, err := ask1[messages.ApplyReply](f, messages.VerbApply, r, messages.Msgpack); err != nil || both["day"].changes != 0 || both["night"].changes != 0 {
		t.Errorf("day changed %d times, night %d, %v", both["day"].changes, both["night"].changes, err)
	}
}

// TestAMarketThatHasArrivedStays, though the auctioneer that it left has not forgotten it.
func TestAMarketThatHasArrivedStays(t *testing.T) {
	f := newFixture(t)
	main, eve, spot := messages.Market{Name: "main"}, messages.Market{Name: "eve"}, messages.Market{Name: "spot"}
	both := map[string]*applying{"day": {markets: []messages.Market{main, eve}, version: 1}, "night": {markets: []messages.Market{spot, eve}, version: 1}}
	f.places(both, map[string]*messages.MarketMove{"night eve": {To: "day"}})
	all := []messages.Market{main, eve, spot}
	if _, err := ask1[messages.ApplyReply](f, messages.VerbApply, messages.ApplyRequest{Markets: all}, messages.Msgpack); err != nil || both["day"].changes != 0 || both["night"].changes != 0 {
		t.Errorf("day changed %d times, night %d, %v", both["day"].changes, both["night"].changes, err)
	}
	back := messages.ApplyRequest{Markets: all, Auctioneers: []messages.AuctioneerMarkets{{Name: "night", Markets: []messages.Name{"spot", "eve"}}}}
	if _, err := ask1[messages.ApplyReply](f, messages.VerbApply, back, messages.Msgpack); messages.KindOf(err) != messages.Unavailable || both["day"].changes != 0 {
		t.Errorf("sent back at this moment: %v", err)
	}
}

// TestANodeThatComesTooLateRegistersAnew, where its market has gone to.
func TestANodeThatComesTooLateRegistersAnew(t *testing.T) {
	f := newFixture(t)
	main, eve, spot := messages.Market{Name: "main"}, messages.Market{Name: "eve", Classes: []messages.Name{"rack"}}, messages.Market{Name: "spot"}
	both := map[string]*applying{"day": {markets: []messages.Market{main, eve}, version: 1}, "night": {markets: []messages.Market{spot}, version: 1}}
	f.places(both, nil)
	for _, name := range []string{"day", "night"} {
		serve(f, name, messages.VerbRegister, func(messages.Name, messages.RegisterRequest) (reply messages.RegisterReply, err error) {
			if name == "day" { // which the market leaves just before the node comes; nobody else asks meanwhile
				both["day"].markets, both["day"].version = []messages.Market{main}, 2
				both["night"].markets, both["night"].version = []messages.Market{spot, eve}, 2
				return reply, nil
			}
			return messages.RegisterReply{Markets: []messages.Market{eve}}, nil
		})
	}
	r := messages.RegisterRequest{Slots: []messages.ClassSlots{{Class: "rack", Slots: 1}}}
	if _, err := ask1[messages.RegisterReply](f, messages.VerbRegister, r, messages.Msgpack); messages.KindOf(err) != messages.Unavailable {
		t.Errorf("registered where the market is not: %v", err)
	}
	if reply, err := ask1[messages.RegisterReply](f, messages.VerbRegister, r, messages.Msgpack); err != nil || len(reply.Markets) != 1 {
		t.Errorf("registered anew: %+v, %v", reply, err)
	}
}
