package faults

import "github.com/candor-grid/candor/messages"

// Bug is a fault of the program that is planted on purpose, to show that the
// checkers find it.
type Bug int

// The bugs.
const (
	Sound         Bug = iota
	NoDedupe          // a submission that comes again is another job
	SkippedSync       // what is not on disk is acknowledged
	StaleAttempt      // the word of an attempt that was given up counts for the next
	DoubleCharge      // a new leader charges again under an identifier of its own
	RefundTimeout     // a charge that is not answered at once is refunded
	LocalClock        // a replica applies with its own clock
)

// Outcome is what became of a seed.
type Outcome struct {
	Seed      uint64
	Steps     uint64            // events that happened
	Span      messages.Duration // of simulated time
	Faults    map[string]int    // by kind
	Applied   int               // entries committed, each checked
	Violation error             // nil: none
}

// patience is how long after its last fault a site may take to end all jobs.
const patience = 600 * second

// Run runs a seed through a plan until something is violated, or all faults are
// over and every job has ended.
func Run(p *Plan, seed uint64, bug Bug) Outcome { return run(p, p.draw(seed), seed, bug) }

func run(p *Plan, events []Event, seed uint64, bug Bug) Outcome {
	w := newWorld(p, seed, bug)
	out := Outcome{Seed: seed, Faults: map[string]int{}}
	for _, e := range events {
		out.Faults[e.Kind]++
		w.strike(e)
	}
	calm := epoch.Add(2*p.Duration + 30*second) // all faults are over, and all jobs submitted
	for w.failed == nil {
		if w.queue.Len() == 0 || w.now > calm.Add(patience) {
			w.violate("in %v without faults: %v", patience, w.healed())
			break
		}
		before := w.now
		w.now = max(w.now, w.queue.Next())
		w.steps++
		w.queue.Pop()()
		if w.now >= calm && before/1e6 != w.now/1e6 && w.healed() == nil {
			break
		}
	}
	out.Steps, out.Span, out.Violation = w.steps, w.now.Sub(epoch), w.failed
	out.Applied = len(w.books.history) + len(w.banks.history)
	return out
}

// Shrink returns a plan with the events of a seed that fails, without as many of
// them as it can do without (delta debugging). It fails in some way, not
// necessarily the same one.
func Shrink(p *Plan, seed uint64, bug Bug) *Plan {
	events := p.draw(seed)
	fails := func(some []Event) bool { return run(p, some, seed, bug).Violation != nil }
	if fails(nil) {
		events = nil
	}
	for parts := 2; len(events) > 0; {
		size := max(1, len(events)/parts)
		shorter := false
		for from := 0; from < len(events); from += size {
			rest := append(append([]Event{}, events[:from]...), events[min(len(events), from+size):]...)
			if fails(rest) {
				events, shorter = rest, true
				break
			}
		}
		switch {
		case shorter:
			parts = max(2, parts-1)
		case size == 1: // none can be left out alone
			return p.with(events, seed)
		default:
			parts *= 2
		}
	}
	return p.with(nil, seed)
}

// with is the plan with these events instead of its rates.
func (p *Plan) with(events []Event, seed uint64) *Plan {
	short := *p
	short.Rates, short.Events, short.Seed = nil, events, seed
	if short.Events == nil {
		short.Events = []Event{}
	}
	return &short
}

// Report sums up many seeds.
type Report struct {
	Seeds          int            `json:"seeds"`
	Steps          uint64         `json:"steps"`
	Applied        uint64         `json:"applied"`
	Faults         map[string]int `json:"faults"`
	SimulatedHours float64        `json:"simulated_hours"`
	Violations     []Violation    `json:"violations"`
}

// Violation is a seed that fails, and the shortest plan found under which it does.
type Violation struct {
	Seed uint64 `json:"seed"`
	What string `json:"what"`
	Plan string `json:"plan"` // YAML
}

// Add counts an outcome.
func (r *Report) Add(o *Outcome) {
	r.Seeds++
	r.Steps += o.Steps
	r.Applied += uint64(o.Applied)
	r.SimulatedHours += o.Span.Seconds() / 3600
	if r.Faults == nil {
		r.Faults, r.Violations = map[string]int{}, []Violation{}
	}
	for k, n := range o.Faults {
		r.Faults[k] += n
	}
}
