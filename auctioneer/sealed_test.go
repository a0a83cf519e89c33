package auctioneer

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/clearing"
	jobmsg "github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

// secrets has the secret words of a bid, and the first digits of its secret numbers.
type secrets struct{ words, numbers []string }

// The method `in` returns the secrets that a reply contains. It searches only the first four digits of a secret number.
func (s secrets) in(reply any, err error) (found []string) {
	data, _ := json.Marshal(reply)
	text := string(data)
	if err != nil {
		text += err.Error()
	}
	for _, word := range s.words {
		if regexp.MustCompile(`\b` + word + `\b`).MatchString(text) {
			found = append(found, word)
		}
	}
	for _, token := range regexp.MustCompile(`[0-9]+(\.[0-9]+)?`).FindAllString(text, -1) {
		digits := strings.Trim(strings.Replace(token, ".", "", 1), "0")
		for _, number := range s.numbers {
			if digits == number || len(number) >= 4 && strings.HasPrefix(digits, number[:4]) {
				found = append(found, token)
			}
		}
	}
	return found
}

// For each mechanism, sealedMarkets returns a market in which only Alice's bid waits. It also returns the secrets of
// this bid.
func sealedMarkets() map[messages.Name]struct {
	market marketmsg.Market
	slots  int
	change func(*jobmsg.JobSpec)
	secrets
} {
	type bid = struct {
		market marketmsg.Market
		slots  int
		change func(*jobmsg.JobSpec)
		secrets
	}
	market := func(mechanism messages.Name) marketmsg.Market {
		return marketmsg.Market{Name: "m", Mechanism: mechanism, Classes: []messages.Name{"cpu"}}
	}
	hidden := []string{"alice", "quarryname"}
	posted := secrets{words: []string{"quarryname"}, numbers: []string{"79193"}}
	gang := func(s *jobmsg.JobSpec) { s.Stages[0].Tasks = 67 }
	return map[messages.Name]bid{
		marketmsg.FIFO:         {market(marketmsg.FIFO), 1, func(*jobmsg.JobSpec) {}, posted},
		marketmsg.FairShare:    {market(marketmsg.FairShare), 1, func(*jobmsg.JobSpec) {}, posted},
		marketmsg.Backfill:     {market(marketmsg.Backfill), 1, func(s *jobmsg.JobSpec) { s.Length = 277 * second }, secrets{posted.words, append(posted.numbers, "277", "437")}},
		marketmsg.Proportional: {market(marketmsg.Proportional), 1, gang, secrets{hidden, []string{"79193", "67"}}},
		marketmsg.HighestBid: {market(marketmsg.HighestBid), 1, func(s *jobmsg.JobSpec) { gang(s); s.Rate = 31_337_771 },
			secrets{hidden, []string{"79193", "67", "31337"}}},
		marketmsg.DeadlineBid: {market(marketmsg.DeadlineBid), 1, func(s *jobmsg.JobSpec) {
			s.Value, s.Length, s.Deadline = 6131_713_331, 277*second, epoch.Add(4751*second)
		}, secrets{hidden, []string{"79193", "6131", "277", "4751", "218989"}}}, // the value of a unit is also secret
		marketmsg.BatchQueue: {func() marketmsg.Market { m := market(marketmsg.BatchQueue); m.PriorJobs = likelyJobs; return m }(), 97, func(s *jobmsg.JobSpec) {
			gang(s)
			s.Stages[0].Gang = true
			s.Value, s.Length, s.Delay = 6131_713_331, 277*second, 3_187_003
		}, secrets{hidden, []string{"79193", "6131", "277", "67", "3187", "8827"}}}, // the delay for a length is also secret
		marketmsg.Reservation: {market(marketmsg.Reservation), 97, func(s *jobmsg.JobSpec) {
			gang(s)
			s.Value, s.Length = 6131_713_331, 277*second
		}, secrets{hidden, []string{"79193", "6131", "277", "67"}}},
		marketmsg.ContractMenu: {market(marketmsg.ContractMenu), 1, func(s *jobmsg.JobSpec) {
			s.Length, s.Valuation = 277*second, &jobmsg.Valuation{Class: jobmsg.LinearDecay, Max: 6131.713331, Mu: 4751, Delta: 3187}
		}, secrets{hidden, []string{"79193", "6131", "277", "4751", "3187"}}},
	}
}

// Alice bids. Eve, who has no job, sends every request that a user can send. No reply may contain Alice's name, the
// name of her job, or a number from her bid.
func TestSealedBids(t *testing.T) {
	for mechanism, bid := range sealedMarkets() {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel() // some replies wait for the estimator, which does not exist
			g := newGrid(t, bid.slots, bid.market)
			jobs := 2
			if mechanism == marketmsg.BatchQueue { // a running job leaves too few slots, so that Alice's job waits
				jobs++
				g.enter("carol", "c", 50, func(s *jobmsg.JobSpec) { s.Stages[0].Gang, s.Length = true, 1000*second })
				await.Until(t, "the first is to run", func() bool {
					return len(must[marketmsg.ReservationsReply](g.fixture, "eve", marketmsg.VerbReservations, marketmsg.ReservationsRequest{}).Reservations) == 1
				})
			}
			var ids []messages.JobID
			for _, key := range []string{"a", "b"} { // the second job makes the waiting bid set the price
				spec := bids(1, func(s *jobmsg.JobSpec) { s.Name, s.Budget = "quarryname", 7919_317_017; bid.change(s) })
				ids = append(ids, g.submit("alice", key, g.contracted("alice", spec)).Job)
			}
			await.Until(t, "the market knows the jobs", func() bool {
				return must[marketmsg.MarketsReply](g.fixture, "alice", messages.VerbMarkets, messages.Empty{}).Markets[0].Waiting == jobs
			})
			g.pass(11 * second) // let a unit of time begin in the market with deadlines
			await.Until(t, "the history has the bid", func() bool {
				past := must[marketmsg.HistoryReply](g.fixture, "operator", marketmsg.VerbHistory, marketmsg.HistoryRequest{Market: "m"})
				return len(past.At) > 0 && past.Classes[0].Pending[len(past.At)-1] > 0
			})
			for _, asked := range g.everything("eve", ids[0], bid.change) {
				if found := bid.secrets.in(asked.reply, asked.err); len(found) > 0 {
					data, _ := json.Marshal(asked.reply)
					t.Errorf("%s tells %v: %s %v", asked.verb, found, data, asked.err)
				}
			}
			if top := must[marketmsg.MarketsReply](g.fixture, "alice", messages.VerbMarkets, messages.Empty{}).Markets[0].Top; len(top) != 2 || top[0].Name != "quarryname" || top[0].Budget < 7919_000_000 {
				t.Errorf("Alice sees of her own jobs: %+v", top)
			}
			if top := must[marketmsg.MarketsReply](g.fixture, "operator", messages.VerbMarkets, messages.Empty{}).Markets[0].Top; len(top) != jobs || top[0].Account != "alice" || top[0].Budget < 7919_000_000 {
				t.Errorf("an operator sees: %+v", top)
			}
		})
	}
}

func (g *grid) contracted(who messages.Name, spec jobmsg.JobSpec) jobmsg.JobSpec {
	g.t.Helper()
	if g.Markets[0].Mechanism != marketmsg.ContractMenu {
		return spec
	}
	menu := must[marketmsg.QuoteReply](g.fixture, who, marketmsg.VerbQuote, marketmsg.QuoteRequest{Spec: spec})
	declared := slices.IndexFunc(menu.Contracts, func(c marketmsg.QuotedContract) bool { return c.Declared })
	spec.Contract, spec.Budget = menu.Contracts[declared].ID, max(spec.Budget, menu.Contracts[declared].Budget)
	return spec
}

type answered struct {
	verb  string
	reply any
	err   error
}

// everything sends every request that a user can send, and returns the answers. Where a request names a job, it names
// the given job of another account.
func (g *grid) everything(who messages.Name, another messages.JobID, change func(*jobmsg.JobSpec)) []answered {
	spec := bids(1, func(s *jobmsg.JobSpec) {
		change(s) // set the fields that the market needs; the lines below change Alice's numbers
		s.Stages[0].Tasks, s.Budget = 1, 5*messages.Credit
		s.Value, s.Delay, s.Rate = min(s.Value, messages.Credit), min(s.Delay, messages.Credit), min(s.Rate, 2*messages.Credit)
		s.Length = min(s.Length, 10*second)
		if s.Deadline != 0 {
			s.Deadline = epoch.Add(900 * second)
		}
		if s.Valuation != nil {
			s.Valuation = &jobmsg.Valuation{Class: jobmsg.LinearDecay, Max: 20, Mu: 60, Delta: 60}
		}
	})
	after := spec
	after.AfterJobs = []messages.JobID{another}
	job := jobmsg.JobRequest{Job: another}
	output := clearing.OutputRequest{Node: "n1", Logs: agent.LogsRequest{Attempt: messages.Attempt{Task: messages.TaskRef{Job: another}, Number: 1}}}
	return []answered{
		told[marketmsg.MarketsReply](g, who, messages.VerbMarkets, messages.Empty{}),
		told[marketmsg.NodesReply](g, who, messages.VerbNodes, messages.Empty{}),
		told[messages.StatusReply](g, who, messages.VerbStatus, messages.Empty{}),
		told[marketmsg.ReservationsReply](g, who, marketmsg.VerbReservations, marketmsg.ReservationsRequest{}),
		told[marketmsg.HistoryReply](g, who, marketmsg.VerbHistory, marketmsg.HistoryRequest{Market: "m"}),
		told[marketmsg.HistoryReply](g, who, marketmsg.VerbHistory, marketmsg.HistoryRequest{Node: "n1"}),
		told[jobmsg.JobsReply](g, who, messages.VerbJobs, jobmsg.JobsRequest{}),
		told[jobmsg.JobsReply](g, who, messages.VerbJobs, jobmsg.JobsRequest{All: true}),
		told[jobmsg.JobDetail](g, who, messages.VerbJob, job),
		told[marketmsg.WhyReply](g, who, messages.VerbWhy, job),
		told[marketmsg.WhatIfReply](g, who, marketmsg.VerbWhatIf, marketmsg.WhatIfRequest{Job: another, Bid: 9000 * messages.Credit}),
		told[jobmsg.CancelReply](g, who, messages.VerbCancel, job),
		told[jobmsg.TasksReply](g, who, messages.VerbTasks, jobmsg.TasksRequest{Job: another}),
		told[agent.LogsReply](g, who, clearing.VerbOutput, output),
		told[clearing.OffersReply](g, who, clearing.VerbOffers, clearing.OffersRequest{Spec: spec, Sites: []messages.Name{"west"}}),
		told[marketmsg.QuoteReply](g, who, marketmsg.VerbQuote, marketmsg.QuoteRequest{Spec: spec}),
		told[jobmsg.SubmitReply](g, who, messages.VerbSubmit, jobmsg.SubmitRequest{Key: "e", Spec: after, DryRun: true}),
	}
}

func told[Reply any](g *grid, who messages.Name, verb string, request any) answered {
	reply, err := call[Reply](g.fixture, who, verb, request)
	return answered{verb, reply, err}
}
