package auctioneer

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/wire"
)

// TestStepsDelayNoNode lets a task send more requests for streams than the auctioneer answers at the same time, to a
// node that answers none. The exchanges of nodes, with which they renew their leases, must be answered all the same.
// Requests above the bound of the account must be refused.
func TestStepsDelayNoNode(t *testing.T) {
	f := start(t)
	f.register("n1", 1)
	f.register("n2", 1)
	spec := oneStage(2)
	spec.Stages[0].Gang, spec.Stages[0].Allocation = true, true
	id := f.submit("alice", "k1", spec).Job
	f.claim("n1", 1, id, 1)
	f.claim("n2", 1, id, 1)
	here := messages.Attempt{Task: messages.TaskRef{Job: id}, Number: 1}
	members := must[agent.StepReply](f, "n1", messages.VerbStep, agent.StepRequest{Attempt: here}).Members
	if len(members) != 2 {
		t.Fatal(members)
	}
	var waiting atomic.Int64
	release := make(chan struct{})
	service, err := f.net.Connect("n2").Serve(bus.Service{Name: "silent", Version: "1.0.0", Concurrency: 2 * mostSteps, Endpoints: []bus.Endpoint{{
		Name: messages.VerbStream, Subject: agent.StreamSubject("west", "n2", "*"),
		Handle: func(context.Context, bus.Request) ([]byte, error) {
			waiting.Add(1)
			<-release
			return nil, messages.Errorf(messages.Ended, "released")
		}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer service.Stop()
	defer close(release)
	var refused atomic.Int64
	for range mostStepsOf + 100 {
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			defer cancel()
			node := f.net.Connect("n1")
			_, err := bus.Call[agent.StepReply](ctx, node, messages.Subject("west", messages.Auctioneer, messages.VerbStep, "n1"),
				agent.StepRequest{Attempt: here, Stream: &agent.StreamRequest{Attempt: members[1].Attempt, Client: "c", Poll: true, Wait: messages.Duration(time.Second)}})
			if messages.KindOf(err) == messages.Unavailable {
				refused.Add(1)
			}
		}()
	}
	await.Until(t, "the bound of the account is used up", func() bool { return waiting.Load() >= mostStepsOf })
	for node, seq := range map[string]uint64{"n1": 2, "n2": 2} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := bus.Call[agent.ExchangeReply](ctx, f.net.Connect(node), messages.Subject("west", messages.Auctioneer, messages.VerbExchange, node), agent.Exchange{Session: 7, Seq: seq})
		cancel()
		if err != nil {
			t.Errorf("%s: the lease is not renewed: %v", node, err)
		}
	}
	await.Until(t, "the requests above the bound are refused", func() bool { return refused.Load() >= 100 })
}

// TestUsersOfAnotherSiteCountAsOneAccount lets users of another site use up their bound. Another user of that site must
// be refused, but not a user of this site.
func TestUsersOfAnotherSiteCountAsOneAccount(t *testing.T) {
	var u underway
	leave, err := u.enter("u1@east", 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.enter("u2@east", 1); messages.KindOf(err) != messages.Unavailable {
		t.Errorf("another user of east: %v", err)
	}
	if _, err := u.enter("u1", 1); err != nil {
		t.Error(err)
	}
	leave()
	if _, err := u.enter("u2@east", 1); err != nil {
		t.Error(err)
	}
}

// TestWaitingTasksLeavePlaces lets the tasks of an account send requests that wait for a job's end. It sends the
// largest number of requests that may wait. Meanwhile another task of the account must be able to list jobs.
func TestWaitingTasksLeavePlaces(t *testing.T) {
	f := start(t)
	f.register("n1", 1)
	id := f.submit("alice", "k1", oneStage(2)).Job
	f.claim("n1", 1, id, 1)
	here := messages.Attempt{Task: messages.TaskRef{Job: id}, Number: 1}
	ask := func(ctx context.Context, verb string, request any) error {
		payload, err := wire.Marshal(request, wire.Msgpack)
		if err != nil {
			return err
		}
		body, err := wire.Marshal(agent.ProxyRequest{Attempt: here, Verb: verb, Request: payload}, wire.Msgpack)
		if err == nil {
			_, err = f.net.Connect("n1").Request(ctx, messages.Subject("west", messages.Auctioneer, agent.VerbProxy, "n1"), body)
		}
		return err
	}
	for range mostWaitsOf {
		go ask(t.Context(), messages.VerbJob, jobmsg.JobRequest{Job: id, Wait: jobmsg.MostWait})
	}
	await.Until(t, "the requests wait", func() bool { return f.waiting() == mostWaitsOf })
	if err := ask(t.Context(), messages.VerbJobs, jobmsg.JobsRequest{}); err != nil {
		t.Errorf("while others wait: %v", err)
	}
}

// TestLargeAnswersToTasksHaveAPace answers a task with 1 MB, at a pace of 1 MB in a second. The account's place must stay
// taken after the answer. It must be free at once after a small answer.
func TestLargeAnswersToTasksHaveAPace(t *testing.T) {
	f := start(t)
	f.register("n1", 1)
	id := f.submit("alice", "k1", oneStage(1)).Job
	f.claim("n1", 1, id, 1)
	size := 100
	p := proxies{f.site, map[string]bus.Handler{messages.VerbJobs: func(context.Context, bus.Request) ([]byte, error) { return make([]byte, size), nil }}, &bus.Pace{Rate: 1e6}}
	ask := func() {
		t.Helper()
		if _, err := p.ask(t.Context(), "n1", agent.ProxyRequest{Attempt: messages.Attempt{Task: messages.TaskRef{Job: id}, Number: 1}, Verb: messages.VerbJobs}); err != nil {
			t.Fatal(err)
		}
	}
	taken := func() int {
		f.site.paced.mu.Lock()
		defer f.site.paced.mu.Unlock()
		return f.site.paced.of["alice"]
	}
	ask()
	await.Until(t, "the place is free after a small answer", func() bool { return taken() == 0 })
	size = 1e6
	began := time.Now()
	ask()
	await.Until(t, "the place is free again", func() bool { return taken() == 0 })
	if took := time.Since(began); took < 700*time.Millisecond {
		t.Errorf("the place of a large answer is free after %v, want about 750ms", took)
	}
}

// Tasks of an account send more requests at once than it has places. Their answers are large, and have a pace. Requests
// without a place must wait for one, and must not be refused.
func TestRequestsOfTasksWaitForThePace(t *testing.T) {
	f := start(t)
	f.register("n1", 1)
	id := f.submit("alice", "k1", oneStage(1)).Job
	f.claim("n1", 1, id, 1)
	p := proxies{f.site, map[string]bus.Handler{messages.VerbJobs: func(context.Context, bus.Request) ([]byte, error) { return make([]byte, 100_000), nil }}, &bus.Pace{Rate: 8e6}}
	const requests = mostPacedOf + 72
	answers, began := make(chan error), time.Now()
	for range requests {
		go func() {
			_, err := p.ask(t.Context(), "n1", agent.ProxyRequest{Attempt: messages.Attempt{Task: messages.TaskRef{Job: id}, Number: 1}, Verb: messages.VerbJobs})
			answers <- err
		}()
	}
	for range requests {
		if err := <-answers; err != nil {
			t.Fatal(err)
		}
	}
	// The first answers take the account's 128 places. The last of the others gets the place of the 72nd answer, which
	// is free after 7.2 MB at 8 MB in a second, less a quarter of a second.
	if took := time.Since(began); took < 600*time.Millisecond {
		t.Errorf("all are answered in %v, above the pace", took)
	}
}
