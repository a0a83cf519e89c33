package core

import (
	"fmt"
	"math"

	"github.com/candor-grid/candor/deploy/simulated/bids"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
)

// Problem is a study: the jobs and their bids, the machine and the rules.
type Problem struct {
	Market *rules.Market
	Work   *workload.Workload
	Bids   []bids.Bid // by job
	Seed   uint64
	// Prior is the types that batch queues assume at first; nil: drawn from the model of the bids.
	Prior []messages.QueuedType
	// Payers marks the jobs whose outcomes and payments are wanted; nil: all. A run may end when
	// these are known, without the outcomes of other jobs.
	Payers []bool
	// Class has the jobs from which types of contracts are drawn; nil: the study itself.
	Class *Problem
	// Past is where the run begins; nil: at the beginning of the log.
	Past *Past
	stop *Past // the run stops there; nil: at its end
	// Record makes the outcome list every change of a running task.
	Record bool
	// Progress, if not nil, is called some hundred times with the number of jobs that are done; in a short study,
	// after each job.
	Progress func(done, of int)
}

// Outcome is the result for all jobs.
type Outcome struct {
	Jobs        []Job    // by job of the workload
	Changes     []Change // ordered by time
	Preemptions int      // times that a task lost its slot
	// Results are when the owners of grid.Config had their results, in seconds, by
	// position; none: never.
	Results map[int]float64
	Notes   []string
	refused bool // a job was refused, and a note says why
}

// Fate is how a job ended.
type Fate uint8

// The fates.
const (
	Completed Fate = iota
	Discarded      // the mechanism decided not to run it
	Expired        // it did not get its slots in time, or for long enough
	Refused        // the market refused its bid
)

var fates = [...]string{"completed", "discarded", "expired", "refused"}

// String names the fate.
func (f Fate) String() string { return fates[f] }

// Job is the result for one job. Times are in seconds from the log's beginning.
type Job struct {
	Start  float64          // when its first task began; NaN: it never ran
	Finish float64          // when its last task ended, or when it was given up
	Paid   messages.Credits // negative: it received
	Used   float64          // slot-seconds
	InTime float64          // part of its tasks that were complete by its deadline
	Fate   Fate
}

var runners = map[string]func(*Problem) (*Outcome, error){
	rules.HighestBid:   runHighestBid,
	rules.Deadline:     runDeadline,
	rules.Proportional: runProportional,
	rules.BatchQueue:   runBatchQueue,
	rules.Contract:     runContract,
	rules.Reservation:  runReservation,
	rules.FIFO:         runBaseline,
	rules.FairShare:    runBaseline,
	rules.Backfill:     runBaseline,
	rules.Karma:        runKarma,
}

// Run runs a study.
func Run(p *Problem) (*Outcome, error) {
	if len(p.Bids) != len(p.Work.Jobs) {
		return nil, messages.Errorf(messages.Invalid, "bids: there are %d for %d jobs", len(p.Bids), len(p.Work.Jobs))
	}
	if p.Work.Parallel != workload.Split && !rules.Wide(p.Market.Mechanism) {
		if widest, _ := p.Work.Widest(); widest > 1 {
			return nil, messages.Errorf(messages.Invalid, "mechanism %s runs serial tasks and cannot keep %d slots together: split parallel jobs, or skip them", p.Market.Mechanism, widest)
		}
	}
	if how := p.Market.Preemption; how != "" && how != messages.PreemptSuspend {
		return nil, messages.Errorf(messages.Invalid, "preemption: %s can only be simulated with --actors all; use --actors all, or leave out preemption", how)
	}
	run, ok := runners[p.Market.Mechanism]
	if !ok {
		return nil, messages.Errorf(messages.Invalid, "mechanism %s cannot be simulated", p.Market.Mechanism)
	}
	var o *Outcome
	var err error
	if widest, _ := p.Work.Widest(); widest > 1 && p.Work.Parallel == workload.Split && holds(p.Market) {
		o, err = runSplit(p, run)
	} else {
		o, err = run(p)
	}
	if err != nil {
		return nil, err
	}
	o.noteLargest()
	return o, nil
}

// noteLargest notes how many payments were cut off at the largest amount, which are
// too small by an unknown amount.
func (o *Outcome) noteLargest() {
	n := 0
	for i := range o.Jobs {
		if paid := o.Jobs[i].Paid; paid >= messages.MaxCredits || paid <= -messages.MaxCredits {
			n++
		}
	}
	if n > 0 {
		o.Notes = append(o.Notes, fmt.Sprintf("payments above %v credits, the largest possible amount, were cut to it: %d", messages.MaxCredits, n))
	}
}

// holds reports whether the runner of a market takes every job as one: for a gang, or at
// pivot prices for a task.
func holds(m *rules.Market) bool {
	return m.Mechanism == rules.BatchQueue || m.Mechanism == rules.Reservation || m.Price == messages.PricePivot
}

// NewOutcome returns the outcome of jobs that have not begun.
func NewOutcome(p *Problem) *Outcome {
	o := &Outcome{Jobs: make([]Job, len(p.Work.Jobs))}
	for i := range o.Jobs {
		o.Jobs[i].Start = math.NaN()
	}
	return o
}

// Refuse notes why the bid of a job was not admitted, for the first such job.
func (o *Outcome) Refuse(j *workload.Job, why string) {
	if !o.refused {
		o.refused = true
		o.Notes = append(o.Notes, fmt.Sprintf("job %d was the first to be refused: %s", j.Number, why))
	}
}

// refuse sets the outcome of a job whose bid is refused.
func (p *Problem) refuse(o *Outcome, i int, why string) {
	j := &p.Work.Jobs[i]
	o.Refuse(j, why)
	o.Jobs[i] = Job{Start: math.NaN(), Finish: j.Submit, Fate: Refused}
}

// TooLong is why a job is refused that cannot be done in time.
const TooLong = "it cannot be complete by its deadline, even if it starts at once"

// NoOffer is why a job is refused whose user takes no contract.
const NoOffer = "no contract of its menu is worth its price to it, within its budget"

// Money rounds an amount of credits once, half to even, to the microcredit, and cuts it off at
// the largest amount of either sign.
func Money(x float64) messages.Credits {
	c, ok := messages.RoundCredits(x)
	if !ok {
		return messages.Credits(math.Copysign(float64(messages.MaxCredits), x))
	}
	return c
}

// complete notes that a job has run to its end.
func (p *Problem) complete(o *Outcome, i int, start, finish float64, paid messages.Credits) {
	j := &p.Work.Jobs[i]
	in := 0.0
	if finish <= p.Bids[i].Deadline {
		in = 1
	}
	o.Jobs[i] = Job{Start: start, Finish: finish, Paid: paid, Used: j.Work(), InTime: in}
}

// pays reports whether the outcome of a job is wanted.
func (p *Problem) pays(i int) bool { return p.Payers == nil || p.Payers[i] }

// Slots returns how many slots the machine has, as its market sees it.
func (p *Problem) Slots() int {
	if p.Market.Mechanism == rules.Deadline && p.Market.C > 0 {
		return p.Market.C
	}
	return p.Work.Nodes
}

// DrawSeed returns the seed for a mechanism's draws: the market's own, or else the study's.
func (p *Problem) DrawSeed() uint64 {
	if p.Market.Seed != nil {
		return *p.Market.Seed
	}
	return p.Seed
}

// progress tells Progress how much is done.
func (p *Problem) progress(done int) {
	if p.Progress != nil && done%(1+len(p.Work.Jobs)/512) == 0 {
		p.Progress(done, len(p.Work.Jobs))
	}
}
