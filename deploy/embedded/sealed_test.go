package embedded

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

// TestSealedBidOnALiveSite submits a sealed bid of Alice for a reservation. No answer of the auctioneer, the bank or
// the estimator to Carol may contain the bid.
func TestSealedBidOnALiveSite(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	c.Replicas = 1
	c.Markets = []market.Market{{Name: "night", Mechanism: market.Reservation, Classes: []messages.Name{"map"}, Cycle: messages.Duration(24 * time.Hour)}}
	s := start(t, c)
	defer closeSite(t, s)
	alice, carol := connect(t, s, "alice"), connect(t, s, "carol")
	bid := jobmsg.JobSpec{Name: "quarryname", Budget: 37_917_017, Value: 31_713_331, Length: messages.Duration(4751 * time.Second),
		Stages: []jobmsg.Stage{{Name: "main", Class: "map", Tasks: 1, Script: "true"}}}
	id := alice.submit("sealed", bid)
	for operator, seen := range map[messages.Name]bool{"operator": true, "carol": false} {
		u := connect(t, s, operator)
		u.await("the market knows the bid", func() bool {
			return request[market.MarketsReply](u, messages.Auctioneer, messages.VerbMarkets, messages.Empty{}).Markets[0].Waiting == 1
		})
		if data, _ := json.Marshal(request[market.MarketsReply](u, messages.Auctioneer, messages.VerbMarkets, messages.Empty{})); strings.Contains(string(data), "quarryname") != seen {
			t.Errorf("%s sees %s", operator, data)
		}
	}
	own := bid
	own.Name, own.Budget, own.Value, own.Length = "mine", 5*messages.Credit, messages.Credit, messages.Duration(time.Hour)
	job := jobmsg.JobRequest{Job: id}
	for _, asked := range []struct {
		actor, verb string
		request     any
	}{
		{messages.Auctioneer, messages.VerbMarkets, messages.Empty{}}, {messages.Auctioneer, messages.VerbNodes, messages.Empty{}},
		{messages.Auctioneer, market.VerbReservations, market.ReservationsRequest{}}, {messages.Auctioneer, messages.VerbJobs, jobmsg.JobsRequest{}},
		{messages.Auctioneer, messages.VerbJob, job}, {messages.Auctioneer, messages.VerbWhy, job}, {messages.Auctioneer, messages.VerbTasks, jobmsg.TasksRequest{Job: id}},
		{messages.Auctioneer, clearing.VerbOffers, clearing.OffersRequest{Spec: own}}, {messages.Auctioneer, market.VerbQuote, market.QuoteRequest{Spec: own}},
		{messages.Auctioneer, messages.VerbSubmit, jobmsg.SubmitRequest{Key: "dry", Spec: own, DryRun: true}},
		{messages.Bank, messages.VerbBooks, money.BooksRequest{}}, {messages.Bank, messages.VerbAccounts, money.AccountsRequest{}},
		{messages.Bank, messages.VerbStatement, money.StatementRequest{}}, {messages.Bank, money.VerbJournal, money.JournalRequest{}},
		{messages.Estimator, market.VerbEstimate, market.EstimateRequest{Spec: own}}, {messages.Estimator, market.VerbClasses, messages.Empty{}},
	} {
		payload, err := json.Marshal(asked.request)
		if err != nil {
			t.Fatal(err)
		}
		reply := timestamps.ReplaceAllString(inJSON(t, s, "carol", asked.actor, asked.verb, payload), "")
		for _, secret := range []string{"alice", "quarryname", "37.9", "37917", "31.7", "31713", "4751", "1h19m"} {
			if strings.Contains(reply, secret) {
				t.Errorf("%s %s tells %q: %s", asked.actor, asked.verb, secret, reply)
			}
		}
	}
	_, err := bus.Call[agentmsg.Vector](within(t), carol.bus, messages.Subject("west", messages.Auctioneer, messages.VerbVector, "carol"), agentmsg.VectorRequest{Market: "night"})
	if messages.KindOf(err) != messages.PermissionDenied {
		t.Errorf("a user asks for a vector: %v", err)
	}
}

// A test searches the site's answers for the digits of a bid. timestamps matches points in time in the answers. The
// test leaves them out, because their digits may by chance equal the digits of the bid.
var timestamps = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`)

func inJSON(t *testing.T, s *Site, who messages.Name, actor, verb string, payload []byte) string {
	t.Helper()
	nc := fort{t, s}.raw(who)
	m := &nats.Msg{Subject: messages.Subject("west", actor, verb, who), Header: nats.Header{"Content-Type": {"application/json"}}, Data: payload}
	reply, err := nc.RequestMsg(m, patience)
	if err != nil {
		t.Fatalf("%s %s: %v", actor, verb, err)
	}
	return string(reply.Data) + reply.Header.Get("Nats-Service-Error") + reply.Header.Get("Nats-Service-Error-Code")
}
