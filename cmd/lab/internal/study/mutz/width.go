package mutz

import (
	"github.com/candor-grid/candor/auctioneer/mechanism/batchqueue"
	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

const widthName = "mutz-batch-width"

// Width is the study of figures 6.1 to 6.7.
var Width = study.Study{
	Name:  widthName,
	About: "figures 6.1-6.7: a batch queue of jobs of any width: time, incentives, budget balance",
	Run:   width,
}

var (
	fullWidth = queueSize{
		effort: effort{dots: 40, groups: 50, draws: 100}, costly: effort{dots: 40, groups: 50, draws: 16},
		jobs: []int{8, 16, 24, 32, 48, 64, 256, 1024}, mostAnew: 64, perRun: 100,
		queue: 16, draws: []int{8, 16, 32, 64, 128, 256, 512, 1024}, imbalance: 10,
	}
	quickWidth = queueSize{
		effort: effort{dots: 6, groups: 20, draws: 64}, costly: effort{dots: 6, groups: 20, draws: 4},
		jobs: []int{4, 8, 16}, mostAnew: 8, perRun: 10,
		queue: 6, draws: []int{8, 64, 256}, imbalance: 3,
	}
)

// widthCrowd are the other users in figures 6.3 to 6.6. As in the thesis, the mean length of their jobs is 7.18. The
// threshold is the smallest value with which the front job runs. It is near 42.5, the thesis' threshold.
var widthCrowd = crowd{jobs: 16, nodes: 16, scale: scale{value: 100, delay: 1}, length: 15}

// These are the participants of figures 6.3 to 6.6. The thesis gives values, lengths and widths in nodes, but does not
// say which numbers belong to the same participant. The cost of delay in figure 6.6 is our choice: with this cost, the
// participant is in the middle of the queue.
var (
	wideFront  = batchqueue.Job{Value: 42.5, Length: 7.18, Width: 8}
	wideQueued = batchqueue.Job{Delay: 0.6, Length: 7.18, Width: 8}
)

// declaration describes one figure of the thesis. The figure shows how a participant's payoff depends on what the
// participant declares.
type declaration struct {
	sweep
	at          []float64
	participant participant
}

func widthDeclarations() []declaration {
	c := &widthCrowd
	return []declaration{
		{sweep{Figure: "6.3", Declares: "v", Truth: wideFront.Value}, steps(0, c.value, 26),
			participant{0, wideFront, func(job *batchqueue.Job, x float64) { job.Value = x }}},
		{sweep{Figure: "6.4", Declares: "r", Truth: wideFront.Length}, steps(wideFront.Length, 4*wideFront.Length, 25),
			participant{0, wideFront, func(job *batchqueue.Job, x float64) { job.Length = x }}},
		{sweep{Figure: "6.5", Declares: "n", Truth: float64(wideFront.Width)},
			steps(float64(wideFront.Width), float64(c.nodes), c.nodes-wideFront.Width+1),
			participant{0, wideFront, func(job *batchqueue.Job, x float64) { job.Width = int(x) }}},
		{sweep{Figure: "6.6", Declares: "d", Truth: wideQueued.Delay}, steps(0, c.delay, 21),
			participant{c.jobs / 2, wideQueued, func(job *batchqueue.Job, x float64) { job.Delay = x }}},
	}
}

type widthNumbers struct {
	Priority  []*sweep     `json:"priority"` // figures 6.3 to 6.6, by the mode of expectations
	Full      []*sweep     `json:"full"`
	Whole     *series      `json:"whole"`  // the thesis' payments for whole-machine jobs; figure 6.1
	Thesis    *series      `json:"thesis"` // for any width too
	Ours      *series      `json:"ours"`
	Imbalance []unbalanced `json:"imbalance"` // figure 6.7

	size queueSize
	failure
}

func width(o study.Options) (*study.Report, error) {
	n := &widthNumbers{size: study.Sized(o, fullWidth, quickWidth)}
	n.Priority = n.payoffs(batchqueue.Priority, n.size.effort, o.Seed)
	n.Full = n.payoffs(batchqueue.Full, n.size.costly, o.Seed)
	n.times(o.Seed)
	c := widthCrowd
	c.jobs = n.size.queue
	n.Imbalance = n.imbalances(&c, &n.size, o.Seed)
	if n.err != nil {
		return nil, n.err
	}
	return &study.Report{Numbers: n, Page: n.page(), Figures: n.figures()}, nil
}

// payoffs returns figures 6.3 to 6.6 of Mutz's thesis.
func (n *widthNumbers) payoffs(mode batchqueue.Mode, e effort, seed uint64) (out []*sweep) {
	c := &widthCrowd
	for _, d := range widthDeclarations() {
		out = append(out, n.explore(d.sweep, d.at, e.dots, c.payoff(&d.participant, e, seed, c.ours(mode, e.draws))))
	}
	return out
}

// times measures the times in figures 6.1 and 6.2 of the thesis.
func (n *widthNumbers) times(seed uint64) {
	n.Whole, n.Thesis, n.Ours = &series{Name: "whole machine, anew"}, &series{Name: "any width, anew"}, &series{Name: "any width, ours"}
	for _, jobs := range n.size.jobs {
		c := widthCrowd
		c.jobs, c.value = jobs, widthCrowd.value*float64(jobs)/float64(widthCrowd.jobs)
		whole := c
		whole.nodes = 0
		both := jobs <= n.size.mostAnew
		n.timeQueue(&whole, n.Whole, &series{}, float64(jobs), both, n.size.perRun, seed)
		n.timeQueue(&c, n.Thesis, n.Ours, float64(jobs), both, n.size.perRun, seed)
	}
}

// perCube returns a copy of a series for figure 6.2 of Mutz's work: each time is divided by the cube of the number of
// jobs.
func (s *series) perCube() *series {
	out := &series{Name: s.Name, At: s.At}
	for k, x := range s.At {
		out.Millis = append(out.Millis, s.Millis[k]/(x*x*x))
	}
	return out
}
