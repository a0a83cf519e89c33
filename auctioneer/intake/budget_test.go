package intake_test

import (
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/intake"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

const hour = messages.Duration(time.Hour)

// The assumed budget is the price of a job's slots, multiplied by the time that the job asks for. The expected amounts
// were computed by hand, with one credit for a slot-hour, or the reserve price.
func TestAJobThatSaysNothingOfMoneyHasABudget(t *testing.T) {
	hundredth, nothing := messages.Price(messages.Credit/100), messages.Price(0)
	for name, c := range map[string]struct {
		mechanism messages.Name
		reserve   *messages.Price
		change    func(*job.JobSpec)
		budget    messages.Credits
		rate      messages.Credits
		said      string
	}{
		"an hour where no time is said":          {market.Proportional, nil, func(*job.JobSpec) {}, messages.Credit, 0, "1h0m0s of slot time at 1 credit an hour; it names no time limit"},
		"its time limit":                         {market.Proportional, nil, func(s *job.JobSpec) { s.Stages[0].TimeLimit = 10 * hour }, 10 * messages.Credit, 0, "10h0m0s of slot time"},
		"all of its tasks":                       {market.Proportional, nil, func(s *job.JobSpec) { s.Stages[0].Tasks = 30 }, 30 * messages.Credit, 0, "30h0m0s of slot time"},
		"the posted price":                       {market.FIFO, &hundredth, func(s *job.JobSpec) { s.Stages[0].TimeLimit = hour }, 36 * messages.Credit, 0, "at 36 credits an hour"},
		"a credit an hour, to a microcredit":     {market.FIFO, nil, func(s *job.JobSpec) { s.Stages[0].TimeLimit = hour }, 3600 * messages.HourlyCredit, 0, "at 1 credit an hour"},
		"as little as can be, where all is free": {market.FIFO, &nothing, func(*job.JobSpec) {}, 1, 0, "at 0 credits an hour"},
		"the reserve is bid":                     {market.HighestBid, &hundredth, func(*job.JobSpec) {}, 36 * messages.Credit, messages.Credit / 100, "at 36 credits an hour"},
		"its own bid":                            {market.HighestBid, &hundredth, func(s *job.JobSpec) { s.Rate = messages.Credit }, 3600 * messages.Credit, messages.Credit, "at 3600 credits an hour"},
		"its value": {market.DeadlineBid, nil, func(s *job.JobSpec) {
			s.Value, s.Length, s.Deadline = 7*messages.Credit, hour, messages.Time(hour)
		}, 7 * messages.Credit, 0, "its value, 7 credits"},
	} {
		t.Run(name, func(t *testing.T) {
			r := rules()
			r.Configs[0].Mechanism, r.Configs[0].Reserve = c.mechanism, c.reserve
			q := request("k")
			q.Spec.Budget, q.Spec.Stages = 0, q.Spec.Stages[:1]
			q.Spec.Stages[0].Tasks = 1
			c.change(&q.Spec)
			s, err := r.Prepare("alice", q)
			if err != nil || s.Spec.Budget != c.budget || s.Spec.Rate != c.rate || !strings.Contains(strings.Join(s.Said, "\n"), c.said) {
				t.Fatalf("budget %v, rate %v, said %q, %v; want %v, %v and %q", s.Spec.Budget, s.Spec.Rate, s.Said, err, c.budget, c.rate, c.said)
			}
		})
	}
}

// A task that needs three slots must cost three times as much as a task of one slot.
func TestASlotIsPaidForAsOftenAsATaskTakesIt(t *testing.T) {
	r, _ := shaped(t, market.Proportional)
	unit := r.Configs[0].Units[0]
	q := request("k")
	q.Spec.Budget, q.Spec.Stages[0].Class, q.Spec.Stages[0].CPUs = 0, unit.Class, 3*unit.Unit.CPUs
	q.Spec.Stages = q.Spec.Stages[:1]
	q.Spec.Stages[0].Tasks = 2
	if s, err := r.Prepare("alice", q); err != nil || s.Spec.Budget != 6*messages.Credit {
		t.Fatalf("%+v, %v", s.Spec, err)
	}
}

// A job asks for a whole node. Its number of slots is not known before it is placed on a node. Its default budget must
// still be for all slots of a node.
func TestAWholeNodeIsPaidForWhole(t *testing.T) {
	r, b := shaped(t, market.Proportional)
	q := request("k")
	q.Spec.Budget, q.Spec.Stages = 0, q.Spec.Stages[:1]
	q.Spec.Stages[0].Class, q.Spec.Stages[0].Exclusive, q.Spec.Stages[0].Tasks = r.Configs[0].Classes[0], true, 1
	s, err := r.Prepare("alice", q)
	if err == nil {
		_, err = r.Known(b, s)
	}
	if width := s.Spec.Stages[0].Slots(); err != nil || width < 2 || s.Spec.Budget != messages.Credits(width)*messages.Credit || len(s.Said) != 1 {
		t.Fatalf("%d slots, budget %v, said %q, %v", width, s.Spec.Budget, s.Said, err)
	}
}

func TestBuysSaysHowLongABudgetLasts(t *testing.T) {
	r := rules()
	two := messages.Price(2 * messages.Credit)
	r.Configs[0].Mechanism, r.Configs[0].Reserve = market.FIFO, &two
	q := request("k")
	q.Spec.Budget, q.Spec.Stages = 20*messages.Credit, q.Spec.Stages[:1]
	q.Spec.Stages[0].Tasks, q.Spec.Stages[0].TimeLimit = 1, hour
	s, err := r.Prepare("alice", q)
	if err != nil {
		t.Fatal(err)
	}
	want := "20 credits buy 10s of slot time at 7200 credits an hour, and the job asks for 1h0m0s: it ends when its budget is spent"
	if said, short := intake.Buys(s); said != want || !short {
		t.Errorf("%q, %v; want %q", said, short, want)
	}
	s.Spec.Budget = 7200 * messages.Credit
	if said, short := intake.Buys(s); short || said != "7200 credits buy 1h0m0s of slot time at 7200 credits an hour" {
		t.Errorf("%q, %v", said, short)
	}
	s.Spec.Budget = messages.Credit
	if said, _ := intake.Buys(s); !strings.HasPrefix(said, "1 credit buys 500ms of slot time at 7200 credits an hour") {
		t.Errorf("%q", said)
	}
	s.Spec.Budget = messages.Credit / 100
	want = "budget: 0.01 credits buy 5ms of slot time at 7200 credits an hour, and no task can run in that time; name a larger budget"
	if err := intake.Place(&book.Book{}, "alice", s.Spec, s.Market); messages.KindOf(err) != messages.Invalid || messages.Detail(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
	s.Spec.Budget = 0 // a quote for a job without a budget
	if err := intake.Place(&book.Book{}, "alice", s.Spec, s.Market); err != nil {
		t.Error(err)
	}
	s.Spec.Budget = messages.Credit / 100
	r.Configs[0].Mechanism = market.Proportional
	if said, short := intake.Buys(s); short || !strings.Contains(said, "at most the budget") {
		t.Errorf("%q, %v", said, short)
	}
}
