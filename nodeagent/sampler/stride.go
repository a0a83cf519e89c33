package sampler

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
)

const (
	// A job may have received more slot time than its weight allows. If it is ahead by one task of the usual length,
	// its chance in a draw is reduced by a tenth (the constant gentle); see the package's doc.
	gentle = 0.1
	// mostKnown is the maximum number of jobs that a Stride (a way to draw jobs) remembers. One message has at most a
	// quarter of this number of jobs.
	mostKnown = 4096
	// memory is the number of a job's latest tasks from which a Stride computes the average length of the job's tasks.
	memory = 16
	// wideBehind is for jobs whose tasks take several slots. Such a job may have been granted fewer tasks than were
	// drawn for it, because the node may still be collecting slots for one of its tasks. Then the job keeps its right
	// to the missing tasks, but to at most wideBehind of them.
	wideBehind = 4
	// shortest is the smallest length that a task has in the computation, in seconds. A shorter task counts as this
	// length.
	shortest = 1e-6
)

// Stride is a [Sampler] whose jobs receive slot time in proportion to their weights, even if their tasks have different
// lengths. The zero value is empty and ready. It is not safe for concurrent use.
type Stride struct {
	Sampler
	// If Plain is true, Stride chooses jobs as [Sampler] does. This is for weights that are not shares of slot time.
	Plain bool

	known   []known          // jobs with a weight, and jobs without one that are ahead or have tasks; sorted by number
	virtual float64          // virtual time: slot seconds of all jobs with a weight, for each unit of weight
	behind  float64          // average pass of the jobs with a weight, minus virtual; at most 0
	usual   float64          // usual length of a task, in seconds; 0 means unknown
	any     mean             // mean length over the tasks of all jobs
	stale   bool             // behind and usual must be computed again
	drawn   []messages.JobID // jobs drawn since the last Settle
	parts   []float64        // buffer of draw, for reuse
}

type known struct {
	job     messages.JobID
	weight  float64 // the job's last weight above 0
	pass    float64 // slot seconds that the job has received, for each unit of weight
	length  mean
	tasks   int           // number of the job's tasks that have begun and not ended
	claims  int           // number of the job's draws that are not settled
	claimed float64       // slot seconds that the job paid for these draws
	due     time.Duration // slot time that the job received and has not paid yet
	present bool          // the job has a weight
	wide    bool          // one of the job's tasks took several slots
}

type mean struct {
	seconds float64
	of      int
}

func (m *mean) add(seconds float64) {
	m.of = min(m.of+1, memory)
	m.seconds += (seconds - m.seconds) / float64(m.of)
}

// Replace does the same as [Sampler.Replace]. The Stride keeps its data about jobs that no longer have a weight, and
// marks these jobs as not present.
func (s *Stride) Replace(jobs []agent.JobWeight) error {
	if err := s.Sampler.Replace(jobs); err != nil || s.Plain {
		return err
	}
	at := 0
	for i := range s.known {
		for k := &s.known[i]; at < len(jobs) && jobs[at].Job < k.job; {
			at++
		}
		if at == len(jobs) || jobs[at].Job != s.known[i].job {
			s.known[i].present = false
		}
	}
	s.weigh(jobs)
	return nil
}

// Update does the same as [Sampler.Update].
func (s *Stride) Update(changes []agent.JobWeight) error {
	if err := s.Sampler.Update(changes); err != nil || s.Plain {
		return err
	}
	s.weigh(changes)
	return nil
}

// weigh changes the weights of jobs. A job may have got more slot time than its share. weigh keeps this difference when
// it changes the weight. A job that comes back does not get the slot time that it missed.
func (s *Stride) weigh(jobs []agent.JobWeight) {
	var fresh []known
	for _, j := range jobs {
		k, w := s.find(j.Job), float64(j.Weight)
		switch {
		case w == 0 && k != nil:
			k.present = false
		case w > 0 && k == nil:
			fresh = append(fresh, known{job: j.Job, weight: w, pass: s.virtual, present: true})
		case w > 0:
			k.pass = s.virtual + (k.pass-s.virtual)*k.weight/w
			if !k.present {
				k.pass, k.present = max(k.pass, s.virtual), true
			}
			k.weight = w
		}
	}
	if n := len(s.known); n > 0 && len(fresh) > 0 && fresh[0].job < s.known[n-1].job {
		s.known = append(s.known, fresh...)
		slices.SortFunc(s.known, func(a, b known) int { return int(a.job - b.job) })
	} else {
		s.known = append(s.known, fresh...)
	}
	s.stale = true
	if len(s.known) > 2*s.Len()+group {
		s.forget()
	}
}

// forget drops the jobs that have no weight, no tasks and no claims, if the slot time that they received no longer
// matters. If too many jobs are left, it drops all jobs without weight.
func (s *Stride) forget() {
	s.known = slices.DeleteFunc(s.known, func(k known) bool { return !k.present && k.tasks+k.claims == 0 && k.pass <= s.virtual })
	if len(s.known) > mostKnown {
		s.known = slices.DeleteFunc(s.known, func(k known) bool { return !k.present })
	}
	s.known = slices.Clip(s.known)
}

// Knows reports whether the Stride remembers a job, so that it can be charged.
func (s *Stride) Knows(job messages.JobID) bool { return s.find(job) != nil }

func (s *Stride) find(job messages.JobID) *known {
	at, found := slices.BinarySearchFunc(s.known, job, func(k known, job messages.JobID) int {
		switch {
		case k.job < job:
			return -1
		case k.job > job:
			return 1
		}
		return 0
	})
	if !found {
		return nil
	}
	return &s.known[at]
}

// Draw draws a job for one slot. It charges the job at once for a task of the job's usual length. When the task has
// ended, [Stride.Settle] replaces this charge by the real one. Draw returns 0 if there are no jobs.
func (s *Stride) Draw(rng *rand.Rand) messages.JobID {
	u := rng.Float64()
	if s.Plain || s.Len() == 0 || len(s.known) == 0 {
		return s.Sample(u)
	}
	s.refresh()
	k := s.find(s.Sample(u))
	if s.usual > 0 {
		k = s.draw(u)
	}
	expected := s.expected(k)
	k.claims++
	k.claimed += expected
	s.drawn = append(s.drawn, k.job)
	s.charge(k, expected)
	return k.job
}

// draw draws a job at random; the probability of a job is in proportion to its odds. If all jobs are far ahead of their
// shares, draw returns the job that is least ahead. The random number u is uniform in [0, 1).
func (s *Stride) draw(u float64) *known {
	total, parts, sum := 0.0, s.parts[:0], s.Total()
	for i := range s.known {
		part := 0.0
		if k := &s.known[i]; k.present {
			part = s.odds(k, sum)
		}
		parts = append(parts, part)
		total += part
	}
	s.parts = parts
	for x, i := u*total, 0; i < len(parts); i++ {
		if x -= parts[i]; x < 0 {
			return &s.known[i]
		}
	}
	return s.leastAhead()
}

func (s *Stride) leastAhead() (least *known) {
	sum := s.Total()
	for i := range s.known {
		if k := &s.known[i]; k.present && (least == nil || s.ahead(k, sum) < s.ahead(least, sum)) {
			least = k
		}
	}
	return least
}

// ahead returns by how many slot-seconds a job will be ahead of its share at the middle of its next task. If the job
// gets exactly its share, this number is 0 or negative on average. `sum` is the sum of all weights.
func (s *Stride) ahead(k *known, sum float64) float64 {
	return k.weight*(k.pass-s.virtual-s.behind) + (s.expected(k)-s.usual)/2*(1-k.weight/sum)
}

// odds returns a number for a job. The job's chance to be drawn is this number divided by the sum of the numbers of all
// jobs.
func (s *Stride) odds(k *known, sum float64) float64 {
	return k.weight / max(s.expected(k), shortest) * max(0, 1-gentle*s.ahead(k, sum)/s.usual)
}

// expected returns how long a job's next task will take, in seconds.
func (s *Stride) expected(k *known) float64 {
	if k.length.of > 0 {
		return k.length.seconds
	}
	return s.any.seconds
}

// charge adds slot seconds to the slot time that a job has received. With a negative number it cancels a part of what
// it added before.
func (s *Stride) charge(k *known, seconds float64) {
	k.pass += seconds / k.weight
	if k.present {
		s.virtual += seconds / s.Total()
	}
}

// refresh charges the slot time that is due. Then it computes two numbers.
//
// The first is the average pass of the jobs. A job's pass is its slot time divided by its weight. The virtual time is
// never below the average pass. Otherwise, after jobs with less slot time have left, all other jobs would count as
// ahead.
//
// The second is the usual length of a task. It is the harmonic mean of the jobs' task lengths, weighted by the jobs'
// weights. If all jobs receive their shares, it is the mean length of the drawn tasks.
func (s *Stride) refresh() {
	if !s.stale {
		return
	}
	s.stale = false
	sum := s.Total()
	pass, weights, tasks := 0.0, 0.0, 0.0
	for i := range s.known {
		k := &s.known[i]
		if k.due != 0 {
			s.charge(k, k.due.Seconds())
			k.due = 0
		}
		if !k.present {
			continue
		}
		pass += k.weight / sum * k.pass
		if k.length.of > 0 {
			weights += k.weight
			tasks += k.weight / max(k.length.seconds, shortest)
		}
	}
	s.behind, s.usual = 0, 0
	if sum > 0 {
		s.behind = min(0, pass-s.virtual)
		s.virtual = max(s.virtual, pass)
	}
	if tasks > 0 {
		s.usual = weights / tasks
	}
}

// Settle is called when it is known which of the jobs drawn since the last call got slots. The function `granted`
// returns how many slots a job got. The caller must call Begin for each granted task. A drawn job without a granted
// slot has no task for this node. So Settle takes back what the job was charged for the draw. The job then does not
// count as a job that received less than its share.
func (s *Stride) Settle(granted func(messages.JobID) int) {
	for _, job := range s.drawn {
		k := s.find(job)
		if k == nil || k.claims == 0 {
			continue // the job was drawn more than once, and is settled already
		}
		s.charge(k, -k.claimed)
		at := s.virtual + s.behind
		if k.wide { // the node may be collecting slots for the job's task
			at -= wideBehind * s.expected(k) / k.weight
		}
		if k.pass < at && granted(k.job) < k.claims {
			k.pass, s.stale = at, true
		}
		k.claims, k.claimed = 0, 0
	}
	s.drawn = s.drawn[:0]
}

// Begin charges a job for a granted task of some slots. The task's length is not known yet, so Begin charges an
// expected length and returns it. If `ok` is false, the job is unknown, and End must not be called for the task.
func (s *Stride) Begin(job messages.JobID, slots int) (charged time.Duration, ok bool) {
	k := s.find(job)
	if k == nil {
		return 0, false
	}
	charged = time.Duration(s.expected(k) * 1e9)
	k.tasks++
	k.wide = k.wide || slots > 1
	k.due += charged
	s.stale = true
	return charged, true
}

// Owe changes what a job must still pay for its tasks. A task may take longer than the time for which the job was
// charged. The argument `by` is then the difference. If it is negative, the job gets time back.
func (s *Stride) Owe(job messages.JobID, by time.Duration) {
	if k := s.find(job); k != nil && by != 0 {
		k.due += by
		s.stale = true
	}
}

// End ends a task of a job. At its start, the job was charged the time `charged` for the task. The task ran for the
// time `took`; if `took` is negative, the task did not run.
func (s *Stride) End(job messages.JobID, charged, took time.Duration) {
	s.Owe(job, max(0, took)-charged)
	k := s.find(job)
	if k != nil {
		k.tasks = max(0, k.tasks-1) // the job may have been dropped and added again
	}
	if took < 0 {
		return
	}
	s.any.add(took.Seconds())
	if k != nil {
		k.length.add(took.Seconds())
		s.stale = true
	}
}
