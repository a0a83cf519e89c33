package core

import (
	"fmt"
	"math"

	"github.com/candor-grid/candor/deploy/simulated/bids"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// Problem is a study: the jobs and their bids, the machine and the market.
type Problem struct {
	Market *rules.Market
	Work   *workload.Workload
	Bids   []bids.Bid // by job
	Seed   uint64
	// Prior has the types of jobs that batch queues expect at first. If Prior is nil, they are drawn from the model of
	// the bids.
	Prior []market.QueuedType
	// Payers marks the jobs whose outcomes and payments are needed; nil means all jobs. The run may end as soon as
	// these outcomes and payments are known.
	Payers []bool
	// Class is the study from whose jobs the valuations for contracts are drawn; nil means this study itself.
	Class *Problem
	// Past is the state from which the run continues. nil means the start of the log.
	Past *Past
	stop *Past // the state at which the run stops; nil means the end of the log
	// If Record is true, the outcome lists every change of a running task.
	Record bool
	// Progress, if not nil, is called a few hundred times in a run with the number of jobs that are done.
	Progress func(done, of int)
}

// Outcome is the result of a simulated run, for all jobs.
type Outcome struct {
	Jobs        []Job    // by job of the workload
	Changes     []Change // ordered by time
	Preemptions int      // number of times that a task lost its slot
	// Results says when the owners in grid.Config got their results, in seconds, by position of the job. A job without
	// a result has no entry.
	Results map[int]float64
	// Sold is the slot time in seconds that each job had until grid.Config.Until. If grid.Config.Until is 0, Sold is
	// nil.
	Sold    []float64
	Notes   []string
	refused bool // a job was refused, and a note gives the reason
}

// Fate is how a job ended.
type Fate uint8

// These are the possible fates of a job.
const (
	Completed Fate = iota
	Discarded      // the mechanism decided not to run the job
	Expired        // the job did not get its slots in time, or not for long enough
	Refused        // the market refused the job's bid
)

var fates = [...]string{"completed", "discarded", "expired", "refused"}

// String returns the name of the fate.
func (f Fate) String() string { return fates[f] }

// Job is the result for one job. Times are in seconds from the log's beginning.
type Job struct {
	Start  float64          // when its first task began; NaN if the job never ran
	Finish float64          // when its last task ended, or when the job was given up
	Paid   messages.Credits // negative if the job received credits
	Used   float64          // in slot-seconds
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

// Run runs a study without actors and returns the outcome of each job.
func Run(p *Problem) (*Outcome, error) {
	if len(p.Bids) != len(p.Work.Jobs) {
		return nil, messages.Errorf(messages.Invalid, "bids: there are %d bids for %d jobs", len(p.Bids), len(p.Work.Jobs))
	}
	if p.Work.Parallel == workload.Wide {
		return nil, messages.Errorf(messages.Invalid, "parallel: %s tasks take slots of one node, and a mechanism alone has no nodes: use --actors all", workload.Wide)
	}
	if p.Work.Parallel != workload.Split && !rules.Wide(p.Market.Mechanism) {
		if widest, _ := p.Work.Widest(); widest > 1 {
			return nil, messages.Errorf(messages.Invalid, "mechanism %s runs serial tasks and cannot keep %d slots together: split parallel jobs, or skip them", p.Market.Mechanism, widest)
		}
	}
	if how := p.Market.Preemption; how != "" && how != market.PreemptSuspend {
		return nil, messages.Errorf(messages.Invalid, "preemption: %s can only be simulated with --actors all; use --actors all, or leave out the field preemption", how)
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

// noteLargest adds a note with the number of payments that were cut off at the largest amount.
func (o *Outcome) noteLargest() {
	n := 0
	for i := range o.Jobs {
		if paid := o.Jobs[i].Paid; paid >= messages.MaxCredits || paid <= -messages.MaxCredits {
			n++
		}
	}
	if n > 0 {
		o.Notes = append(o.Notes, fmt.Sprintf("payments that were cut to %v credits, the largest possible amount: %d", messages.MaxCredits, n))
	}
}

// holds reports whether each job is a single bidder in the simulation of this market. Such a job holds all its slots
// together as a gang; at pivot prices it is a single task.
func holds(m *rules.Market) bool {
	return m.Mechanism == rules.BatchQueue || m.Mechanism == rules.Reservation || m.Price == market.PricePivot
}

// NewOutcome returns an outcome in which no job has started: the start of each job is NaN.
func NewOutcome(p *Problem) *Outcome {
	o := &Outcome{Jobs: make([]Job, len(p.Work.Jobs))}
	for i := range o.Jobs {
		o.Jobs[i].Start = math.NaN()
	}
	return o
}

// Refuse counts a job whose bid was refused. For the first such job, it also adds a note with the reason.
func (o *Outcome) Refuse(j *workload.Job, why string) {
	if !o.refused {
		o.refused = true
		o.Notes = append(o.Notes, fmt.Sprintf("job %d was the first to be refused: %s", j.Number, why))
	}
}

func (p *Problem) refuse(o *Outcome, i int, why string) {
	j := &p.Work.Jobs[i]
	o.Refuse(j, why)
	o.Jobs[i] = Job{Start: math.NaN(), Finish: j.Submit, Fate: Refused}
}

// TooLong is the reason for refusing a job that cannot end in time.
const TooLong = "the job cannot complete by its deadline, even if it starts at once"

// NoOffer is the reason for refusing a job whose user takes no contract.
const NoOffer = "no contract that the job can pay is worth its price to the job"

// Money converts credits to microcredits. It rounds half to even, and cuts amounts off at the largest amount of either
// sign.
func Money(x float64) messages.Credits {
	c, ok := messages.RoundCredits(x)
	if !ok {
		return messages.Credits(math.Copysign(float64(messages.MaxCredits), x))
	}
	return c
}

func (p *Problem) complete(o *Outcome, i int, start, finish float64, paid messages.Credits) {
	j := &p.Work.Jobs[i]
	in := 0.0
	if finish <= p.Bids[i].Deadline {
		in = 1
	}
	o.Jobs[i] = Job{Start: start, Finish: finish, Paid: paid, Used: j.Work(), InTime: in}
}

func (p *Problem) pays(i int) bool { return p.Payers == nil || p.Payers[i] }

// Slots returns the number of slots that the market has. This is the number of slots of the machine, unless a deadline
// market sets another number.
func (p *Problem) Slots() int {
	if p.Market.Mechanism == rules.Deadline && p.Market.C > 0 {
		return p.Market.C
	}
	return p.Work.Nodes
}

// DrawSeed returns the seed for the random choices of a mechanism. This is the seed of the market if there is one, and
// otherwise the seed of the study.
func (p *Problem) DrawSeed() uint64 {
	if p.Market.Seed != nil {
		return *p.Market.Seed
	}
	return p.Seed
}

func (p *Problem) progress(done int) {
	if p.Progress != nil && done%(1+len(p.Work.Jobs)/512) == 0 {
		p.Progress(done, len(p.Work.Jobs))
	}
}
