package federation

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
)

const (
	maxEntering = 32  // how many visiting jobs of one peer may enter at the same time
	maxPolls    = 4   // how many requests of one peer may wait for a change
	pageOfJobs  = 256 // jobs in one answer
)

// Visits stores which visiting jobs changed and when. It also stores which visiting jobs are being added to the book.
// If a leader loses this data, it begins a new epoch. A peer then sees that the epoch has changed, and gets all its
// jobs again.
type Visits struct {
	epoch    uint64                                      // epoch of this leader; part of each cursor
	last     uint64                                      // number of the last change
	changed  map[messages.Name]map[messages.JobID]uint64 // by home site: number of each job's last change
	homes    map[messages.JobID]messages.Name
	entering map[messages.Name]map[messages.JobID]bool // jobs that are being added to the book, by home site and by the job's number there
	polls    map[messages.Name]int
}

// NewVisits returns the visits of a new leader. The argument `epoch` must be a number that no other leader uses.
func NewVisits(epoch uint64) *Visits {
	return &Visits{epoch: epoch, changed: map[messages.Name]map[messages.JobID]uint64{}, homes: map[messages.JobID]messages.Name{},
		entering: map[messages.Name]map[messages.JobID]bool{}, polls: map[messages.Name]int{}}
}

// Changed is called with the numbers of the jobs that have changed in the book, in ascending order. Some of them may be
// visiting jobs. Changed reports whether there is a visiting job among them.
func (v *Visits) Changed(b *book.Book, ids []messages.JobID) (visiting bool) {
	for _, id := range ids {
		if j := b.VisitingJob(id); j == nil {
			delete(v.changed[v.homes[id]], id)
			delete(v.homes, id)
		} else {
			v.last++
			v.homes[id] = j.Visit.Home
			put(v.changed, j.Visit.Home, id, v.last)
			visiting = true
		}
	}
	return visiting
}

func put[V any](m map[messages.Name]map[messages.JobID]V, name messages.Name, id messages.JobID, value V) {
	if m[name] == nil {
		m[name] = map[messages.JobID]V{}
	}
	m[name][id] = value
}

// Begin reserves a visiting job for one request until [Visits.End]. Without the reservation, two requests for the job
// could be handled at the same time, and one could give back the authorisation that the bank has just accepted for the
// other. Each peer can reserve only a limited number of jobs.
func (v *Visits) Begin(visit job.Visit) error {
	if v.entering[visit.Home][visit.Job] || len(v.entering[visit.Home]) >= maxEntering {
		return messages.Errorf(messages.Unavailable, "job %v: is being accepted; ask again", visit)
	}
	put(v.entering, visit.Home, visit.Job, true)
	return nil
}

// Entering reports whether a request is being carried out that will add this visiting job to the book.
func (v *Visits) Entering(visit job.Visit) bool { return v.entering[visit.Home][visit.Job] }

// End ends what [Visits.Begin] began: a further request for this visiting job may now be handled.
func (v *Visits) End(visit job.Visit) {
	if delete(v.entering[visit.Home], visit.Job); len(v.entering[visit.Home]) == 0 {
		delete(v.entering, visit.Home)
	}
}

// Poll counts a peer's request that waits for a change. The request counts until [Visits.Polled].
func (v *Visits) Poll(home messages.Name) error {
	if v.polls[home] >= maxPolls {
		return messages.Errorf(messages.Exhausted, "%d requests of site %s wait for changes of their jobs, which is the limit; ask again later", maxPolls, home)
	}
	v.polls[home]++
	return nil
}

// Polled is called when a request that waited for a change has been answered. It subtracts this request from the site's
// waiting requests.
func (v *Visits) Polled(home messages.Name) {
	if v.polls[home]--; v.polls[home] <= 0 {
		delete(v.polls, home)
	}
}

// Since prepares the answer to a peer that asks for news of its jobs at this site. It returns the jobs that changed
// after the peer's cursor, in the order of their changes, and a new cursor. Each leader has its own epoch. The result
// `ready` is false if no job has changed and the cursor was made in the epoch of this leader. The answer then waits for
// a change.
func (v *Visits) Since(home messages.Name, r clearing.PeerJobsRequest) (ids []messages.JobID, reply clearing.PeerJobsReply, ready bool) {
	reply.Epoch, reply.Whole = v.epoch, r.Epoch != v.epoch
	if reply.Whole {
		r.After = 0
	}
	changed := v.changed[home]
	for id, at := range changed {
		if at > r.After {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(x, y messages.JobID) int { return cmp.Compare(changed[x], changed[y]) })
	if reply.More = len(ids) > pageOfJobs; reply.More {
		ids = ids[:pageOfJobs]
	}
	reply.Next = r.After
	if len(ids) > 0 {
		reply.Next = changed[ids[len(ids)-1]]
	}
	return ids, reply, len(ids) > 0 || reply.Whole
}

// LastCall returns when a visiting job must end. The job arrived at the time `came`, and its authorisation ends at the
// time `until`. The job must end earlier than its authorisation, so that the site has time to charge it. The difference
// is a tenth of the time from the job's arrival to the end of its authorisation, but at most ten minutes.
func LastCall(came, until messages.Time) messages.Time {
	return until.Add(-min(max(0, until.Sub(came))/10, messages.Duration(10*time.Minute)))
}

// Outward returns a visiting job as its home site knows it: with the number and the owner that it has at its home site.
func Outward(s job.JobSummary) job.JobSummary {
	s.Job, s.Account = s.Visit.Job, Owner(s.Account)
	s.Visit, s.Payer = nil, s.Account
	return s
}

// Owner returns the name of a visiting job's owner at the home site.
func Owner(visitor messages.Name) messages.Name {
	name, _, _ := strings.Cut(visitor, "@")
	return name
}

// HomeOf returns the site of a caller that is the auctioneer of another site, and an error for any other caller.
func HomeOf(caller messages.Name) (messages.Name, error) {
	home, is := strings.CutPrefix(caller, "$")
	switch {
	case !is || !messages.ValidName(home), home == messages.Auctioneer, home == messages.Bank, home == messages.Estimator, home == messages.NodeAgent, home == messages.Depot:
		return "", messages.Errorf(messages.PermissionDenied, "caller %q: only the auctioneers of other sites may ask this; users ask the auctioneer of their own site", caller)
	}
	return home, nil
}
