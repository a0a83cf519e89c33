package core

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/candor-grid/candor/auctioneer/mechanism/proportional"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/nodeagent/sampler"
)

// runProportional gives each free slot to a job with a probability equal to its share. With one class of slots, every
// job bids its whole budget b in this class. Its share is b^α divided by the sum of b^α over all jobs with tasks to
// start.
func runProportional(p *Problem) (*Outcome, error) {
	if p.Market.SLO > 0 {
		return runPool(p)
	}
	s := newShares(p, 0x736861726573)
	return s.run(s.end, s.arrive, s.serve)
}

type shares struct {
	serial
	rng  *rand.Rand
	draw sampler.Stride
	runs [][]run       // by job: its running tasks, the first one first
	busy []int         // all jobs with running tasks, and perhaps other jobs
	owed messages.Time // time until which the jobs in busy have been charged

	contention *proportional.Contention
	level      float64 // present level of contention
	contended  float64 // integral of the level over time, from the beginning on, in seconds
	since      messages.Time
	parts      []float64 // contended slot time by job, in seconds
	area       float64   // slot time that a weight of 1 has bought since the beginning
	lacks      []lack    // by job: the slot time that it did not receive
}

// lack counts the slot time that a job has not received, although its share entitled the job to this time. It counts
// from the job's first slot on.
type lack struct {
	area    float64 // value of shares.area up to which the lack is counted
	since   messages.Time
	seconds float64
}

// run has the start of a running task, and the time for which the task's job was charged.
type run struct {
	since   messages.Time
	charged time.Duration
}

func newShares(p *Problem, stream uint64) *shares {
	return &shares{serial: newSerial(p), rng: rand.New(rand.NewPCG(p.Seed, stream)),
		contention: proportional.NewContention(*p.Market.Alpha), parts: make([]float64, len(p.Bids)), runs: make([][]run, len(p.Bids)), lacks: make([]lack, len(p.Bids))}
}

func (s *shares) arrive(now messages.Time, i int) error {
	s.enter(now, i)
	return s.weigh(i, math.Pow(s.Bids[i].Budget, *s.Market.Alpha))
}

func (s *shares) enter(now messages.Time, i int) {
	s.miss(now, i)
	s.serial.enter(i)
	s.contention.Enter(s.account(i), Money(s.Bids[i].Budget))
	s.contention.Count(s.jobs[i].left)
}

// miss brings the lack of job i up to date: the slot time that it has bought and not received. It must be called before
// the number of the job's tasks changes.
func (s *shares) miss(now messages.Time, i int) {
	s.pass(now)
	l, t, seconds := &s.lacks[i], s.jobs[i], now.Sub(s.lacks[i].since).Seconds()
	if t.pending > 0 && !math.IsNaN(s.out.Jobs[i].Start) {
		bought := math.Pow(s.Bids[i].Budget, *s.Market.Alpha) * (s.area - l.area)
		l.seconds += min(bought, seconds*float64(t.left)) - seconds*float64(t.left-t.pending)
	}
	l.area, l.since = s.area, now
}

func (s *shares) account(i int) messages.Name { return strconv.Itoa(s.Work.Jobs[i].User) }

// pass brings two sums up to the current time. s.contended is the level of contention, added up over time. s.area is
// the slot time that one unit of weight bought.
func (s *shares) pass(now messages.Time) {
	s.contended += s.level * now.Sub(s.since).Seconds()
	if sum := s.draw.Total(); sum > 0 {
		s.area += float64(s.Work.Nodes) / sum * now.Sub(s.since).Seconds()
	}
	s.since, s.level = now, s.contention.Level(s.Work.Nodes)
}

func (s *shares) weigh(i int, weight float64) error {
	return s.draw.Update([]agent.JobWeight{{Job: messages.JobID(i + 1), Weight: float32(weight)}})
}

// serve lets each free slot draw a job by the jobs' weights, as long as slots are free and tasks wait.
func (s *shares) serve(now messages.Time) error {
	defer s.pass(now)
	for s.free > 0 && s.draw.Len() > 0 {
		i := s.choose(now)
		if s.begin(now, i); s.jobs[i].pending == 0 {
			if err := s.weigh(i, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// choose draws a job as an agent does. It takes all slots of the machine as slots of one node.
func (s *shares) choose(now messages.Time) (i int) {
	if now != s.owed {
		s.busy, s.owed = slices.DeleteFunc(s.busy, func(i int) bool { return s.owe(now, i) == 0 }), now
	}
	job := s.draw.Draw(s.rng)
	s.draw.Settle(func(messages.JobID) int { return 1 })
	return int(job) - 1
}

// owe charges a job for its running tasks. For each task, it charges the part of the run time that was not charged
// before. It returns the number of running tasks.
func (s *shares) owe(now messages.Time, i int) int {
	for k := range s.runs[i] {
		r := &s.runs[i][k]
		if late := now.Sub(r.since).Std() - r.charged; late > 0 {
			s.draw.Owe(messages.JobID(i+1), late)
			r.charged += late
		}
	}
	return len(s.runs[i])
}

func (s *shares) begin(now messages.Time, i int) {
	charged, _ := s.draw.Begin(messages.JobID(i+1), 1)
	if s.runs[i] = append(s.runs[i], run{now, charged}); len(s.runs[i]) == 1 && !slices.Contains(s.busy, i) {
		s.busy = append(s.busy, i)
	}
	s.parts[i] -= s.contended
	s.miss(now, i)
	s.serial.begin(now, i)
}

func (s *shares) end(now messages.Time, i int) error {
	if s.over(now, i) {
		s.out.Jobs[i].Paid = Money(s.Bids[i].Budget)
		if s.Market.Settle != market.SettleOnCompletion {
			s.out.Jobs[i].Paid = s.had(i).Owed(s.out.Jobs[i].Paid)
		}
	}
	return nil
}

// over ends a task, and reports whether the task's job has ended with it.
func (s *shares) over(now messages.Time, i int) bool {
	s.miss(now, i)
	s.parts[i] += s.contended
	s.contention.Count(-1)
	first := s.runs[i][0]
	s.runs[i] = s.runs[i][1:]
	s.draw.End(messages.JobID(i+1), first.charged, now.Sub(first.since).Std())
	over := s.serial.end(now, i)
	if over {
		s.contention.Leave(s.account(i), Money(s.Bids[i].Budget))
	}
	return over
}

// had returns three slot times of job i, until the end of its last task. Time is what the job received. Contended is
// the part of Time for which other jobs competed. Lacked is what the job did not get.
func (s *shares) had(i int) proportional.Had {
	j := &s.Work.Jobs[i]
	return proportional.Had{Time: messages.Duration(j.Work() * 1e9), Contended: messages.Duration(s.parts[i] * 1e9),
		Lacked: messages.Duration(s.lacks[i].seconds * 1e9), Began: j.Width}
}
