package auctioneer

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
)

// secrets has the secret words of a bid, and its secret numbers as their first digits.
type secrets struct{ words, numbers []string }

// in returns the secrets that a reply contains. A number of four or more digits counts as found if its first four
// digits are found.
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

// sealedMarkets returns one market of each mechanism, with the secrets of Alice's bid, which waits there alone.
func sealedMarkets() map[messages.Name]struct {
	market messages.Market
	slots  int
	change func(*messages.JobSpec)
	secrets
} {
	type bid = struct {
		market messages.Market
		slots  int
		change func(*messages.JobSpec)
		secrets
	}
	market := func(mechanism messages.Name) messages.Market {
		return messages.Market{Name: "m", Mechanism: mechanism, Classes: []messages.Name{"cpu"}}
	}
	hidden := []string{"alice", "quarryname"}
	posted := secrets{words: []string{"quarryname"}, numbers: []string{"79193"}}
	gang := func(s *messages.JobSpec) { s.Stages[0].Tasks = 67 }
	return map[messages.Name]bid{
		messages.FIFO:         {market(messages.FIFO), 1, func(*messages.JobSpec) {}, posted},
		messages.FairShare:    {market(messages.FairShare), 1, func(*messages.JobSpec) {}, posted},
		messages.Backfill:     {market(messages.Backfill), 1, func(s *messages.JobSpec) { s.Length = 277 * second }, secrets{posted.words, append(posted.numbers, "277", "437")}},
		messages.Proportional: {market(messages.Proportional), 1, gang, secrets{hidden, []string{"79193", "67"}}},
		messages.HighestBid: {market(messages.HighestBid), 1, func(s *messages.JobSpec) { gang(s); s.Rate = 31_337_771 },
			secrets{hidden, []string{"79193", "67", "31337"}}},
		messages.DeadlineBid: {market(messages.DeadlineBid), 1, func(s *messages.JobSpec) {
			s.Value, s.Length, s.Deadline = 6131_713_331, 277*second, epoch.Add(4751*second)
		}, secrets{hidden, []string{"79193", "6131", "277", "4751", "218989"}}}, // the value of a unit is also secret
		messages.BatchQueue: {func() messages.Market { m := market(messages.BatchQueue); m.PriorJobs = likelyJobs; return m }(), 97, func(s *messages.JobSpec) {
			gang(s)
			s.Stages[0].Gang = true
			s.Value, s.Length, s.Delay = 6131_713_331, 277*second, 3_187_003
		}, secrets{hidden, []string{"79193", "6131", "277", "67", "3187", "8827"}}}, // the delay for a length is also secret
		messages.Reservation: {market(messages.Reservation), 97, func(s *messages.JobSpec) {
			gang(s)
			s.Value, s.Length = 6131_713_331, 277*second
		}, secrets{hidden, []string{"79193", "6131", "277", "67"}}},
		messages.ContractMenu: {market(messages.ContractMenu), 1, func(s *messages.JobSpec) {
			s.Length, s.Valuation = 277*second, &messages.Valuation{Class: messages.LinearDecay, Max: 6131.713331, Mu: 4751, Delta: 3187}
		}, secrets{hidden, []string{"79193", "6131", "277", "4751", "3187"}}},
	}
}

// TestSealedBids: Alice bids, and Eve, who has no job, asks everything that a user can ask. No reply may have Alice's
// name, the name of her job, or a number of her bid.
func TestSealedBids(t *testing.T) {
	for mechanism, bid := range sealedMarkets() {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel() // some replies wait for the estimator, which does not exist
			g := newGrid(t, bid.slots, bid.market)
			jobs := 2
			if mechanism == messages.BatchQueue { // a running job leaves too few slots, so that Alice's job waits
				jobs++
				g.enter("carol", "c", 50, func(s *messages.JobSpec) { s.Stages[0].Gang, s.Length = true, 1000*second })
				await.Until(t, "the first is to run", func() bool {
					return len(must[messages.ReservationsReply](g.fixture, "eve", messages.VerbReservations, messages.ReservationsRequest{}).Reservations) == 1
				})
			}
			var ids []messages.JobID
			for _, key := range []string{"a", "b"} { // the second job makes the waiting bid set the price
				spec := bids(1, func(s *messages.JobSpec) { s.Name, s.Budget = "quarryname", 7919_317_017; bid.change(s) })
				ids = append(ids, g.submit("alice", key, g.contracted("alice", spec)).Job)
			}
			await.Until(t, "the market knows the jobs", func() bool {
				return must[messages.MarketsReply](g.fixture, "alice", messages.VerbMarkets, messages.Empty{}).Markets[0].Waiting == jobs
			})
			g.pass(11 * second) // a unit begins in the market with deadlines
			await.Until(t, "the history has the bid", func() bool {
				past := must[messages.HistoryReply](g.fixture, "operator", messages.VerbHistory, messages.HistoryRequest{Market: "m"})
				return len(past.At) > 0 && past.Classes[0].Pending[len(past.At)-1] > 0
			})
			for _, asked := range g.everything("eve", ids[0], bid.change) {
				if found := bid.secrets.in(asked.reply, asked.err); len(found) > 0 {
					data, _ := json.Marshal(asked.reply)
					t.Errorf("%s tells %v: %s %v", asked.verb, found, data, asked.err)
				}
			}
			if top := must[messages.MarketsReply](g.fixture, "alice", messages.VerbMarkets, messages.Empty{}).Markets[0].Top; len(top) != 2 || top[0].Name != "quarryname" || top[0].Budget < 7919_000_000 {
				t.Errorf("Alice sees of her own jobs: %+v", top)
			}
			if top := must[messages.MarketsReply](g.fixture, "operator", messages.VerbMarkets, messages.Empty{}).Markets[0].Top; len(top) != jobs || top[0].Account != "alice" || top[0].Budget < 7919_000_000 {
				t.Errorf("an operator sees: %+v", top)
			}
		})
	}
}

// contracted submits a job with a contract, in a market that sells contracts.
func (g *grid) contracted(who messages.Name, spec messages.JobSpec) messages.JobSpec {
	g.t.Helper()
	if g.Markets[0].Mechanism != messages.ContractMenu {
		return spec
	}
	menu := must[messages.QuoteReply](g.fixture, who, messages.VerbQuote, messages.QuoteRequest{Spec: spec})
	declared := slices.IndexFunc(menu.Contracts, func(c messages.QuotedContract) bool { return c.Declared })
	spec.Contract, spec.Budget = menu.Contracts[declared].ID, max(spec.Budget, menu.Contracts[declared].Budget)
	return spec
}

type answered struct {
	verb  string
	reply any
	err   error
}

// everything returns the answers to all requests that a user can make. Requests about a job ask about another
// account's job.
func (g *grid) everything(who messages.Name, another messages.JobID, change func(*messages.JobSpec)) []answered {
	spec := bids(1, func(s *messages.JobSpec) {
		change(s) // the fields that the market needs, with numbers of its own
		s.Stages[0].Tasks, s.Budget = 1, 5*messages.Credit
		s.Value, s.Delay, s.Rate = min(s.Value, messages.Credit), min(s.Delay, messages.Credit), min(s.Rate, 2*messages.Credit)
		s.Length = min(s.Length, 10*second)
		if s.Deadline != 0 {
			s.Deadline = epoch.Add(900 * second)
		}
		if s.Valuation != nil {
			s.Valuation = &messages.Valuation{Class: messages.LinearDecay, Max: 20, Mu: 60, Delta: 60}
		}
	})
	after := spec
	after.AfterJobs = []messages.JobID{another}
	job := messages.JobRequest{Job: another}
	output := messages.OutputRequest{Node: "n1", Logs: messages.LogsRequest{Attempt: messages.Attempt{Task: messages.TaskRef{Job: another}, Number: 1}}}
	return []answered{
		told[messages.MarketsReply](g, who, messages.VerbMarkets, messages.Empty{}),
		told[messages.NodesReply](g, who, messages.VerbNodes, messages.Empty{}),
		told[messages.StatusReply](g, who, messages.VerbStatus, messages.Empty{}),
		told[messages.ReservationsReply](g, who, messages.VerbReservations, messages.ReservationsRequest{}),
		told[messages.HistoryReply](g, who, messages.VerbHistory, messages.HistoryRequest{Market: "m"}),
		told[messages.HistoryReply](g, who, messages.VerbHistory, messages.HistoryRequest{Node: "n1"}),
		told[messages.JobsReply](g, who, messages.VerbJobs, messages.JobsRequest{}),
		told[messages.JobsReply](g, who, messages.VerbJobs, messages.JobsRequest{All: true}),
		told[messages.JobDetail](g, who, messages.VerbJob, job),
		told[messages.WhyReply](g, who, messages.VerbWhy, job),
		told[messages.WhatIfReply](g, who, messages.VerbWhatIf, messages.WhatIfRequest{Job: another, Bid: 9000 * messages.Credit}),
		told[messages.CancelReply](g, who, messages.VerbCancel, job),
		told[messages.TasksReply](g, who, messages.VerbTasks, messages.TasksRequest{Job: another}),
		told[messages.LogsReply](g, who, messages.VerbOutput, output),
		told[messages.OffersReply](g, who, messages.VerbOffers, messages.OffersRequest{Spec: spec, Sites: []messages.Name{"west"}}),
		told[messages.QuoteReply](g, who, messages.VerbQuote, messages.QuoteRequest{Spec: spec}),
		told[messages.SubmitReply](g, who, messages.VerbSubmit, messages.SubmitRequest{Key: "e", Spec: after, DryRun: true}),
	}
}

func told[Reply any](g *grid, who messages.Name, verb string, request any) answered {
	reply, err := call[Reply](g.fixture, who, verb, request)
	return answered{verb, reply, err}
}
