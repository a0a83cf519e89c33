package mutz

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/candor-grid/candor/auctioneer/mechanism/batchqueue"
	"github.com/candor-grid/candor/cmd/study/internal/study"
)

const batchName = "mutz-batch"

// Batch is the study of figures 4.1 to 4.5.
var Batch = study.Study{
	Name:  batchName,
	About: "figures 4.1-4.5: a batch queue of jobs that take the whole machine: incentives, time, budget balance",
	Run:   batch,
}

// batchSize is how large the study is.
type batchSize struct {
	effort
	thesis    effort // of the dots by the thesis' own payments
	jobs      []int  // of figure 4.3
	mostAnew  int    // beyond, the thesis' payments are not timed
	perRun    int    // draws, of figure 4.3
	queue     int    // jobs of figures 4.4 and 4.5
	draws     []int  // of figures 4.4 and 4.5
	imbalance int    // queues of figure 4.5
}

var (
	fullBatch = batchSize{
		effort: effort{dots: 40, groups: 50, draws: 1000}, thesis: effort{dots: 20, groups: 50, draws: 100},
		jobs: []int{31, 61, 122, 244, 1000, 4000}, mostAnew: 244, perRun: 1000,
		queue: 32, draws: []int{8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096}, imbalance: 10,
	}
	quickBatch = batchSize{
		effort: effort{dots: 6, groups: 40, draws: 64}, thesis: effort{dots: 4, groups: 10, draws: 16},
		jobs: []int{8, 16, 32}, mostAnew: 16, perRun: 50,
		queue: 8, draws: []int{8, 64, 512}, imbalance: 3,
	}
)

// batchCrowd is who figures 4.1 and 4.2 are among: by the hour, so that the
// threshold is 87.5 in the mean for the participant of figure 4.1.
var batchCrowd = crowd{jobs: 8, scale: scale{value: 350, delay: 100}, length: 1}

// The participants of figures 4.1 and 4.2: value and cost of delay are the
// thesis', position and length are ours.
var (
	frontParticipant = participant{0, batchqueue.Job{Value: 129.8, Length: 0.25}, func(job *batchqueue.Job, x float64) { job.Value = x }}
	queued           = participant{4, batchqueue.Job{Delay: 48.9, Length: 0.5}, func(job *batchqueue.Job, x float64) { job.Delay = x }}
)

// batchNumbers are the results; series are by figure.
type batchNumbers struct {
	Front        *sweep       `json:"front"` // ours; figure 4.1
	FrontThesis  *sweep       `json:"front_thesis"`
	FrontPrinted *sweep       `json:"front_as_printed"`
	Queued       *sweep       `json:"queued"` // figure 4.2
	QueuedThesis *sweep       `json:"queued_thesis"`
	ByJobs       [2]*series   `json:"by_jobs"`  // the thesis' payments and ours; figure 4.3
	ByDraws      [2]*series   `json:"by_draws"` // figure 4.4
	Imbalance    []unbalanced `json:"imbalance"`

	size batchSize
}

// unbalanced is how far payments are from a sum of zero, as a part of the sum of
// their magnitudes, over all queues together.
type unbalanced struct {
	Draws  int     `json:"draws"`
	Thesis float64 `json:"thesis"`
	Ours   float64 `json:"ours"`
}

func batch(o study.Options) (*study.Report, error) {
	n := &batchNumbers{size: fullBatch}
	if o.Quick {
		n.size = quickBatch
	}
	for _, part := range []func(uint64) error{n.front, n.queued, n.byJobs, n.byDraws} {
		if err := part(o.Seed); err != nil {
			return nil, err
		}
	}
	var err error
	if n.Imbalance, err = imbalances(&crowd{jobs: n.size.queue, scale: timedScale(n.size.queue), length: 1}, n.size.draws, n.size.imbalance, o.Seed); err != nil {
		return nil, err
	}
	figures, err := n.figures()
	return &study.Report{Numbers: n, Page: n.page(), Figures: figures}, err
}

// front is figure 4.1, by our payments, by the thesis' and by equation 4.2 as
// it is printed.
func (n *batchNumbers) front(seed uint64) (err error) {
	at, c := steps(0, batchCrowd.value, 29), &batchCrowd
	s := sweep{Figure: "4.1", Declares: "v", Truth: frontParticipant.truth.Value}
	if n.Front, err = explore(s, at, n.size.dots, c.payoff(&frontParticipant, n.size.effort, seed, c.ours(batchqueue.Priority, n.size.effort.draws))); err != nil {
		return err
	}
	e := n.size.thesis
	if n.FrontThesis, err = explore(s, at, e.dots, c.payoff(&frontParticipant, e, seed, c.thesis(e.draws, false))); err != nil {
		return err
	}
	n.FrontPrinted, err = explore(s, at, e.dots, c.payoff(&frontParticipant, e, seed, c.thesis(e.draws, true)))
	return err
}

// queued is figure 4.2.
func (n *batchNumbers) queued(seed uint64) (err error) {
	at, c := steps(0, batchCrowd.delay, 21), &batchCrowd
	s := sweep{Figure: "4.2", Declares: "d", Truth: queued.truth.Delay}
	if n.Queued, err = explore(s, at, n.size.dots, c.payoff(&queued, n.size.effort, seed, c.ours(batchqueue.Priority, n.size.effort.draws))); err != nil {
		return err
	}
	e := n.size.thesis
	n.QueuedThesis, err = explore(s, at, e.dots, c.payoff(&queued, e, seed, c.thesis(e.draws, false)))
	return err
}

// timedScale makes values as large as thresholds, for queues of any length.
func timedScale(jobs int) scale { return scale{value: 25 * float64(jobs-1) * 2, delay: 100} }

// byJobs is figure 4.3.
func (n *batchNumbers) byJobs(seed uint64) error {
	thesis, ours := &series{Name: "expectations anew"}, &series{Name: "ours"}
	for _, jobs := range n.size.jobs {
		c := &crowd{jobs: jobs, scale: timedScale(jobs), length: 1}
		if err := c.time(thesis, ours, float64(jobs), jobs <= n.size.mostAnew, n.size.perRun, seed); err != nil {
			return err
		}
	}
	n.ByJobs = [2]*series{thesis, ours}
	return nil
}

// byDraws is figure 4.4.
func (n *batchNumbers) byDraws(seed uint64) error {
	thesis, ours := &series{Name: "expectations anew"}, &series{Name: "ours"}
	c := &crowd{jobs: n.size.queue, scale: timedScale(n.size.queue), length: 1}
	for _, draws := range n.size.draws {
		if err := c.time(thesis, ours, float64(draws), true, draws, seed); err != nil {
			return err
		}
	}
	n.ByDraws = [2]*series{thesis, ours}
	return nil
}

// time times all payments of a queue, the thesis' where it is asked for.
func (c *crowd) time(thesis, ours *series, at float64, both bool, draws int, seed uint64) error {
	q, e := c.queue(rand.New(rand.NewPCG(seed, 2))), c.expectation(batchqueue.Priority, draws, seed)
	if both {
		a := newAnew(q, c.scale, draws, rand.New(rand.NewPCG(seed, 3)))
		if err := thesis.time(at, func() error { a.all(); return nil }); err != nil {
			return err
		}
	}
	return ours.time(at, func() error { _, err := batchqueue.Pay(q, e); return err })
}

// imbalances are those of figures 4.5 and 6.7.
func imbalances(c *crowd, draws []int, queues int, seed uint64) (out []unbalanced, err error) {
	for _, k := range draws {
		var thesis, ours balance
		for run := range queues {
			r := rand.New(rand.NewPCG(seed, uint64(run)))
			q := c.queue(r)
			thesis.add(newAnew(q, c.scale, k, r).all())
			p, err := batchqueue.Pay(q, c.expectation(batchqueue.Priority, k, seed))
			if err != nil {
				return nil, fmt.Errorf("imbalance with %d draws: %w", k, err)
			}
			ours.add(p.Net)
		}
		out = append(out, unbalanced{k, thesis.part(), ours.part()})
	}
	return out, nil
}

// balance is how far payments of some queues are from sums of zero.
type balance struct{ off, all float64 }

func (b *balance) add(net []float64) {
	sum := 0.0
	for _, x := range net {
		sum += x
		b.all += math.Abs(x)
	}
	b.off += math.Abs(sum)
}

// part is what is off, as a part of all that is paid and received.
func (b *balance) part() float64 { return b.off / max(b.all, math.SmallestNonzeroFloat64) }
