package batchqueue

import (
	"slices"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

func queued(value, delay messages.Credits, seconds int) messages.QueuedType {
	return messages.QueuedType{Value: value * messages.Credit, Delay: delay * messages.Credit, Length: messages.Duration(seconds) * 1e9}
}

// moved is what each of three jobs pays of the decision on the first.
func moved(t *testing.T, m messages.Market, believe []messages.QueuedType) []messages.Credits {
	t.Helper()
	m.Draws = 4096
	c := market(t, m)
	c.Believe(believe)
	view := grid(8, waiting(1, 90, 9, 10, 8), waiting(2, 40, 5, 10, 8), waiting(3, 70, 3, 10, 8))
	net, err := c.net(view, c.queue(view))
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

// TestBeliefs: enough that was seen goes before what the operator thinks, and
// that before the jobs of the market.
func TestBeliefs(t *testing.T) {
	cheap, dear := queued(10, 1, 10), queued(500, 20, 10)
	prior := messages.Market{PriorJobs: []messages.QueuedType{dear}}
	seen := slices.Repeat([]messages.QueuedType{cheap}, fewest)
	alike := moved(t, messages.Market{}, nil)
	operator := moved(t, prior, nil)
	if slices.Equal(alike, operator) {
		t.Errorf("the operator's types change nothing: %v", alike)
	}
	if got := moved(t, prior, seen[1:]); !slices.Equal(got, operator) {
		t.Errorf("with too few seen %v, want %v", got, operator)
	}
	both := moved(t, prior, seen)
	if only := moved(t, messages.Market{}, seen); !slices.Equal(both, only) || slices.Equal(both, operator) {
		t.Errorf("with enough seen %v, want %v", both, only)
	}
}

// TestBeliefsArePriors: with one type for all, the payments are those of equation
// 4.6 with that type for certain, worked out exactly.
func TestBeliefsArePriors(t *testing.T) {
	for _, mode := range []Mode{Priority, Full} {
		m := messages.Market{Mode: string(mode), PriorJobs: []messages.QueuedType{{Value: 80 * messages.Credit, Delay: 4 * messages.Credit, Length: 10e9, Width: 8}}}
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
		if got := moved(t, m, nil); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", mode, got, want)
		}
	}
}

// TestFullWithoutPrior: whole types of the jobs in the market are drawn.
func TestFullWithoutPrior(t *testing.T) {
	full, priority := moved(t, messages.Market{Mode: "full"}, nil), moved(t, messages.Market{Mode: "priority"}, nil)
	if slices.Equal(full, make([]messages.Credits, 3)) || len(full) != len(priority) {
		t.Errorf("full %v, priority %v", full, priority)
	}
}

var _ mechanism.Believing = (*Mechanism)(nil)
