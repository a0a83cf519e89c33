package gu

import (
	"math/rand/v2"

	"github.com/candor-grid/candor/auctioneer/mechanism/deadline"
	"github.com/candor-grid/candor/deploy/simulated/swf"
	"github.com/candor-grid/candor/messages"
)

const riccFile = "RICC-2010-2.swf.gz"

// window selects records of the log by their numbers, which begin with 1. The records up to the number `last` compete
// for slots. Of these, only the records between the numbers `from` and `to` count in the results.
type window struct{ from, to, last int }

var (
	full  = window{101, 10_100, 13_100}
	quick = window{11, 60, 120}
)

// crowd has the tasks that compete. Only some of the tasks count in the results, and these are marked.
type crowd struct {
	tasks   []deadline.Task
	counted []bool
	units   int     // number of units from the first arrival to the last
	average float64 // the paper's average capacity: sum of counted lengths divided by the number of units
	length  float64 // mean length of the counted tasks
	number  int     // number of counted tasks
}

// These numbers describe the paper's workload: the length of a unit of time, and the means of the exponential
// distributions.
const (
	unitSeconds  = 600
	slackMean    = 2
	densityMean  = 50
	mostAlike    = 1 << 14 // largest number of processors of a record
	leastSeconds = 1
)

func draw(jobs []swf.Job, w window, seed uint64) (*crowd, error) {
	r := rand.New(rand.NewPCG(seed, 0))
	c := &crowd{}
	work, first, last := 0, 0, 0
	for k := range jobs {
		j := &jobs[k]
		if j.Width() < 1 || j.Width() > mostAlike || j.Run < 0 || j.Submit < 0 {
			return nil, messages.Errorf(messages.Invalid, "%s: line %d: a run time, a submission and a number of processors are needed", riccFile, j.Line)
		}
		a := int(j.Submit/unitSeconds) + 2
		l := int((max(j.Run, leastSeconds) + unitSeconds - 1) / unitSeconds)
		counts := k+1 >= w.from && k+1 <= w.to
		if counts {
			if c.number == 0 {
				first = a
			}
			last = a
			c.number += int(j.Width())
			work += l * int(j.Width())
		}
		for range j.Width() {
			c.tasks = append(c.tasks, deadline.Task{Arrival: a, Length: l,
				Deadline: a + l + int(slackMean*float64(l)*r.ExpFloat64()), Value: densityMean * float64(l) * r.ExpFloat64()})
			c.counted = append(c.counted, counts)
		}
	}
	if c.number == 0 {
		return nil, messages.Errorf(messages.Invalid, "%s: has %d records, %d are needed", riccFile, len(jobs), w.to)
	}
	c.units = c.tasks[len(c.tasks)-1].Arrival - c.tasks[0].Arrival + 1
	c.average = float64(work) / float64(last-first+1)
	c.length = float64(work) / float64(c.number)
	return c, nil
}
