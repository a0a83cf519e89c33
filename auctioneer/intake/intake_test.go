package intake_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/auctioneer/intake"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

const epoch = messages.Time(1_000_000_000_000_000)

// rules returns the rules of a site with one market of each kind.
func rules() *intake.Rules {
	return &intake.Rules{Site: "west", Deposit: messages.Credit, Pending: 3, Operators: []messages.Name{"operator"}, MostMemory: map[messages.Name]int64{"cpu": 1 << 30},
		Markets: &desk.Markets{Version: 4, Configs: []market.Market{
			{Name: "share", Mechanism: market.Proportional, Classes: []messages.Name{"cpu", "gpu"}, MaxJobs: 2},
			{Name: "menu", Mechanism: market.ContractMenu, Classes: []messages.Name{"cpu"}}}}}
}

func request(key string) *job.SubmitRequest {
	return &job.SubmitRequest{Key: key, Spec: job.JobSpec{Budget: 10 * messages.Credit, Stages: []job.Stage{{Name: "s", Command: []string{"true"}}}}}
}

func prepared(t *testing.T, account messages.Name, q *job.SubmitRequest) *intake.Submission {
	t.Helper()
	s, err := rules().Prepare(account, q)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func entered(t *testing.T, b *book.Book, s *intake.Submission) book.Receipt {
	t.Helper()
	c := s.Command()
	c.At, c.Submit.MarketsVersion = epoch, 0 // no markets were applied to the book
	receipt, ok := b.Apply(c).(book.Receipt)
	if !ok {
		t.Fatalf("refused: %v", b.Apply(c))
	}
	return receipt
}

// Some replicas may still run the earlier release, which supports jobs on several nodes only in some markets. Until the
// upgrade is complete, such jobs must be refused in all other markets.
func TestAllocationsWaitForTheUpgrade(t *testing.T) {
	for _, c := range []struct {
		market  messages.Name
		earlier bool
		want    messages.Kind
	}{{"share", true, 0}, {"spot", true, messages.Conflict}, {"spot", false, 0}} {
		r := rules()
		r.Markets.Configs = append(r.Markets.Configs, market.Market{Name: "spot", Mechanism: market.HighestBid, Classes: []messages.Name{"cpu"}})
		r.Earlier = c.earlier
		q := request("k")
		q.Spec.Market, q.Spec.Stages[0].Tasks, q.Spec.Stages[0].Gang, q.Spec.Stages[0].Allocation = c.market, 2, true, true
		if c.market == "spot" {
			q.Spec.Rate = messages.Credit
		}
		if _, err := r.Prepare("alice", q); messages.KindOf(err) != c.want {
			t.Errorf("market %s, earlier %v: %v", c.market, c.earlier, err)
		}
	}
}

// prepare must fill in everything that the request leaves out. The deposit must be held in addition to the budget.
func TestPrepareFillsInWhatIsLeftOut(t *testing.T) {
	s := prepared(t, "alice", request("k"))
	if st := s.Spec.Stages[0]; s.Spec.Market != "share" || st.Class != "cpu" || s.Payer != "alice" {
		t.Errorf("%+v", s.Spec)
	}
	s.Assume(nil)
	c := s.Command().Submit
	if c.Held != 11*messages.Credit || c.Hold != "job/west/alice/k" || c.MarketsVersion != 5 || c.Most != 3 || c.Spec.Utility == nil || c.Assumed == "" {
		t.Errorf("%+v", c)
	}
	s.Visiting(&book.Visit{Visit: job.Visit{Home: "east", Job: 1}})
	if c := s.Command().Submit; c.Held != 10*messages.Credit || c.Hold != "" {
		t.Errorf("a visiting job holds %v under %q", c.Held, c.Hold)
	}
}

func TestPrepareRefusesWhatTheMarketHasNoRoomFor(t *testing.T) {
	for want, spoil := range map[string]func(*job.JobSpec){
		`no market "none"`:   func(s *job.JobSpec) { s.Market = "none" },
		`no class "tpu"`:     func(s *job.JobSpec) { s.Stages[0].Class = "tpu" },
		"more than the 1024": func(s *job.JobSpec) { s.Stages[0].Memory = 2 << 30 },
		"gang":               func(s *job.JobSpec) { s.Stages[0].Gang, s.Stages[0].Tasks = true, 2 },
		"give the class a weight": func(s *job.JobSpec) {
			s.Utility = &job.Utility{Form: job.Linear, Weights: job.Weights{{Class: "gpu", Weight: 1}}}
		},
	} {
		q := request("k")
		spoil(&q.Spec)
		s, err := rules().Prepare("alice", q)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, and should say %q", err, want)
		}
		if s == nil || s.Account != "alice" || s.Key != "k" || len(s.Digest) == 0 {
			t.Errorf("%s: %+v cannot be looked up", want, s)
		}
	}
}

// A repeated request returns the same job. A different request with the same key, or a job above the account's limit,
// must be refused.
func TestKnown(t *testing.T) {
	b, r := book.New(), rules()
	s := prepared(t, "alice", request("k"))
	if receipt, err := r.Known(b, s); receipt != nil || err != nil {
		t.Fatal(receipt, err)
	}
	first := entered(t, b, s)
	if receipt, err := r.Known(b, prepared(t, "alice", request("k"))); err != nil || receipt == nil || *receipt != first {
		t.Errorf("%+v, %v, want %+v", receipt, err, first)
	}
	other := request("k")
	other.Spec.Budget++
	if _, err := r.Known(b, prepared(t, "alice", other)); messages.KindOf(err) != messages.Conflict {
		t.Errorf("another job under the key: %v", err)
	}
	after := request("k2")
	after.Spec.AfterJobs = []messages.JobID{first.Job}
	if _, err := r.Known(b, prepared(t, "bob", after)); messages.KindOf(err) != messages.NotFound {
		t.Errorf("after another account's job: %v", err)
	}
	entered(t, b, prepared(t, "alice", request("k2")))
	if _, err := r.Known(b, prepared(t, "alice", request("k3"))); messages.KindOf(err) != messages.Exhausted {
		t.Errorf("a third job of two: %v", err)
	}
}

// A submission is refused by the rules of the site's markets. If the site's markets were replaced after the check, the
// answer must ask to try again, and not refuse the submission.
func TestJudged(t *testing.T) {
	b, r := book.New(), rules()
	r.Version = b.MarketsVersion()
	why := messages.Errorf(messages.NotFound, "no such market")
	if err := r.Judged(b, why); err != why {
		t.Errorf("in the same markets: %v", err)
	}
	b.Apply(&book.Command{At: epoch, ApplyMarkets: &book.ApplyMarkets{Markets: r.Configs[:1]}})
	if err := r.Judged(b, why); messages.KindOf(err) != messages.NotLeader {
		t.Errorf("in others: %v", err)
	}
}

// A repeated submission uses the hold of the earlier try. If that hold has expired, the submission must not be
// accepted.
func TestHoldFindsOutWhetherAnEarlierOneHasLapsed(t *testing.T) {
	s := prepared(t, "alice", request("k"))
	list := s.Hold(epoch)
	if len(list) != 2 || list[0].Kind != money.Hold || list[0].Amount != 11*messages.Credit || list[1].Kind != money.Extend || list[1].Pending != list[0].ID {
		t.Fatalf("%+v", list)
	}
	gone := messages.Errorf(messages.Expired, "resolved")
	for want, results := range map[messages.Kind][]money.TransferResult{
		messages.Internal:     nil,
		messages.Insufficient: {{Error: messages.Errorf(messages.Insufficient, "too little")}, {Error: gone}},
		messages.Expired:      {{}, {Error: gone}},
	} {
		if err := s.Secured(results); messages.KindOf(err) != want {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if err := s.Secured(make([]money.TransferResult, 2)); err != nil {
		t.Error(err)
	}
	other := []money.TransferResult{{Error: messages.Errorf(messages.Conflict, "transfer job/west/alice/k was answered before")}, {}}
	if err := s.Secured(other); messages.KindOf(err) != messages.Conflict || !strings.Contains(err.Error(), `key "k" was used`) {
		t.Errorf("under a key of another job: %v", err)
	}
	if list := s.Hold(0); len(list) != 1 || list[0].Expires != 0 {
		t.Errorf("a hold for ever: %+v", list)
	}
}

// Only the account that got a quote can accept its contract, only for the quoted work, and only while the quote is
// valid.
func TestAgree(t *testing.T) {
	b, q := book.New(), request("k")
	q.Spec.Market, q.Spec.Contract = "menu", "q1-1"
	quoted := prepared(t, "alice", q)
	b.Apply(&book.Command{At: epoch, Quote: &book.Quote{Account: "alice", Market: "menu", Work: intake.WorkOf(quoted.Spec),
		Contracts: []job.Contract{{Price: 3 * messages.Credit}}, Expires: epoch + 10}})
	agree := func(account messages.Name, contract string, at messages.Time, tasks int) error {
		q := request("k")
		q.Spec.Market, q.Spec.Contract, q.Spec.Stages[0].Tasks = "menu", contract, tasks
		return prepared(t, account, q).Agree(b, at)
	}
	if err := agree("alice", "q1-1", epoch, 1); err != nil {
		t.Fatal(err)
	}
	for want, err := range map[messages.Kind]error{
		messages.Expired:  agree("alice", "q1-1", epoch+11, 1),
		messages.NotFound: agree("alice", "q1-2", epoch, 1), messages.Invalid: agree("alice", "q1-1", epoch, 2),
	} {
		if messages.KindOf(err) != want {
			t.Errorf("%v, want %v", err, want)
		}
	}
	wide := request("k")
	wide.Spec.Market, wide.Spec.Contract = "menu", "q1-1"
	s := prepared(t, "alice", wide)
	if s.Spec.Stages[0].Width = 2; messages.KindOf(s.Agree(b, epoch)) != messages.Invalid {
		t.Error("a quote for a task of one slot is taken for a task of two")
	}
	if err := agree("bob", "q1-1", epoch, 1); messages.KindOf(err) != messages.Expired {
		t.Errorf("another account's quote: %v, want what is said of none", err)
	}
	if err := agree("alice", "1", epoch, 1); messages.KindOf(err) != messages.Invalid {
		t.Errorf("no contract at all: %v", err)
	}
}

// A job declares a field that its market does not read. It must be refused. The error must say what the market reads,
// and which markets read the field.
func TestABidThatTheMarketIgnoresIsRefused(t *testing.T) {
	spoil := map[string]func(*job.JobSpec){
		"rate":     func(s *job.JobSpec) { s.Rate = 1 },
		"value":    func(s *job.JobSpec) { s.Value = 1 },
		"delay":    func(s *job.JobSpec) { s.Delay = 1 },
		"deadline": func(s *job.JobSpec) { s.Deadline = epoch },
		"valuation": func(s *job.JobSpec) {
			s.Valuation = &job.Valuation{Class: job.Hard, Max: 1, Deadline: 1}
		},
		"contract": func(s *job.JobSpec) { s.Contract = "q1-1" },
		"utility":  func(s *job.JobSpec) { s.Utility = &job.Utility{Form: job.Linear} },
	}
	reads := map[messages.Name]string{
		market.Proportional: "utility", market.HighestBid: "rate", market.DeadlineBid: "value deadline", market.BatchQueue: "value delay",
		market.Reservation: "value deadline", market.ContractMenu: "valuation contract", market.FIFO: "", market.FairShare: "", market.Backfill: "", market.Karma: "",
	}
	site := rules().Markets
	for _, mechanism := range registry.Names(nil) {
		known, ok := reads[mechanism]
		if !ok {
			t.Errorf("what does %s read?", mechanism)
		}
		m := &market.Market{Name: "here", Mechanism: mechanism}
		for field, spoil := range spoil {
			spec := request("k").Spec
			spoil(&spec)
			err := intake.Heeds(&spec, m, site)
			if reads := slices.Contains(strings.Fields(known), field); reads != (err == nil) {
				t.Errorf("%s in a market of %s: %v", field, mechanism, err)
			}
		}
	}
	spec := request("k").Spec
	spec.Valuation = &job.Valuation{}
	err := intake.Heeds(&spec, &site.Configs[0], site)
	if want := "valuation: market share (proportional) does not use this field: a bid there has budget, utility; leave valuation out, or submit to menu (contract)"; messages.Detail(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
	spec = request("k").Spec
	spec.Rate = 1
	err = intake.Heeds(&spec, &market.Market{Name: "due", Mechanism: market.DeadlineBid}, site)
	if want := "a bid there has budget, length, value, deadline; "; !strings.Contains(messages.Detail(err), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestALimitOnMemoryThatNobodyEnforcesIsSaid(t *testing.T) {
	b := book.New()
	node := func(name messages.Name, abilities ...messages.Name) {
		b.Apply(&book.Command{At: epoch, Register: &book.Register{Node: name, Session: 1, Slots: []job.ClassSlots{{Class: "cpu", Slots: 1}}, Abilities: abilities}})
	}
	q := request("k")
	q.Spec.Stages[0].Memory = 1 << 20
	s := prepared(t, "alice", q)
	for _, step := range []struct {
		add  func()
		want string
	}{
		{func() {}, ""},
		{func() { node("n1") }, "no node with slots of class cpu"},
		{func() { node("n2", agent.AbilityMemory) }, "1 of the 2 nodes"},
	} {
		step.add()
		if got := strings.Join(intake.Unenforced(b, s), "\n"); (got == "") != (step.want == "") || !strings.Contains(got, step.want) {
			t.Errorf("%q, want %q", got, step.want)
		}
	}
	s = prepared(t, "alice", request("k2"))
	s.Spec.Stages[0].Memory = 1 << 20 // the memory of the slots, not a limit that the user set
	if got := intake.Unenforced(b, s); got != nil {
		t.Errorf("%q of a job that bounds no memory", got)
	}
}

// If a job names no budget, it must get the market's default budget multiplied by the number of its tasks. If the
// request is repeated after the default has changed, it must still count as the same request. If the market has no
// default, the budget must pay for the slots of each task for an hour.
func TestAJobWithoutABidHasThatOfItsMarket(t *testing.T) {
	r := rules()
	r.Configs[0].DefaultBudget = 2 * messages.Credit
	request := func() *job.SubmitRequest {
		return &job.SubmitRequest{Key: "k", Spec: job.JobSpec{Stages: []job.Stage{{Name: "a", Command: []string{"true"}, Tasks: 3}}}}
	}
	s, err := r.Prepare("ada", request())
	if err != nil || s.Spec.Budget != 6*messages.Credit || len(s.Said) != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
	r.Configs[0].DefaultBudget = messages.Credit // a user who repeats the request expects the same job
	if again, err := r.Prepare("ada", request()); err != nil || string(again.Digest) != string(s.Digest) {
		t.Errorf("the digest depends on the default (%v)", err)
	}
	r.Configs[0].DefaultBudget = 0
	if s, err := r.Prepare("ada", request()); err != nil || s.Spec.Budget != 3*messages.Credit {
		t.Errorf("no budget anywhere: %+v, %v", s, err)
	}
}

// A job names a market that does not exist, and has no budget. The error must name the market, and not say that the
// budget of 0 is too small.
func TestAnUnknownMarketIsSaidOfAJobWithoutABudget(t *testing.T) {
	for _, budget := range []messages.Credits{0, messages.Credit} {
		q := request("k")
		q.Spec.Market, q.Spec.Budget = "nosuch", budget
		_, err := rules().Prepare("alice", q)
		if want := `market: there is no market "nosuch"; the site has share`; messages.KindOf(err) != messages.NotFound || !strings.Contains(err.Error(), want) {
			t.Errorf("budget %v: got %v, want %s", budget, err, want)
		}
	}
}

// In a market with pivot prices, a job pays for its place in the queue, even if it must first wait for other jobs. The
// owner of a job that waits for other jobs must get a warning.
func TestAChainIsToldWhatItPays(t *testing.T) {
	pivot := &market.Market{Name: "spot", Price: market.PricePivot}
	for name, c := range map[string]struct {
		market *market.Market
		spec   job.JobSpec
		told   bool
	}{
		"after":          {pivot, job.JobSpec{AfterJobs: []messages.JobID{1}}, true},
		"after ok":       {pivot, job.JobSpec{AfterOK: []messages.JobID{1}}, true},
		"alone":          {pivot, job.JobSpec{}, false},
		"another market": {&market.Market{Name: "main"}, job.JobSpec{AfterJobs: []messages.JobID{1}}, false},
	} {
		if got := intake.Chained(&intake.Submission{Market: c.market, Spec: &c.spec}); strings.Contains(got, "spot") != c.told || (got != "") != c.told {
			t.Errorf("%s: %q", name, got)
		}
	}
}
