package book

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// Limits on the notices that wait to be sent.
const (
	MaxNotices       = 10_000 // maximum number of waiting notices of the site
	MaxNoticesTo     = 100    // maximum number of waiting notices for one receiver
	mostNoticeStatus = job.MaxNotify * 8
)

// Notice is a notification about a job that must be sent. It stays until it is sent or given up. It is not an effect:
// settlements and payments do not wait for it, so no receiver can delay them.
type Notice struct {
	ID    uint64
	To    string
	Event string
	At    messages.Time
	Job   job.JobSummary // the job at the time of the event
}

func (n Notice) compare(o Notice) int { return cmp.Compare(n.ID, o.ID) }

type notices struct {
	queue    sorted[Notice] // ordered by ID
	lastSent uint64         // highest ID until now
	waitFor  map[string]int
	jobs     *jobs
	watch    *watch
	clock    *clock
}

// event adds a notice for each receiver that wants one of the given events of a job.
func (s *notices) event(j *Job, events ...string) {
	for i := range j.Spec.Notify {
		n := &j.Spec.Notify[i]
		at := slices.IndexFunc(events, n.Wants)
		if at < 0 || len(j.Notices) >= mostNoticeStatus {
			continue
		}
		status := job.NoticeStatus{To: n.To, Event: events[at], At: s.clock.now}
		switch {
		case s.queue.count >= MaxNotices:
			status.Refused = "the site has too many notices to send"
		case s.waitFor[n.To] >= MaxNoticesTo:
			status.Refused = "too many notices wait for this receiver"
		default:
			s.lastSent++
			s.enter(Notice{ID: s.lastSent, To: n.To, Event: events[at], At: s.clock.now, Job: j.Summary()})
		}
		j.Notices = append(j.Notices, status)
	}
}

// warn records that a job will soon have spent its budget, and adds notices about this. The number of notices of a job
// is bounded, so warn leaves room for the notices about the job's end.
func (s *notices) warn(c *Warn) {
	j := s.jobs.own(c.Job)
	if j == nil || !j.Active() || j.Warned == j.Spec.Budget {
		return
	}
	j.Warned = j.Spec.Budget
	if len(j.Notices) < mostNoticeStatus-2*job.MaxNotify {
		s.event(j, job.NotifyBudget)
	}
	s.watch.touch(j.ID)
}

func (s *notices) enter(n Notice) {
	s.queue.add(n)
	s.waitFor[n.To]++
	s.watch.changed.Notices = true
}

func (s *notices) notified(c *Notified) {
	for _, o := range c.Outcomes {
		n, waits := s.queue.remove(Notice{ID: o.Notice})
		if !waits {
			continue
		}
		if s.waitFor[n.To]--; s.waitFor[n.To] == 0 {
			delete(s.waitFor, n.To)
		}
		s.tell(&n, o.Refused)
	}
	s.watch.changed.Notices = true
}

func (s *notices) tell(n *Notice, refused string) {
	j := s.jobs.own(n.Job.Job)
	if j == nil {
		return
	}
	list := slices.Clone(j.Notices) // a snapshot may still use the old list
	for k := range list {
		if t := &list[k]; t.To == n.To && t.Event == n.Event && t.At == n.At && t.Sent == 0 && t.Refused == "" {
			if t.Refused = refused; refused == "" {
				t.Sent = s.clock.now
			}
			break
		}
	}
	j.Notices = list
	s.watch.touch(j.ID)
}
