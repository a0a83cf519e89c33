package shudler

import (
	"github.com/candor-grid/candor/auctioneer/mechanism/highestbid"
	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

const figuresName = "shudler-figures"

// Figures is the study of figures 2 to 8.
var Figures = study.Study{
	Name:  figuresName,
	About: "figures 2-8: slowdown, severely slowed jobs and utility by private value, honest and shading (needs --traces)",
	Run:   curvesStudy,
}

// Each point of a curve is the mean over the jobs whose values lie in the same bin. There are `bins` bins, each
// binWidth wide, from 0 on. If a bin has fewer than `fewest` jobs over all seeds, its point is not drawn.
const (
	binWidth  = 10
	bins      = 20
	fewest    = 30
	shading   = 0.9 // β of the aggressive users (see doc.go)
	groupC    = 2
	highValue = 100 // values above this are in the upper mode of the distribution of values
)

// tally divides jobs by their values into bins. In each bin, it adds up one number of each job, such as the job's
// utility.
type tally struct {
	sum   [bins]float64
	count [bins]int
}

func (t *tally) add(value, x float64) {
	if k := int(value / binWidth); k < bins {
		t.sum[k] += x
		t.count[k]++
	}
}

// mean returns the mean of the measured number over some of the jobs: those jobs whose value is at least `from` and
// less than `to`.
func (t *tally) mean(from, to float64) float64 {
	sum, n := 0.0, 0
	for k := range bins {
		if at := middle(k); at >= from && at < to {
			sum += t.sum[k]
			n += t.count[k]
		}
	}
	return sum / float64(max(n, 1))
}

func middle(k int) float64 { return binWidth * (float64(k) + 0.5) }

// curve is made from a tally. It has the values at which a point is drawn, and the mean at each of these values.
type curve struct {
	Value []float64 `json:"value"`
	Mean  []float64 `json:"mean"`
}

func (t *tally) curve() (c curve) {
	for k, n := range t.count {
		if n >= fewest {
			c.Value, c.Mean = append(c.Value, middle(k)), append(c.Mean, t.sum[k]/float64(n))
		}
	}
	return c
}

type crowdTally struct {
	slowdown, severe tally
	utility          [3]tally // by group
}

// run is a simulation with one algorithm and one price rule. Users bid their values. If `shades` is true, some users
// bid less.
type run struct {
	algorithm highestbid.Algorithm
	price     highestbid.Price
	shades    bool
}

// runs are the runs that the figures compare. In some runs, aggressive users bid less than their jobs are worth. In
// these runs only the aggressive users are counted, as in the paper. In the other runs, all users are counted.
var runs = []run{honestFirst, honestKth, shadeFirst, shadeKth, shadeNPHB, shadeWSPT, shadeWSEPT}

func (p *population) tally(r run, nodes int, into *crowdTally) error {
	p.truthful()
	if r.shades {
		p.bid(shading)
	}
	out, err := highestbid.Run(&highestbid.Problem{Nodes: nodes, Reserve: highestbid.Reserve, Jobs: p.jobs,
		Rule: highestbid.Rule{Algorithm: r.algorithm, Price: r.price}})
	if err != nil {
		return err
	}
	for g, group := range p.groups {
		for _, i := range group {
			if r.shades && !p.aggressive[i] {
				continue
			}
			value, severe := p.jobs[i].Value, 0.0
			if out.Severe[i] {
				severe = 100
			}
			into.slowdown.add(value, out.Slowdown[i])
			into.severe.add(value, severe)
			into.utility[g].add(value, out.Utility[i])
		}
	}
	return nil
}

func curvesStudy(o study.Options) (*study.Report, error) {
	of, jobs, n, err := lpc.tallies(o)
	if err != nil {
		return nil, err
	}
	figures, numbers := drawCurves(figuresName, of)
	return &study.Report{Numbers: numbers, Page: curvesPage(of, jobs, n), Figures: figures}, nil
}

// tallies adds up the results of all runs on a log. Each run is repeated for each seed in the options.
func (m machine) tallies(o study.Options) (of map[run]*crowdTally, jobs, n int, err error) {
	w, n, err := m.load(o)
	if err != nil {
		return nil, 0, 0, err
	}
	of = map[run]*crowdTally{}
	for _, r := range runs {
		of[r] = &crowdTally{}
	}
	for k := range n {
		p := draw(w, o.Seed+uint64(k))
		for _, r := range runs {
			if err := p.tally(r, m.nodes, of[r]); err != nil {
				return nil, 0, 0, err
			}
		}
	}
	return of, serial(w), n, nil
}
