package contract

import (
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// TestKept: a promise is kept up to a second or a hundredth of the time later, or while completion
// is worth as much. What the job's own tasks took too long does not count, nor what its owner ended.
func TestKept(t *testing.T) {
	const arrived, promised = 1000 * second, 1400 * second
	falls := messages.Valuation{Class: messages.LinearDecay, Max: 20, Mu: 100, Delta: 1000}
	lasts := messages.Valuation{Class: messages.Hard, Max: 20, Deadline: 600}
	for name, c := range map[string]struct {
		contract    *messages.Contract
		end         mechanism.End
		kept, known bool
	}{
		"on time":               {&messages.Contract{Completion: promised, Promised: 14, Replica: falls}, mechanism.End{Completed: promised, Began: 1}, true, true},
		"3 s late of 400":       {&messages.Contract{Completion: promised, Promised: 14, Replica: falls}, mechanism.End{Completed: promised + 3*second, Began: 1}, true, true},
		"20 s late":             {&messages.Contract{Completion: promised, Promised: 14, Replica: falls}, mechanism.End{Completed: promised + 20*second, Began: 1, Delivered: 10e9}, false, true},
		"by its own doing":      {&messages.Contract{Completion: promised, Promised: 14, Replica: falls}, mechanism.End{Completed: promised + 20*second, Began: 1, Delivered: 40e9}, true, true},
		"worth as much":         {&messages.Contract{Completion: promised, Promised: 20, Replica: lasts}, mechanism.End{Completed: promised + 199*second, Began: 1, Delivered: 10e9}, true, true},
		"worth nothing":         {&messages.Contract{Completion: promised, Promised: 20, Replica: lasts}, mechanism.End{Completed: promised + 201*second, Began: 1, Delivered: 10e9}, false, true},
		"ended before it is":    {&messages.Contract{Completion: promised, Promised: 14, Replica: falls}, mechanism.End{At: promised}, false, false},
		"never, and ended late": {&messages.Contract{Completion: promised, Promised: 14, Replica: falls}, mechanism.End{At: promised + 20*second}, false, true},
		"promised nothing":      {&messages.Contract{Completion: promised, Replica: falls}, mechanism.End{Completed: promised + 900*second, Began: 1}, false, false},
		"no contract":           {nil, mechanism.End{Completed: promised, Began: 1}, false, false},
	} {
		job := &mechanism.Job{Bid: &mechanism.Bid{Arrived: arrived, Length: 10e9, Contract: c.contract}}
		if kept, known := new(Mechanism).Kept(job, c.end); kept != c.kept || known != c.known {
			t.Errorf("%s: kept %v, known %v; want %v, %v", name, kept, known, c.kept, c.known)
		}
	}
}
