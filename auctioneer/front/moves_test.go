package front

import (
	"slices"
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

// TestAMarketGoesAsItIs: the auctioneer that has a market is told where it goes, and keeps it until
// it is there. One that is described otherwise is taken from it and given to the other.
func TestAMarketGoesAsItIs(t *testing.T) {
	f := newFixture(t)
	main, eve, spot := messages.Market{Name: "main", Mechanism: messages.FIFO, Classes: []messages.Name{"map"}}, messages.Market{Name: "eve", Mechanism: messages.BatchQueue, Classes: []messages.Name{"lab"}}, messages.Market{Name: "spot", Classes: []messages.Name{"rack"}}
	waiting, moving, asked := 0, (*messages.MarketMove)(nil), map[string]messages.ApplyRequest{}
	for name, markets := range map[string][]messages.Market{"day": {main, eve}, "night": {spot}} {
		serve(f, name, messages.VerbMarkets, func(messages.Name, messages.Empty) (reply messages.MarketsReply, err error) {
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
			asked["day"].Within != 7 || len(asked["day"].Auctioneers) != 1 || asked["day"].Auctioneers[0].Name != "night" || asked["night"].Auctioneers != nil {
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
