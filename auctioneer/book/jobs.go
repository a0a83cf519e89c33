package book

import (
	"sort"

	"github.com/candor-grid/candor/messages"
)

// jobs has the jobs of the book, except the jobs that other sites run.
type jobs struct {
	byID    table
	past    map[messages.JobID]*Past // ended jobs with records in the archive
	ended   []messages.JobID         // ended jobs in memory, ordered by their end
	handed  int                      // how many jobs at the start of ended have their records in the archive; jobs of other sites stay
	ordered map[messages.JobID]bool  // jobs with a final order to start, as long as they have not ended
	alive   map[messages.Name]int    // by market: number of jobs that have not ended
	behind  unread                   // shared with meters: changes of tariffs that the meters of some jobs do not include yet
}

func newJob(c *Submit, id messages.JobID, now messages.Time) *Job {
	j := &Job{
		ID: id, Account: c.Account, Key: c.Key, Digest: c.Digest, Payer: c.Payer, Spec: c.Spec,
		Assumed: c.Assumed, Hold: c.Hold, Held: c.Held, Submitted: now, Stages: make([]Stage, len(c.Spec.Stages)),
		Contract: c.Contract, Visit: c.Visit, Deposit: Deposit{Amount: c.Deposit},
	}
	if c.Spec.Hold {
		j.Parked = &Parked{By: c.Account}
	}
	for i := range c.Spec.Stages {
		j.Stages[i] = Stage{Total: c.Spec.Stages[i].TaskCount(), Unmet: len(c.Spec.Stages[i].After)}
	}
	return j
}

// get returns a job, which the caller must not change, or nil if there is none.
func (s *jobs) get(id messages.JobID) *Job { return s.byID.get(id) }

// The method `own` returns a job, or nil if there is none. While a command is applied, the caller may change the job.
func (s *jobs) own(id messages.JobID) *Job {
	j := s.byID.own(id)
	if j != nil {
		s.behind.catchUp(j)
	}
	return j
}

// live adds the argument `change` (1 or −1) to the number of jobs of a market that have not ended.
func (s *jobs) live(market messages.Name, change int) {
	if s.alive[market] += change; s.alive[market] == 0 {
		delete(s.alive, market)
	}
}

// A number can name the site (0) or a job. stands reports whether the number is 0 or the number of a job in the book.
func (j *jobs) stands(id messages.JobID) bool { return id == 0 || j.byID.look(id) != nil }

func (j *jobs) visits(id messages.JobID) bool {
	live := j.byID.look(id).live() // a packed job is never a visiting job
	return live != nil && live.Visit != nil
}

// catchUp adds the cost of a job's slots up to the latest change of tariffs. It must be called before any other state
// of the job changes.
func (u unread) catchUp(j *Job) {
	if j.metered == 0 {
		return
	}
	behind := u.of(j)
	if len(behind) == 0 {
		return
	}
	for i := range j.Stages {
		s := &j.Stages[i]
		s.Meter.through(behind, j.going(i), j.Spec, i)
	}
	j.metered = behind[len(behind)-1].number
}

// This method returns the changes of tariffs that the job's meter does not include yet.
func (u unread) of(j *Job) []change {
	all := u[j.Spec.Market]
	return all[sort.Search(len(all), func(i int) bool { return all[i].number > j.metered }):]
}

// going returns how many slots the running tasks of a stage have.
func (j *Job) going(stage int) int {
	s := &j.Stages[stage]
	return (s.OnSlots() - s.Gathering) * j.Spec.Stages[stage].Slots()
}
