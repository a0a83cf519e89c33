package mutz

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/candor-grid/candor/auctioneer/mechanism/batchqueue"
	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

const batchName = "mutz-batch"

// Batch is the study of figures 4.1 to 4.5 of Mutz's thesis.
var Batch = study.Study{
	Name:  batchName,
	About: "figures 4.1-4.5: a batch queue of jobs that take the whole machine: incentives, time, budget balance",
	Run:   batch,
}

type queueSize struct {
	effort
	costly    effort // effort for the slowest dots (measurements): with the thesis' own payments, or over whole types
	jobs      []int  // numbers of jobs in the figures that show times
	mostAnew  int    // with more jobs, the thesis' payments are not timed
	perRun    int    // number of draws in the figures that show times
	queue     int    // number of jobs in figures 4.4, 4.5 and 6.7
	draws     []int  // numbers of draws in figures 4.4, 4.5 and 6.7
	imbalance int    // number of queues in figures 4.5 and 6.7
}

var (
	fullBatch = queueSize{
		effort: effort{dots: 40, groups: 50, draws: 1000}, costly: effort{dots: 20, groups: 50, draws: 100},
		jobs: []int{31, 61, 122, 244, 1000, 4000}, mostAnew: 244, perRun: 1000,
		queue: 32, draws: []int{8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096}, imbalance: 10,
	}
	quickBatch = queueSize{
		effort: effort{dots: 6, groups: 40, draws: 64}, costly: effort{dots: 4, groups: 10, draws: 16},
		jobs: []int{8, 16, 32}, mostAnew: 16, perRun: 50,
		queue: 8, draws: []int{8, 64, 512}, imbalance: 3,
	}
)

// batchCrowd are the other users in figures 4.1 and 4.2. Amounts are in credits per hour. The participant of figure 4.1
// runs now if its declared value is above a threshold. With these users, this threshold is 87.5 on average.
var batchCrowd = crowd{jobs: 8, scale: scale{value: 350, delay: 100}, length: 1}

// These are the participants in figures 4.1 and 4.2 of Mutz's thesis. Their value and cost of delay are from the
// thesis. Their position and length are our choice.
var (
	frontParticipant = participant{0, batchqueue.Job{Value: 129.8, Length: 0.25}, func(job *batchqueue.Job, x float64) { job.Value = x }}
	queued           = participant{4, batchqueue.Job{Delay: 48.9, Length: 0.5}, func(job *batchqueue.Job, x float64) { job.Delay = x }}
)

type batchNumbers struct {
	Front        *sweep       `json:"front"` // ours; figure 4.1
	FrontThesis  *sweep       `json:"front_thesis"`
	FrontPrinted *sweep       `json:"front_as_printed"`
	Queued       *sweep       `json:"queued"` // figure 4.2
	QueuedThesis *sweep       `json:"queued_thesis"`
	ByJobs       [2]*series   `json:"by_jobs"`  // the thesis' payments and ours; figure 4.3
	ByDraws      [2]*series   `json:"by_draws"` // figure 4.4
	Imbalance    []unbalanced `json:"imbalance"`

	size queueSize
	failure
}

// unbalanced says how far the sum of all payments is from zero, divided by the sum of their absolute values. `Thesis`
// is for the payments of the thesis, and `Ours` for the payments of this program.
type unbalanced struct {
	Draws  int     `json:"draws"`
	Thesis float64 `json:"thesis"`
	Ours   float64 `json:"ours"`
}

func batch(o study.Options) (*study.Report, error) {
	n := &batchNumbers{size: study.Sized(o, fullBatch, quickBatch)}
	n.front(o.Seed)
	n.queued(o.Seed)
	n.byJobs(o.Seed)
	n.byDraws(o.Seed)
	n.Imbalance = n.imbalances(n.timedCrowd(), &n.size, o.Seed)
	if n.err != nil {
		return nil, n.err
	}
	return &study.Report{Numbers: n, Page: n.page(), Figures: n.figures()}, nil
}

// front computes figure 4.1 three times: with our payments, with the thesis' payments, and with equation 4.2 exactly as
// the thesis prints it.
func (n *batchNumbers) front(seed uint64) {
	at, c, e := steps(0, batchCrowd.value, 29), &batchCrowd, n.size.costly
	s := sweep{Figure: "4.1", Declares: "v", Truth: frontParticipant.truth.Value}
	n.Front = n.explore(s, at, n.size.dots, c.payoff(&frontParticipant, n.size.effort, seed, c.ours(batchqueue.Priority, n.size.effort.draws)))
	n.FrontThesis = n.explore(s, at, e.dots, c.payoff(&frontParticipant, e, seed, c.thesis(e.draws, false)))
	n.FrontPrinted = n.explore(s, at, e.dots, c.payoff(&frontParticipant, e, seed, c.thesis(e.draws, true)))
}

// queued computes figure 4.2 of Mutz's thesis.
func (n *batchNumbers) queued(seed uint64) {
	at, c, e := steps(0, batchCrowd.delay, 21), &batchCrowd, n.size.costly
	s := sweep{Figure: "4.2", Declares: "d", Truth: queued.truth.Delay}
	n.Queued = n.explore(s, at, n.size.dots, c.payoff(&queued, n.size.effort, seed, c.ours(batchqueue.Priority, n.size.effort.draws)))
	n.QueuedThesis = n.explore(s, at, e.dots, c.payoff(&queued, e, seed, c.thesis(e.draws, false)))
}

// timedScale returns a scale for a queue of some number of jobs. With this scale, the values of jobs are about as large
// as the thresholds that they must reach.
func timedScale(jobs int) scale { return scale{value: 25 * float64(jobs-1) * 2, delay: 100} }

// timedCrowd returns the crowd from which the queues of figures 4.4 and 4.5 are drawn.
func (n *batchNumbers) timedCrowd() *crowd {
	return &crowd{jobs: n.size.queue, scale: timedScale(n.size.queue), length: 1}
}

// byJobs measures how the time of a decision grows with the number of jobs, for figure 4.3.
func (n *batchNumbers) byJobs(seed uint64) {
	n.ByJobs = [2]*series{{Name: "expectations anew"}, {Name: "ours"}}
	for _, jobs := range n.size.jobs {
		c := &crowd{jobs: jobs, scale: timedScale(jobs), length: 1}
		n.timeQueue(c, n.ByJobs[0], n.ByJobs[1], float64(jobs), jobs <= n.size.mostAnew, n.size.perRun, seed)
	}
}

// byDraws computes figure 4.4.
func (n *batchNumbers) byDraws(seed uint64) {
	n.ByDraws = [2]*series{{Name: "expectations anew"}, {Name: "ours"}}
	for _, draws := range n.size.draws {
		n.timeQueue(n.timedCrowd(), n.ByDraws[0], n.ByDraws[1], float64(draws), true, draws, seed)
	}
}

// timeQueue measures how long it takes to compute all payments of a queue. If the argument `both` is true, it also
// measures the method of the thesis.
func (f *failure) timeQueue(c *crowd, thesis, ours *series, at float64, both bool, draws int, seed uint64) {
	q, e := c.queue(rand.New(rand.NewPCG(seed, 2))), c.expectation(batchqueue.Priority, draws, seed)
	if both {
		a := newAnew(q, c.scale, draws, rand.New(rand.NewPCG(seed, 3)))
		f.timeAll(thesis, at, func() { a.all() })
	}
	f.time(ours, at, func() error { _, err := batchqueue.Pay(q, e); return err })
}

// imbalances computes the numbers of figures 4.5 and 6.7: for each number of draws, how far the sum of all payments is
// from zero, relative to the sum of their absolute values.
func (f *failure) imbalances(c *crowd, size *queueSize, seed uint64) (out []unbalanced) {
	for _, k := range size.draws {
		var thesis, ours balance
		for run := range size.imbalance {
			if f.err != nil {
				return nil
			}
			r := rand.New(rand.NewPCG(seed, uint64(run)))
			q := c.queue(r)
			thesis.add(newAnew(q, c.scale, k, r).all())
			p, err := batchqueue.Pay(q, c.expectation(batchqueue.Priority, k, seed))
			if err != nil {
				f.err = fmt.Errorf("imbalance with %d draws: %w", k, err)
				return nil
			}
			ours.add(p.Net)
		}
		out = append(out, unbalanced{k, thesis.part(), ours.part()})
	}
	return out
}

// balance adds up two numbers over all queues. The field `off` is the sum over the queues of |sum of the queue's
// payments|. The field `all` is the sum over the queues of the absolute values of all payments.
type balance struct{ off, all float64 }

func (b *balance) add(net []float64) {
	sum := 0.0
	for _, x := range net {
		sum += x
		b.all += math.Abs(x)
	}
	b.off += math.Abs(sum)
}

// part returns the total distance of the payment sums from 0, divided by the sum of the absolute values of all
// payments.
func (b *balance) part() float64 { return b.off / max(b.all, math.SmallestNonzeroFloat64) }
