package auctioneer

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/candor-grid/candor/auctioneer/quota"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/wire"
)

// once sends a request without repeating it.
func once[Reply any](f *fixture, caller messages.Name, verb string, request any) (reply Reply, err error) {
	f.t.Helper()
	data, err := wire.Marshal(request, wire.Msgpack)
	if err != nil {
		f.t.Fatal(err)
	}
	answer, err := f.net.Connect(caller).Request(f.t.Context(), messages.Subject("west", messages.Auctioneer, verb, caller), data)
	if err == nil {
		err = wire.Unmarshal(answer, wire.Msgpack, &reply)
	}
	return reply, err
}

// agreed returns a market with contracts, and a job with a contract whose quote ends soon.
func agreed(t *testing.T) (*grid, jobmsg.JobSpec) {
	g := newGrid(t, 1, sold(func(m *market.Market) { m.Quote = second }))
	spec := bids(1, valued)
	menu := must[market.QuoteReply](g.fixture, "alice", market.VerbQuote, market.QuoteRequest{Spec: spec})
	chosen := menu.Contracts[slices.IndexFunc(menu.Contracts, func(c market.QuotedContract) bool { return c.Declared })]
	spec.Contract, spec.Budget = chosen.ID, chosen.Budget
	return g, spec
}

// A client repeats a submission while the site still works on the first try. Meanwhile the contract of the submission
// has expired, so a new submission would be refused. The site must not refuse the repetition. Otherwise the first try
// could become a job after the client was told that there is no job.
func TestNothingIsRefusedWhileItIsEntered(t *testing.T) {
	for name, several := range map[string]bool{"alone": false, "several in a request": true} {
		submit := func(g *grid, spec jobmsg.JobSpec) (messages.JobID, error) {
			if !several {
				reply, err := once[jobmsg.SubmitReply](g.fixture, "alice", messages.VerbSubmit, jobmsg.SubmitRequest{Key: "k", Spec: spec})
				return reply.Job, err
			}
			reply, err := once[jobmsg.SubmitReply](g.fixture, "alice", messages.VerbSubmit, jobmsg.SubmitRequest{Jobs: []jobmsg.NewJob{{Key: "k", Spec: spec}}})
			switch {
			case err != nil:
				return 0, err
			case reply.Jobs[0].Error != nil:
				return 0, reply.Jobs[0].Error
			}
			return reply.Jobs[0].Job, nil
		}
		t.Run(name+", in the log", func(t *testing.T) {
			g, spec := agreed(t)
			g.log.LoseNext(mailbox.LoseForNow)
			_, err := submit(g, spec)
			wantKind(t, err, messages.Unknown)
			g.now.Add(10_000_000)
			if id, err := submit(g, spec); err != nil || id == 0 {
				t.Errorf("the second try of a request that is on its way: job %v, %v", id, err)
			}
		})
	}
}

// The rules become stricter. A repeated submission whose job is in the book must not be refused.
func TestARepeatedRequestIsKnownUnderOtherRules(t *testing.T) {
	f := start(t)
	job := f.submit("alice", "k", oneStage(3)).Job
	strict := f.Markets[0]
	strict.MaxTasks = 2
	must[market.ApplyReply](f, "operator", market.VerbApply, market.ApplyRequest{Markets: []market.Market{strict}})
	if again := f.submit("alice", "k", oneStage(3)).Job; again != job {
		t.Errorf("job %v, want %v", again, job)
	}
	_, err := call[jobmsg.SubmitReply](f, "alice", messages.VerbSubmit, jobmsg.SubmitRequest{Key: "new", Spec: oneStage(3)})
	wantKind(t, err, messages.TooLarge)
}

// A client sends the same submission twice. The bank refuses the credits for one of the two, and then accepts the
// other. The client must not get a refusal.
func TestNothingIsRefusedWhileTheBankIsAsked(t *testing.T) {
	f := start(t)
	must[market.MarketsReply](f, "alice", messages.VerbMarkets, messages.Empty{}) // wait until the leader serves
	f.bank.limit = 0
	f.bank.meet(make(chan chan struct{}, 2))
	submit := func() (jobmsg.SubmitReply, error) {
		return once[jobmsg.SubmitReply](f, "alice", messages.VerbSubmit, jobmsg.SubmitRequest{Key: "k", Spec: oneStage(1)})
	}
	first := make(chan jobmsg.SubmitReply, 1)
	go func() {
		reply, err := submit()
		if err != nil {
			t.Error(err)
		}
		first <- reply
	}()
	waits := <-f.bank.arrived
	second := make(chan error, 1)
	go func() {
		_, err := submit()
		second <- err
	}()
	close(<-f.bank.arrived)
	if err := <-second; !messages.KindOf(err).Retriable() {
		t.Errorf("while the first try waits: %v", err)
	}
	f.bank.mu.Lock()
	f.bank.limit = 1000 * messages.Credit
	f.bank.mu.Unlock()
	close(waits)
	reply := <-first
	if again, err := submit(); err != nil || again.Job != reply.Job || reply.Job == 0 {
		t.Errorf("then job %v, %v; want job %v", again.Job, err, reply.Job)
	}
}

// A request for a change is repeated after the rules have become stricter. The first request may already be in the
// book, or only on its way in the log. In both cases the repetition must not be refused.
func TestAChangeIsKnownUnderOtherRules(t *testing.T) {
	f := start(t)
	id := f.submit("alice", "k", oneStage(3)).Job
	change := jobmsg.ChangeRequest{Key: "c", Job: id, Name: "other"}
	f.log.LoseNext(mailbox.LoseForNow)
	_, err := once[jobmsg.ChangeReply](f, "alice", jobmsg.VerbChange, change)
	wantKind(t, err, messages.Unknown)
	strict := f.Markets[0]
	strict.MaxTasks = 2
	must[market.ApplyReply](f, "operator", market.VerbApply, market.ApplyRequest{Markets: []market.Market{strict}})
	if _, err := call[jobmsg.ChangeReply](f, "alice", jobmsg.VerbChange, change); err != nil {
		t.Error(err)
	}
	if j := must[jobmsg.JobDetail](f, "alice", messages.VerbJob, jobmsg.JobRequest{Job: id}); j.Name != "other" {
		t.Errorf("the job is called %q", j.Name)
	}
}

// A job from another site has been proposed, and is not committed yet. In this state the job must not be refused, and
// its authorisation must not be given back. It must be possible to cancel it.
func TestAVisitorOnItsWayIsNotGivenUp(t *testing.T) {
	for name, then := range map[string]func(*fixture, clearing.PeerSubmitRequest) (messages.JobID, error){
		"sent again": func(f *fixture, visit clearing.PeerSubmitRequest) (messages.JobID, error) {
			reply, err := once[clearing.PeerSubmitReply](f, "$east", clearing.VerbPeerSubmit, visit)
			return reply.Job.Job, err
		},
		"cancelled": func(f *fixture, visit clearing.PeerSubmitRequest) (messages.JobID, error) {
			reply, err := once[jobmsg.CancelReply](f, "$east", clearing.VerbPeerCancel, jobmsg.JobRequest{Job: visit.Job})
			return reply.Job, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, now := ruled(t, quota.Rules{})
			endpoint := func(verb string) bus.Endpoint {
				return bus.Endpoint{Name: verb, Subject: messages.Subject("west", messages.Bank, verb, "*"),
					Handle: func(_ context.Context, r bus.Request) ([]byte, error) {
						if bytes.Contains(r.Payload, []byte("the job was refused")) {
							t.Error("the authorisation is given back")
						}
						return wire.Marshal(clearing.ClearingReply{}, r.Format)
					}}
			}
			sub, err := f.net.Connect("$bank").Serve(bus.Service{Name: "clearing", Version: "1.0.0", Endpoints: []bus.Endpoint{
				endpoint(clearing.VerbAccept), endpoint(clearing.VerbCharge)}})
			if err != nil {
				t.Fatal(err)
			}
			defer sub.Stop()
			must[market.MarketsReply](f, "alice", messages.VerbMarkets, messages.Empty{}) // wait until the leader serves
			visit := clearing.PeerSubmitRequest{Job: 5, Account: "ada", Spec: oneStage(1), Authorisation: clearing.SignedAuthorisation{Authorisation: clearing.Authorisation{
				Issuer: "east", Peer: "west", ID: clearing.RemoteJobAuthorisation(5), Account: "ada", Member: "ada", Amount: 10 * messages.Credit,
				Issued: f.Clock(), Interval: 60 * minute, Margin: clearing.MaxClockSkew}}}
			f.log.LoseNext(mailbox.LoseForNow)
			_, err = once[clearing.PeerSubmitReply](f, "$east", clearing.VerbPeerSubmit, visit)
			wantKind(t, err, messages.Unknown)
			now.Add(int64(60 * minute / 1000))
			if id, err := then(f, visit); err != nil || id != 5 {
				t.Errorf("job %v, %v", id, err)
			}
		})
	}
}
