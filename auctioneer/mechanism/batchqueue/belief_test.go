package batchqueue

import (
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

func queued(value, delay messages.Credits, seconds int) marketmsg.QueuedType {
	return marketmsg.QueuedType{Value: value * messages.Credit, Delay: delay * messages.Credit, Length: messages.Duration(seconds) * 1e9}
}

// The function `moved` returns how much each of three jobs pays for the decision on the first job. Before this
// decision, the market learns from the jobs in the list `seen`.
func moved(t *testing.T, m marketmsg.Market, jobs []*mechanism.Job, seen ...considered) []messages.Credits {
	t.Helper()
	m.Draws = 4096
	c := market(t, m)
	for _, s := range seen {
		c.belief.Consider(s.account, s.job)
	}
	net, _, err := c.net(c.queue(grid(8, jobs...)))
	if err != nil {
		t.Fatal(err)
	}
	sum := messages.Credits(0)
	for _, n := range net {
		sum += n
	}
	if sum != 0 {
		t.Errorf("payments sum to %v", sum)
	}
	return net
}

func three() []*mechanism.Job {
	jobs := []*mechanism.Job{waiting(1, 90, 9, 10, 8), waiting(2, 40, 5, 10, 8), waiting(3, 70, 3, 10, 8)}
	for i, account := range []messages.Name{"ann", "ben", "cat"} {
		jobs[i].Account = account
	}
	return jobs
}

// When the market has decided about a job, it remembers the type that the job announced. When it has enough types, it
// uses them in place of the prior. It then leaves out the types from accounts that have a job in the queue.
func TestBeliefs(t *testing.T) {
	cheap, dear := queued(10, 1, 10), queued(500, 20, 10)
	prior := marketmsg.Market{PriorJobs: []marketmsg.QueuedType{dear}}
	seen := slices.Repeat([]considered{{"eve", cheap}}, fewest)
	operator := moved(t, prior, three())
	if got := moved(t, prior, three(), seen[1:]...); !slices.Equal(got, operator) {
		t.Errorf("with too few considered %v, want %v", got, operator)
	}
	if got := moved(t, prior, three(), seen...); !slices.Equal(got, moved(t, marketmsg.Market{PriorJobs: []marketmsg.QueuedType{cheap}}, three())) || slices.Equal(got, operator) {
		t.Errorf("with enough considered %v", got)
	}
	own := slices.Repeat([]considered{{"ben", cheap}}, fewest)
	if got := moved(t, prior, three(), own...); !slices.Equal(got, operator) {
		t.Errorf("an account of the queue moves the beliefs: %v, want %v", got, operator)
	}
}

// An account's own announcement does not change what it receives from the others. The value of a waiting job changes no
// payment, because it has no effect on the decision.
func TestNobodyIsPaidByItsOwnAnnouncement(t *testing.T) {
	for _, mode := range []Mode{Priority, Full} {
		m := marketmsg.Market{Mode: string(mode), PriorJobs: []marketmsg.QueuedType{queued(80, 4, 10), queued(20, 1, 30)}}
		honest := moved(t, m, three())
		lie := three()
		lie[2].Value, lie[2].Budget = 1000*messages.Credit, 1000*messages.Credit
		if got := moved(t, m, lie); !slices.Equal(got, honest) {
			t.Errorf("%s: %v, honest %v", mode, got, honest)
		}
		others := func(jobs []*mechanism.Job) (sum float64) {
			c := market(t, m)
			q := c.queue(grid(8, jobs...))
			p, err := Pay(&q.Queue, &Expectation{Mode: mode, Draws: 2000, Priors: c.belief.Priors(&q.Queue, q.accounts())})
			if err != nil {
				t.Fatal(err)
			}
			return p.Externality[0] + p.Externality[1]
		}
		lie[2].Delay = 50 * messages.Credit
		if was, is := others(three()), others(lie); was != is {
			t.Errorf("%s: its announcement moves what the others are paid by: %v, honest %v", mode, is, was)
		}
	}
}

func TestAMarketWithoutPriorsDoesNotOpen(t *testing.T) {
	_, err := NewMechanism(marketmsg.Market{Name: "m", Classes: []messages.Name{"cpu"}})
	if messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), "prior_jobs: are missing") {
		t.Errorf("%v", err)
	}
}

// All jobs are expected to have the same, known type. The payments must then equal equation 4.6, computed with this
// type.
func TestBeliefsArePriors(t *testing.T) {
	for _, mode := range []Mode{Priority, Full} {
		m := marketmsg.Market{Mode: string(mode), PriorJobs: []marketmsg.QueuedType{{Value: 80 * messages.Credit, Delay: 4 * messages.Credit, Length: 10e9, Width: 8}}}
		q := &Queue{Nodes: 8, Jobs: []Job{{Value: 90, Length: 10, Width: 8}, {Delay: 5, Length: 10, Width: 8}, {Delay: 3, Length: 10, Width: 8}}}
		front, other := Prior{Points: []Point{{Job{Value: 80, Length: 10, Width: 8}, 1}}}, Prior{Points: []Point{{Job{Delay: 4, Length: 10, Width: 8}, 1}}}
		p, err := Pay(q, &Expectation{Mode: mode, Exact: true, Priors: []Prior{front, other, other}})
		if err != nil {
			t.Fatal(err)
		}
		want, err := Microcredits(p.Net)
		if err != nil {
			t.Fatal(err)
		}
		if got := moved(t, m, three()); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", mode, got, want)
		}
	}
}
