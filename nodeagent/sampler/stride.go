package sampler

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/candor-grid/candor/messages"
)

const (
	// gentle is how much less often a job is drawn that is ahead by one task of the usual length,
	// as a part. With tasks of equal length it has almost no effect: see the package's doc.
	gentle = 0.1
	// mostKnown bounds the jobs that are remembered. A message has at most a quarter of that.
	mostKnown = 4096
	// memory is over how many of a job's last tasks their length is averaged.
	memory = 16
	// wideBehind is how many tasks a job with tasks of several slots may be behind that was granted
	// fewer than were drawn: the node may gather slots for it, or have no task for it.
	wideBehind = 4
	// shortest is the least length of a task that counts, in seconds.
	shortest = 1e-6
)

// Stride is a [Sampler] that draws so that the slot time which jobs receive, and not the
// number of tasks that they start, is in proportion to their weights. The zero value is
// empty and ready. It is not safe for concurrent use.
type Stride struct {
	Sampler
	// Plain leaves all to the Sampler: for weights that are not shares of slot time.
	Plain bool

	known   []known          // ascending: all jobs with a weight, and others that are ahead or have tasks
	virtual float64          // slot seconds for each unit of weight that jobs with a weight have received
	behind  float64          // how far they are below that on average; at most 0 if they are not
	usual   float64          // seconds that their tasks take; 0: unknown
	any     mean             // mean over the tasks of all jobs
	stale   bool             // behind and usual must be computed again
	drawn   []messages.JobID // jobs drawn since the last Settle
	parts   []float64        // memory of the last draw, for reuse
}

// known is what is remembered about a job.
type known struct {
	job     messages.JobID
	weight  float64 // the last above 0
	pass    float64 // slot seconds for each unit of weight that it has received
	length  mean
	tasks   int           // begun and not ended
	claims  int           // drawn and not settled
	claimed float64       // slot seconds that were charged for these
	due     time.Duration // received and not charged yet
	present bool          // it has a weight
	wide    bool          // a task of it took several slots
}

// mean is a mean of some last values.
type mean struct {
	seconds float64
	of      int
}

func (m *mean) add(seconds float64) {
	m.of = min(m.of+1, memory)
	m.seconds += (seconds - m.seconds) / float64(m.of)
}

// Replace does what [Sampler.Replace] does; jobs that no longer have a weight count as away.
func (s *Stride) Replace(jobs []messages.JobWeight) error {
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

// Update does what [Sampler.Update] does.
func (s *Stride) Update(changes []messages.JobWeight) error {
	if err := s.Sampler.Update(changes); err != nil || s.Plain {
		return err
	}
	s.weigh(changes)
	return nil
}

// weigh changes the weights of jobs. The slot time by which a job is ahead of its share does not change. A job that was away
// is not behind.
func (s *Stride) weigh(jobs []messages.JobWeight) {
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

// forget drops the jobs that are away and need not be remembered.
func (s *Stride) forget() {
	s.known = slices.DeleteFunc(s.known, func(k known) bool { return !k.present && k.tasks+k.claims == 0 && k.pass <= s.virtual })
	if len(s.known) > mostKnown {
		s.known = slices.DeleteFunc(s.known, func(k known) bool { return !k.present })
	}
	s.known = slices.Clip(s.known)
}

// Knows reports whether a job can be charged.
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

// Draw draws a job for one slot, 0 if there are no jobs, and charges it for a task of its
// usual length until [Stride.Settle].
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

// draw draws a job in proportion to its odds: as if jobs were drawn by weight, and drawn again with
// a probability that grows with the job's length and with how far it is ahead. If all are far
// ahead, it returns the one that is least ahead. u is uniform in [0, 1).
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

// ahead returns how many slot seconds above its share a job will have received in the middle of its
// next task. So the average is not above the share, whatever the length of its tasks. sum is the
// sum of all weights.
func (s *Stride) ahead(k *known, sum float64) float64 {
	return k.weight*(k.pass-s.virtual-s.behind) + (s.expected(k)-s.usual)/2*(1-k.weight/sum)
}

// odds returns the odds of a job; the sum over all jobs may be any number.
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

// charge records that a job has received slot time. It also corrects a charge for time that the job
// did not receive.
func (s *Stride) charge(k *known, seconds float64) {
	k.pass += seconds / k.weight
	if k.present {
		s.virtual += seconds / s.Total()
	}
}

// refresh charges the time that is due, and computes the average position of the jobs. Virtual time
// never falls behind them: after jobs with less time have left, nobody is ahead of these any more.
// The usual length is a harmonic mean in which a job's tasks have its weight: the mean over the
// tasks that would be drawn if all jobs received their shares.
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

// Settle reports the results of all draws since the last call: how many slots tasks of each job were
// granted. Call Begin for each of them. A job without a task for this node does not count as
// behind.
func (s *Stride) Settle(granted func(messages.JobID) int) {
	for _, job := range s.drawn {
		k := s.find(job)
		if k == nil || k.claims == 0 {
			continue // its first draw settled it
		}
		s.charge(k, -k.claimed)
		at := s.virtual + s.behind
		if k.wide { // the node may gather slots for its task
			at -= wideBehind * s.expected(k) / k.weight
		}
		if k.pass < at && granted(k.job) < k.claims {
			k.pass, s.stale = at, true
		}
		k.claims, k.claimed = 0, 0
	}
	s.drawn = s.drawn[:0]
}

// Begin charges a job for a task of some slots that was granted, and returns for how long; it reports false
// if nothing is known of the job, and the task is not to End.
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

// Owe charges a job for a task that has taken longer than was charged, or less if by is negative.
func (s *Stride) Owe(job messages.JobID, by time.Duration) {
	if k := s.find(job); k != nil && by != 0 {
		k.due += by
		s.stale = true
	}
}

// End says that a task has ended for which a job was charged. took is how long it ran; less than 0: it did not run.
func (s *Stride) End(job messages.JobID, charged, took time.Duration) {
	s.Owe(job, max(0, took)-charged)
	k := s.find(job)
	if k != nil {
		k.tasks = max(0, k.tasks-1) // it may have been forgotten and come back
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
