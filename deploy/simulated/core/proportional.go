package core

import (
	"math"
	"math/rand/v2"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/sampler"
)

// runProportional lets shares decide how likely a job is to get a slot that
// comes free. On one class of slots the fixed point of the mechanism is known:
// every job bids its budget b there, and its share is b^α of the sum of all with
// tasks to start, whoever the others are.
func runProportional(p *Problem) (*Outcome, error) {
	if p.Market.SLO > 0 {
		return runPool(p)
	}
	s := &shares{serial: newSerial(p), rng: rand.New(rand.NewPCG(p.Seed, 0x736861726573))}
	return s.run(s.end, s.arrive, s.serve)
}

// shares is the state of a run.
type shares struct {
	serial
	rng  *rand.Rand
	draw sampler.Sampler
}

func (s *shares) arrive(_ messages.Time, i int) error {
	s.enter(i)
	return s.weigh(i, math.Pow(s.Bids[i].Budget, *s.Market.Alpha))
}

// weigh sets the weight of a job.
func (s *shares) weigh(i int, weight float64) error {
	return s.draw.Update([]messages.JobWeight{{Job: messages.JobID(i + 1), Weight: float32(weight)}})
}

// serve has free slots draw jobs by their weights as long as there are tasks to start.
func (s *shares) serve(now messages.Time) error {
	for s.free > 0 && s.draw.Len() > 0 {
		i := int(s.draw.Sample(s.rng.Float64())) - 1
		s.out.Decisions++
		if s.begin(now, i); s.jobs[i].pending == 0 {
			if err := s.weigh(i, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// end charges the budget with the last task.
func (s *shares) end(now messages.Time, i int) error {
	if s.serial.end(now, i) {
		s.out.Jobs[i].Paid = Money(s.Bids[i].Budget)
	}
	return nil
}
