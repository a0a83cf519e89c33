package batchqueue

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

// visited draws a queue of jobs with the same prior. Each job has an account of its own. About half of the accounts belong to
// another site, so their jobs are visitors.
func visited(random *rand.Rand, n int) []*mechanism.Job {
	jobs := make([]*mechanism.Job, n)
	for i := range jobs {
		jobs[i] = waiting(messages.JobID(i+1), 1000, 0, 1+random.IntN(20), 1+random.IntN(8))
		jobs[i].Value, jobs[i].Delay = 60*messages.Credit, 2*messages.Credit
		jobs[i].Account = fmt.Sprint("u", i)
		if random.IntN(2) == 0 {
			jobs[i].Account = messages.VisitorName(jobs[i].Account, "west")
		}
	}
	return jobs
}

// In both kinds of pricing, visitors pay the site and receive nothing. The payments that the site's own jobs make to
// one another sum to 0. A job of the site that competes only with visitors pays the site.
func TestNobodyPaysVisitors(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	paid := map[string]messages.Credits{}
	for n := range 120 {
		pricing := []string{"", PivotPricing}[n%2]
		c := market(t, marketmsg.Market{Pricing: pricing, Draws: 20})
		jobs := visited(random, 2+random.IntN(5))
		own := 0
		for _, j := range jobs {
			j.Value, j.Delay = messages.Credits(random.IntN(200))*messages.Credit, messages.Credits(random.IntN(9))*messages.Credit
			j.Budget = j.Value + messages.Credit
			if !messages.IsVisitor(j.Account) {
				own++
			}
		}
		c.Allocate(grid(8, jobs...))
		left := map[messages.JobID]messages.Credits{}
		for _, r := range c.rounds {
			for _, p := range r.transfers {
				for _, j := range jobs {
					visits := messages.IsVisitor(j.Account)
					if visits && (p.To == j.Job || p.From == j.Job && p.To != 0) {
						t.Fatalf("queue %d: %+v of a visitor", n, p)
					}
					if visits && p.From == j.Job {
						paid[pricing+"visitors"] += p.Amount
					}
					if p.From == j.Job {
						left[j.Job] += p.Amount
					}
					if left[j.Job] > j.Budget {
						t.Fatalf("queue %d: job %d pays %v of %v", n, j.Job, left[j.Job], j.Budget)
					}
					if !visits && p.From == j.Job && p.To == 0 && pricing == "" {
						if paid["alone"] += p.Amount; own == len(jobs) {
							t.Fatalf("queue %d: %+v where nobody visits", n, p)
						}
					}
				}
			}
		}
	}
	if len(paid) != 3 {
		t.Errorf("paid: %v", paid)
	}
}

// The prior has a single type, and all other jobs announce this type. In two cases a job must then gain most by telling
// the truth, at any place in the queue: the job is a visitor, or it is the only local job among visitors.
func TestVisitorsAreHonest(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 8))
	changed := 0
	for n := range 100 {
		c := market(t, marketmsg.Market{PriorJobs: []marketmsg.QueuedType{queued(60, 2, 10)}, Draws: 1})
		jobs := visited(random, 2+random.IntN(4))
		at := random.IntN(len(jobs))
		for i, j := range jobs {
			j.Account = fmt.Sprint("u", i)
			if i != at || n%3 > 0 {
				j.Account += "@west"
			}
		}
		own := jobs[at]
		value, cost := float64(random.IntN(200)), float64(random.IntN(12))
		q := c.queue(grid(8, jobs...))
		payoff := func(v, d float64) (payoff float64, runs bool) {
			own.Value, own.Delay = messages.Credits(v*1e6), messages.Credits(d*1e6)
			q = c.queue(grid(8, jobs...))
			decision := c.decide(q)
			net, _, err := c.net(q)
			if err != nil {
				t.Fatal(err)
			}
			payoff = -net[at].Float()
			if net[at] < 0 {
				t.Fatalf("queue %d: the visitor is paid %v", n, -net[at])
			}
			if decision.Runs && at == 0 {
				payoff += value
			} else if decision.Runs {
				payoff -= cost * decision.Delays[at]
			}
			return payoff, decision.Runs
		}
		truth, runs := payoff(value, cost)
		for range 10 {
			lie, other := payoff(float64(random.IntN(300)), float64(random.IntN(20)))
			if lie > truth+1e-6*math.Max(1, math.Abs(truth)) {
				t.Fatalf("queue %d, place %d: the truth is worth %v, a lie %v", n, at, truth, lie)
			}
			if runs != other {
				changed++
			}
		}
	}
	if changed < 100 {
		t.Errorf("only %d lies change a decision", changed)
	}
}

func TestVisitorsMoveNoBelief(t *testing.T) {
	c := market(t, marketmsg.Market{})
	for i := range fewest + 5 {
		j := waiting(messages.JobID(i+1), 9, 9, 9, 1)
		j.Account = messages.VisitorName(fmt.Sprint("u", i), "west")
		c.Allocate(grid(8, j))
	}
	if len(c.belief.seen) != 0 {
		t.Errorf("%d announcements of visitors are beliefs", len(c.belief.seen))
	}
}

// In a market with pricing pivot, the users of a peer must together pay as much as one account that had the jobs of all
// these users. No user may pay more than it gains by the decision.
func TestNamesOfAPeerShareNoTax(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 9))
	levied, several := messages.Credits(0), 0
	for n := range 300 {
		jobs := visited(random, 2+random.IntN(6))
		for _, j := range jobs {
			j.Value, j.Delay = messages.Credits(random.IntN(200))*messages.Credit, messages.Credits(random.IntN(9))*messages.Credit
			j.Budget = j.Value + messages.Credits(random.IntN(50))*messages.Credit
		}
		paid := func() (visitors, site messages.Credits, payers int) {
			c := market(t, marketmsg.Market{Pricing: PivotPricing})
			q := c.queue(grid(8, jobs...))
			d := c.decide(q)
			each, of := StakesOf(&q.Queue, d, []int{0, 1, 2, 3, 4, 5, 6, 7}[:len(q.Jobs)], c.limits(q))
			for _, p := range c.levy(q, d) {
				if p.From == 0 {
					site -= p.Amount
					continue
				}
				at := slices.IndexFunc(q.waiting, func(j *mechanism.Job) bool { return j.Job == p.From })
				gains := each[of[at]].Gain
				if !d.Runs {
					gains = -gains
				}
				if p.Amount.Float() > gains+1e-6 {
					t.Fatalf("queue %d: job %d pays %v for a decision that is worth %v to it", n, p.From, p.Amount, gains)
				}
				if site += p.Amount; messages.IsVisitor(q.waiting[at].Account) {
					visitors += p.Amount
					payers++
				}
			}
			return visitors, site, payers
		}
		apart, all, payers := paid()
		for _, j := range jobs {
			if messages.IsVisitor(j.Account) {
				j.Account = messages.VisitorName("one", "west")
			}
		}
		if as, of, _ := paid(); apart != as || all != of {
			t.Fatalf("queue %d: the users of a peer pay %v, one user with all their jobs %v; the site keeps %v and %v", n, apart, as, all, of)
		}
		if levied += apart; payers > 1 {
			several++
		}
	}
	if levied == 0 || several < 10 {
		t.Errorf("all pay %v, several names in %d queues", levied, several)
	}
}
