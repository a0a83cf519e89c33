package market

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// If the configuration of a market has a fault, the error must name it. Each parameter must be accepted only for
// mechanisms that use it.
func TestMarketParameters(t *testing.T) {
	half, nan, negative := 0.5, math.NaN(), messages.Price(-messages.Credit)
	second := messages.Duration(time.Second)
	for _, c := range []struct {
		mechanism, want string
		change          func(*Market)
	}{
		{HighestBid, "<nil>", func(m *Market) { m.Algorithm, m.Price, m.Capped, m.Preemption = "HB", "first", true, PreemptCancel }},
		{DeadlineBid, "<nil>", func(m *Market) { m.Lambda, m.Slot, m.Scale, m.Preemption = &half, second, 8, PreemptRequeue }},
		{BatchQueue, "<nil>", func(m *Market) { m.Draws, m.GangTimeout = 100, second }},
		{Reservation, "<nil>", func(m *Market) { m.Cycle, m.Granule, m.Orders = 60*second, second, 5 }},
		{ContractMenu, "<nil>", func(m *Market) { m.Quote, m.Replicas, m.LateOnly = second, 10, true }},
		{FairShare, "<nil>", func(m *Market) { m.HalfLife, m.MaxJobs, m.MaxTasks = second, 3, 4 }},
		{Backfill, "<nil>", func(m *Market) { m.Mode = "conservative" }},
		{BatchQueue, "<nil>", func(m *Market) {
			m.Mode, m.PriorJobs = "full", []QueuedType{{Value: messages.Credit, Delay: 1, Length: second, Width: 2, Weight: 0.5}}
		}},
		{ContractMenu, "<nil>", func(m *Market) { m.Prior = []job.Valuation{{Class: job.Hard, Max: 5, Deadline: 60}} }},
		{FairShare, "<nil>", func(m *Market) { m.Weights = job.Weights{{Class: "alice", Weight: 2}, {Class: "bob", Weight: 0.5}} }},
		{FairShare, "<nil>", func(m *Market) { m.Weights = job.Weights{{Class: "@west", Weight: 2}, {Class: "alice", Weight: 1}} }},
		{FairShare, "weights: \"@\" is no name", func(m *Market) { m.Weights = job.Weights{{Class: "@", Weight: 2}} }},
		{FairShare, "weights.alice: must be a finite number above 0, is NaN", func(m *Market) { m.Weights = job.Weights{{Class: "alice", Weight: nan}} }},
		{FairShare, "weights: \"Al ice\" is no name", func(m *Market) { m.Weights = job.Weights{{Class: "Al ice", Weight: 1}} }},
		{ContractMenu, "prior[1].class: \"soft\"", func(m *Market) { m.Prior = []job.Valuation{{Class: job.Hard}, {Class: "soft"}} }},
		{BatchQueue, "prior_jobs[0].delay: must be from 0", func(m *Market) { m.PriorJobs = []QueuedType{{Delay: -1}} }},
		{BatchQueue, "prior_jobs[0].weight: must be above 0", func(m *Market) { m.PriorJobs = []QueuedType{{Weight: nan}} }},
		{BatchQueue, "prior: 4097 types are more than", func(m *Market) { m.PriorJobs = make([]QueuedType, 4097) }},
		{Backfill, "<nil>", func(m *Market) {
			m.Allow, m.Deny, m.DefaultFor = []messages.Name{"physics", "bob@west"}, []messages.Name{"@west"}, []messages.Name{"Physics.1"}
		}},
		{Backfill, "allow[0]: \"@\" must be an account", func(m *Market) { m.Allow = []messages.Name{"@"} }},
		{Backfill, "deny[1]: \"Al ice\" must be an account", func(m *Market) { m.Deny = []messages.Name{"bob", "Al ice"} }},
		{Backfill, "default_for[1]: \"bob\" is given twice", func(m *Market) { m.DefaultFor = []messages.Name{"bob", "bob"} }},
		{Backfill, "<nil>", func(m *Market) {
			m.AtOnce = AtOnce{Account: Bound{Slots: 4, GPUs: 1}, Of: []OwnerBound{{Name: "physics"}, {Name: "@west", Tasks: 9}}}
		}},
		{Backfill, "at_once.account.slots: -1 must be from 1", func(m *Market) { m.AtOnce.Account.Slots = -1 }},
		{Backfill, "at_once.of[0].name: \"al ice\" must be an account", func(m *Market) { m.AtOnce.Of = []OwnerBound{{Name: "al ice"}} }},
		{Backfill, "at_once.of[1].name: \"bob\" is given twice", func(m *Market) { m.AtOnce.Of = []OwnerBound{{Name: "bob"}, {Name: "bob"}} }},
		{HighestBid, "algorithm: \"FCFS\" is not one of", func(m *Market) { m.Algorithm = "FCFS" }},
		{HighestBid, "price: \"second\" is not one of", func(m *Market) { m.Price = "second" }},
		{HighestBid, "preemption: algorithm NPHB takes no slot", func(m *Market) { m.Algorithm, m.Preemption = "NPHB", PreemptSuspend }},
		{HighestBid, "reserve: -1 must be from 0", func(m *Market) { m.Reserve = &negative }},
		{DeadlineBid, "lambda: NaN must be between", func(m *Market) { m.Lambda = &nan }},
		{DeadlineBid, "scale: NaN must be from 1", func(m *Market) { m.Scale = nan }},
		{DeadlineBid, "slot: -1s must not be negative", func(m *Market) { m.Slot = -second }},
		{Reservation, "cycle: 1s must be a multiple of the granule, 15m0s", func(m *Market) { m.Cycle = second }},
		{Reservation, "granule: 1ns must be at least", func(m *Market) { m.Granule = 1 }},
		{Reservation, "granule: a cycle of 24h0m0s has 8640000 granules of 10ms, above the limit of 1048576", func(m *Market) { m.Granule = second / 100 }},
		{Reservation, "orders: -1 must be from 1", func(m *Market) { m.Orders = -1 }},
		{Reservation, "cycle: 1h0m0s must be a multiple of the granule, 7m0s", func(m *Market) { m.Cycle, m.Granule = 3600*second, 420*second }},
		{BatchQueue, "draws: -1 must be from 1", func(m *Market) { m.Draws = -1 }},
		{ContractMenu, "replicas: 10001 must be from 1", func(m *Market) { m.Replicas = MaxReplicas + 1 }},
		{FairShare, "max_jobs: -1 must be from 1", func(m *Market) { m.MaxJobs = -1 }},
		{FIFO, "nodes[1]: \"n1\" is given twice", func(m *Market) { m.Nodes = []messages.Name{"n1", "n1"} }},
		{FIFO, "nodes[0]: \"N1\" is no name", func(m *Market) { m.Nodes = []messages.Name{"N1"} }},
	} {
		m := Market{Name: "main", Mechanism: c.mechanism, Classes: []messages.Name{"cpu"}}
		c.change(&m)
		if got := fmt.Sprint(m.Validate()); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: want %s…; got %s", c.mechanism, c.want, got)
		}
	}
}

// A job runs at most one task at a time if each of its stages has one task and follows the stage before it.
func TestSerial(t *testing.T) {
	for name, c := range map[string]struct {
		stages []job.Stage
		want   bool
	}{
		"one task":      {[]job.Stage{{Name: "a"}}, true},
		"a chain":       {[]job.Stage{{Name: "a"}, {Name: "b", After: []messages.Name{"a"}}, {Name: "c", After: []messages.Name{"a", "b"}}}, true},
		"two tasks":     {[]job.Stage{{Name: "a", Tasks: 2}}, false},
		"not linked":    {[]job.Stage{{Name: "a"}, {Name: "b"}}, false},
		"a fork":        {[]job.Stage{{Name: "a"}, {Name: "b", After: []messages.Name{"a"}}, {Name: "c", After: []messages.Name{"a"}}}, false},
		"the other way": {[]job.Stage{{Name: "b", After: []messages.Name{"a"}}, {Name: "a"}}, false},
		"a wide end":    {[]job.Stage{{Name: "a"}, {Name: "b", After: []messages.Name{"a"}, Tasks: 2}}, false},
	} {
		if got := (&job.JobSpec{Stages: c.stages}).Serial(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A bid with an invalid field must be refused with the name of the field.
func TestBidFields(t *testing.T) {
	good := job.JobSpec{Budget: messages.Credit, Stages: []job.Stage{{Name: "main", Tasks: 3, Command: []string{"true"}}}}
	for want, change := range map[string]func(*job.JobSpec){
		"<nil>": func(s *job.JobSpec) {
			s.Rate, s.Value, s.Delay, s.Length, s.Deadline, s.AfterJobs, s.AfterOK = 1, 2, 3, 4, 5, []messages.JobID{1}, []messages.JobID{1}
		},
		"rate: -0.000001 must not":      func(s *job.JobSpec) { s.Rate = -1 },
		"value: ":                       func(s *job.JobSpec) { s.Value = messages.MaxCredits + 1 },
		"delay: ":                       func(s *job.JobSpec) { s.Delay = -1 },
		"length: -1ns":                  func(s *job.JobSpec) { s.Length = -1 },
		"deadline: ":                    func(s *job.JobSpec) { s.Deadline = -1 },
		"valuation.max: ":               func(s *job.JobSpec) { s.Valuation = &job.Valuation{Class: job.Hard, Max: math.NaN()} },
		"contract: ":                    func(s *job.JobSpec) { s.Contract = "q\n" },
		"after_jobs[1]: job 4 is given": func(s *job.JobSpec) { s.AfterJobs = []messages.JobID{4, 4} },
		"after_ok[0]: 0 is no":          func(s *job.JobSpec) { s.AfterOK = []messages.JobID{0} },
		"after_start[0]: 0 is no":       func(s *job.JobSpec) { s.AfterStart = []messages.JobID{0} },
		"after_failed[1]: job 4 is":     func(s *job.JobSpec) { s.AfterFailed = []messages.JobID{4, 4} },
		"after_any: the job waits":      func(s *job.JobSpec) { s.AfterAny = true },
		"after_any: a job is in two": func(s *job.JobSpec) {
			s.AfterAny, s.AfterOK, s.AfterStart = true, []messages.JobID{1}, []messages.JobID{2, 1}
		},
		"start_delay: the delay begins":  func(s *job.JobSpec) { s.StartDelay = 1 },
		"start_delay: -1ns":              func(s *job.JobSpec) { s.StartDelay, s.AfterStart = -1, []messages.JobID{1} },
		"after_each: the job must be":    func(s *job.JobSpec) { s.AfterEach = 1 },
		"after_jobs: 1001 jobs are more": func(s *job.JobSpec) { s.AfterJobs = make([]messages.JobID, 1001) },
		"stages[0].max_running: allows 2 tasks": func(s *job.JobSpec) {
			s.Stages = []job.Stage{{Name: "main", Tasks: 3, Command: []string{"true"}, Gang: true, MaxRunning: 2}}
		},
	} {
		s := good
		change(&s)
		if got := fmt.Sprint(s.Validate()); !strings.HasPrefix(got, want) {
			t.Errorf("want %s…; got %s", want, got)
		}
	}
	good.Stages = []job.Stage{{Tasks: 3}, {Tasks: 7, Gang: true}, {Tasks: 5, Gang: true}}
	if w := good.Width(); w != 7 {
		t.Errorf("width %d, want that of the widest gang, 7", w)
	}
}

func TestTradeRequests(t *testing.T) {
	spec := job.JobSpec{Stages: []job.Stage{{Name: "main", Command: []string{"true"}}}}
	taken := spec
	taken.Contract = "q1-1"
	for want, r := range map[string]interface{ Validate() error }{
		"<nil>":                  &QuoteRequest{Spec: spec},
		"contract: a job with":   &QuoteRequest{Spec: taken},
		"stages: are missing":    &QuoteRequest{},
		"markets: is empty":      &ApplyRequest{},
		"markets: 1001 is above": &ApplyRequest{Markets: make([]Market, 1001)},
		"node: \"\" is no name":  &DrainRequest{},
		"notice: -1ns must not":  &DrainRequest{Node: "n1", Notice: new(messages.Duration(-1))},
	} {
		if got := fmt.Sprint(r.Validate()); !strings.HasPrefix(got, want) {
			t.Errorf("want %s…; got %s", want, got)
		}
	}
}
