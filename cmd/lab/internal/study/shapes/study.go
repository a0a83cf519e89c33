package shapes

import (
	"errors"
	"sync"

	"github.com/candor-grid/candor/cmd/lab/internal/study"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/swf"
)

// Study runs the markets on all samples.
var Study = study.Study{
	Name:  "shapes",
	About: "processors and memory of a real log: what is sold, how long jobs wait, what widths receive (needs --traces)",
	Run:   run,
}

// beside is the market with which the study compares: the waiting times in each other market are compared with the
// waiting times in this market.
const beside = rules.Backfill

var mechanisms = []string{beside, rules.Proportional, rules.HighestBid, rules.FIFO, rules.FairShare}

// kinds has two groups of samples of logs: samples with jobs of any size, and samples with only jobs that fit on one
// node.
var kinds = []struct {
	Name    string
	samples []sample
}{
	{"jobs of any size", []sample{{week: 3, one: 16, nodes: 64}, {week: 6, one: 16, nodes: 64}}},
	{"jobs that fit on one node", []sample{{week: 3, one: 8, small: true}, {week: 6, one: 8, small: true}}},
}

type outcome struct {
	Week    int                `json:"week"`
	Jobs    int                `json:"jobs"`
	Nodes   int                `json:"nodes"`
	Packing float64            `json:"packing"` // slot time that the packing sells, as a part of the machine's slot time
	Bound   float64            `json:"bound"`
	Markets map[string]*result `json:"markets"`
	OneNode *result            `json:"one_node"` // result of the market proportional on one node with all slots
}

func run(o study.Options) (*study.Report, error) {
	log, err := o.Log(file)
	if err != nil {
		return nil, err
	}
	numbers, done, all := map[string][]*outcome{}, 0, 0
	for _, k := range kinds {
		all += len(k.samples)
	}
	for _, k := range kinds {
		for n, s := range k.samples {
			if o.Quick {
				s.one, s.nodes = 16*s.one, s.nodes/16
			}
			x, err := s.outcome(log, o.Seed+uint64(n))
			if err != nil {
				return nil, err
			}
			numbers[k.Name] = append(numbers[k.Name], x)
			done++
			o.Tell(done, all, "%s, week %d: the packing sells %.3f, %s %.3f", k.Name, s.week, x.Packing, beside, x.Markets[beside].Sold)
		}
	}
	return &study.Report{Numbers: numbers, Page: page(numbers)}, nil
}

// outcome runs all markets on a sample, at the same time.
func (s sample) outcome(log *swf.Log, seed uint64) (*outcome, error) {
	m, err := s.take(log)
	if err != nil {
		return nil, err
	}
	x := &outcome{Week: s.week, Jobs: len(m.work.Jobs), Nodes: m.work.Nodes / nodeSlots, Packing: m.packing() / m.capacity(), Bound: m.bound() / m.capacity(),
		Markets: map[string]*result{}}
	results, errs := make([]*result, len(mechanisms)+1), make([]error, len(mechanisms)+1)
	var runs sync.WaitGroup
	for i, mechanism := range mechanisms {
		runs.Go(func() { results[i], errs[i] = m.run(mechanism, seed, nodeSlots) })
	}
	runs.Go(func() {
		results[len(mechanisms)], errs[len(mechanisms)] = m.run(rules.Proportional, seed, m.work.Nodes)
	})
	runs.Wait()
	for i, mechanism := range mechanisms {
		x.Markets[mechanism] = results[i]
	}
	x.OneNode = results[len(mechanisms)]
	return x, errors.Join(errs...)
}
