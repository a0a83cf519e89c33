package shudler

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism/highestbid"
	"github.com/candor-grid/candor/cmd/lab/internal/study"
	"github.com/candor-grid/candor/deploy/simulated/workload"
)

// machine is a log, and the number of nodes for which the jobs of the log compete.
type machine struct {
	file  string
	nodes int
	alone bool // a job of several processors becomes one serial job, not several
}

// lpc has a quarter fewer nodes than the real cluster, so that the jobs compete.
var lpc = machine{file: "LPC-EGEE-2004-1.2-cln.swf.gz", nodes: 105}

// read reads the jobs of the log as serial jobs.
func (m machine) read(o study.Options) (*workload.Workload, error) {
	log, err := o.Log(m.file)
	if err != nil {
		return nil, err
	}
	w, err := workload.New(log, workload.Options{Parallel: workload.Split})
	if err == nil && m.alone {
		for i := range w.Jobs {
			w.Jobs[i].Width = 1
		}
	}
	return w, err
}

// The function `asked` returns the average number of slots that the jobs of a log need. This is the work of all jobs,
// divided by the time from the first arrival to the last.
func asked(w *workload.Workload) float64 {
	work := 0.0
	for i := range w.Jobs {
		work += w.Jobs[i].Work()
	}
	from, to := w.Span()
	return work / max(1, to-from)
}

// population has the jobs of a log, with values that are drawn with a seed.
type population struct {
	jobs       []highestbid.Job // the method bid sets the bids of these jobs
	aggressive []bool
	shade      []float64 // by job: where its bid lies between w (0) and (1−β)·w (1)
	groups     [3][]int  // indices of the jobs in the groups A, B and C
}

// These constants are the parameters of the model of bids in doc.go.
const (
	highShare       = 0.2
	lowMean         = 30
	highMean        = 150
	deviation       = 15
	aggressiveShare = 0.1
	conservative    = 0.1 // β of the other users
)

func draw(w *workload.Workload, seed uint64) *population {
	p := &population{}
	for i := range w.Jobs {
		j := &w.Jobs[i]
		for range max(j.Width, 1) {
			p.jobs = append(p.jobs, highestbid.Job{Submit: j.Submit, Runtime: j.Runtime, Estimate: estimated(j)})
		}
	}
	r := rand.New(rand.NewPCG(seed, 0))
	n := len(p.jobs)
	p.aggressive, p.shade = make([]bool, n), make([]float64, n)
	for i := range p.jobs {
		p.jobs[i].Value = value(r)
		p.aggressive[i] = r.Float64() < aggressiveShare
		p.shade[i] = r.Float64()
	}
	p.divide()
	return p
}

// serial returns the number of serial jobs for a log: a job of width w in the log is simulated as w serial jobs.
func serial(w *workload.Workload) (n int) {
	for i := range w.Jobs {
		n += max(w.Jobs[i].Width, 1)
	}
	return n
}

// estimated returns the run time that the user asked for. If the user asked for none, it returns the real run time. The
// result is at least one second.
func estimated(j *workload.Job) float64 {
	if j.Asked > 0 {
		return j.Asked
	}
	return max(j.Runtime, 1)
}

func value(r *rand.Rand) float64 {
	mean := float64(lowMean)
	if r.Float64() < highShare {
		mean = highMean
	}
	for {
		if v := mean + deviation*r.NormFloat64(); v > 0 {
			return v
		}
	}
}

// divide divides the jobs into the groups A, B and C by their run times.
func (p *population) divide() {
	order := make([]int, len(p.jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, k int) int { return cmp.Compare(p.jobs[i].Runtime, p.jobs[k].Runtime) })
	for g := range p.groups {
		p.groups[g] = order[g*len(order)/3 : (g+1)*len(order)/3]
	}
}

func (p *population) truthful() {
	for i := range p.jobs {
		p.jobs[i].Bid = p.jobs[i].Value
	}
}

// bid sets the bids of all jobs. The argument `beta` is the β of the aggressive users.
func (p *population) bid(beta float64) {
	for i := range p.jobs {
		b := conservative
		if p.aggressive[i] {
			b = beta
		}
		p.jobs[i].Bid = p.jobs[i].Value * (1 - b*p.shade[i])
	}
}
