package auctioneer

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/wire"
)

// counted is a bus that counts the services that are started on it.
type counted struct {
	bus.Bus
	served atomic.Int32
}

func (c *counted) Serve(s bus.Service) (bus.Subscription, error) {
	c.served.Add(1)
	return c.Bus.Serve(s)
}

// limited returns the market of the fixture. It accepts only jobs of at most the given number of tasks.
func limited(tasks int) []market.Market {
	return []market.Market{{Name: "main", Mechanism: market.Proportional, Classes: []messages.Name{"map", "reduce"}, MaxTasks: tasks}}
}

// Markets are applied again and again, and no request is repeated. All requests must be answered without errors, and no
// service may be reopened.
func TestApplyingMarketsRefusesNobody(t *testing.T) {
	const clients, each, applications = 4, 25, 25
	var b *counted
	f := startOn(t, func(under bus.Bus) bus.Bus {
		b = &counted{Bus: under}
		return b
	})
	f.submit("alice", "first", oneStage(1))
	before := b.served.Load()
	ask := func(caller messages.Name, verb string, request, reply any) error {
		data, err := wire.Marshal(request, wire.Msgpack)
		if err != nil {
			return err
		}
		answer, err := f.net.Connect(caller).Request(t.Context(), messages.Subject("west", messages.Auctioneer, verb, caller), data)
		if err != nil {
			return err
		}
		return wire.Unmarshal(answer, wire.Msgpack, reply)
	}
	var working sync.WaitGroup
	for c := range clients {
		working.Go(func() {
			who := fmt.Sprintf("user%d", c)
			for i := range each {
				var job jobmsg.SubmitReply
				if err := ask(who, messages.VerbSubmit, jobmsg.SubmitRequest{Key: fmt.Sprint(i), Spec: oneStage(1)}, &job); err != nil || job.Job == 0 {
					t.Errorf("submission %d of %s: job %d, %v", i, who, job.Job, err)
				}
				var markets market.MarketsReply
				if err := ask(who, messages.VerbMarkets, messages.Empty{}, &markets); err != nil || len(markets.Markets) != 1 {
					t.Errorf("markets: %+v, %v", markets, err)
				}
			}
		})
	}
	for i := range applications {
		must[market.ApplyReply](f, "operator", market.VerbApply, market.ApplyRequest{Markets: limited(10 + i)})
	}
	working.Wait()
	if n := b.served.Load(); n != before {
		t.Errorf("%d services were started anew", n-before)
	}
	jobs := must[jobmsg.JobsReply](f, "operator", messages.VerbJobs, jobmsg.JobsRequest{All: true, Limit: 1000})
	if len(jobs.Jobs) != clients*each+1 {
		t.Errorf("%d jobs, want %d", len(jobs.Jobs), clients*each+1)
	}
}

// A market changes while a submission is under way. The submission must be checked against the changed market.
func TestSubmissionMeetsTheMarketsInForce(t *testing.T) {
	f := start(t)
	f.bank.meet(make(chan chan struct{}))
	failed := make(chan error, 1)
	go func() {
		_, err := call[jobmsg.SubmitReply](f, "alice", messages.VerbSubmit, jobmsg.SubmitRequest{Key: "k", Spec: oneStage(5)})
		failed <- err
	}()
	goOn := <-f.bank.arrived
	must[market.ApplyReply](f, "operator", market.VerbApply, market.ApplyRequest{Markets: limited(4)})
	close(goOn)
	wantKind(t, <-failed, messages.TooLarge)
	if jobs := must[jobmsg.JobsReply](f, "operator", messages.VerbJobs, jobmsg.JobsRequest{All: true, Limit: 10}); len(jobs.Jobs) != 0 {
		t.Errorf("it was taken: %+v", jobs.Jobs)
	}
}
