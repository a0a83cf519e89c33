package federation

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
)

const (
	maxEntering = 32  // visiting jobs of one peer that enter at once
	maxPolls    = 4   // requests of one peer that wait for a change
	pageOfJobs  = 256 // jobs in one answer
)

// Visits knows which visiting jobs changed when, and which enter the book. All of
// it can be lost: peers that follow their jobs see another epoch, and are told of all.
type Visits struct {
	epoch    uint64                                      // epoch of the cursors
	last     uint64                                      // change
	changed  map[messages.Name]map[messages.JobID]uint64 // by home: a job's last change
	homes    map[messages.JobID]messages.Name
	entering map[messages.Name]map[messages.JobID]bool // by home and number there
	polls    map[messages.Name]int
}

// NewVisits makes the visits of a leader; no other leader has had its epoch.
func NewVisits(epoch uint64) *Visits {
	return &Visits{epoch: epoch, changed: map[messages.Name]map[messages.JobID]uint64{}, homes: map[messages.JobID]messages.Name{},
		entering: map[messages.Name]map[messages.JobID]bool{}, polls: map[messages.Name]int{}}
}

// Changed takes changed jobs of the book, of any kind, in ascending order, and reports whether a
// visiting job is among them.
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

// Begin lets only one request at a time enter a visiting job, until [Visits.End]: otherwise one
// request could give back an authorisation that another one has just had accepted. No peer may use
// all places.
func (v *Visits) Begin(visit messages.Visit) error {
	if v.entering[visit.Home][visit.Job] || len(v.entering[visit.Home]) >= maxEntering {
		return messages.Errorf(messages.Unavailable, "job %v: is being accepted; ask again", visit)
	}
	put(v.entering, visit.Home, visit.Job, true)
	return nil
}

// Entering reports whether a visiting job is being taken.
func (v *Visits) Entering(visit messages.Visit) bool { return v.entering[visit.Home][visit.Job] }

// End ends the entry of a visiting job.
func (v *Visits) End(visit messages.Visit) {
	if delete(v.entering[visit.Home], visit.Job); len(v.entering[visit.Home]) == 0 {
		delete(v.entering, visit.Home)
	}
}

// Poll counts a request of a peer that waits for a change, until [Visits.Polled].
func (v *Visits) Poll(home messages.Name) error {
	if v.polls[home] >= maxPolls {
		return messages.Errorf(messages.Exhausted, "%d requests of site %s wait for news, as many as the limit", maxPolls, home)
	}
	v.polls[home]++
	return nil
}

// Polled ends a request that waits for a change.
func (v *Visits) Polled(home messages.Name) {
	if v.polls[home]--; v.polls[home] <= 0 {
		delete(v.polls, home)
	}
}

// Since begins the answer to a peer that follows its jobs here. It returns the jobs that changed
// after the peer's cursor, in the order of their changes, and the cursor after them. If none
// changed, the answer waits, unless the cursor is from another epoch.
func (v *Visits) Since(home messages.Name, r messages.PeerJobsRequest) (ids []messages.JobID, reply messages.PeerJobsReply, ready bool) {
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

// LastCall returns when a visiting job must end. The job came at one time, and its authorisation ends at
// the other. LastCall leaves time to charge the job: a tenth of the whole time, at most ten minutes.
func LastCall(came, until messages.Time) messages.Time {
	return until.Add(-min(max(0, until.Sub(came))/10, messages.Duration(10*time.Minute)))
}

// Outward returns a visiting job in the form for its home site: with its number and its owner's
// name there.
func Outward(s messages.JobSummary) messages.JobSummary {
	s.Job, s.Account = s.Visit.Job, Owner(s.Account)
	s.Visit, s.Payer = nil, s.Account
	return s
}

// Owner returns the home site's name for the owner of a visiting job.
func Owner(visitor messages.Name) messages.Name {
	name, _, _ := strings.Cut(visitor, "@")
	return name
}

// HomeOf returns the site whose auctioneer calls.
func HomeOf(caller messages.Name) (messages.Name, error) {
	home, is := strings.CutPrefix(caller, "$")
	switch {
	case !is || !messages.ValidName(home), home == messages.Auctioneer, home == messages.Bank, home == messages.Estimator, home == messages.NodeAgent, home == messages.Depot:
		return "", messages.Errorf(messages.PermissionDenied, "caller %q: only the auctioneers of other sites may ask this; users ask the auctioneer of their own site", caller)
	}
	return home, nil
}
