package market

import (
	"time"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// relearn is how long a job's expected run times are used before they are asked for again.
const relearn = messages.Duration(time.Minute)

// Unknown returns at most `limit` jobs for which the leader should ask the estimator for run times. It returns none if
// the mechanism does not plan with run times. It returns the same job again after a minute, so that the run times are
// renewed.
func (m *Market) Unknown(now messages.Time, limit int) (ids []messages.JobID) {
	if !m.manner.Plans {
		return nil
	}
	for _, e := range m.members() {
		if len(ids) < limit && (e.learned == 0 || now.Sub(e.learned) >= relearn) {
			e.own().learned = now
			ids = append(ids, e.job.Job)
		}
	}
	return ids
}

// Learn gives the mechanism the run times of tasks that are similar to a job's tasks.
func (m *Market) Learn(id messages.JobID, r *mechanism.Runtimes) {
	if e := m.number.get(id); e != nil {
		e.job.Runtimes = r
		m.stale = true
	}
}

// Plans reports whether the mechanism plans with run times.
func (m *Market) Plans() bool { return m.manner.Plans }
