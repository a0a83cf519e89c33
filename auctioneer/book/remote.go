package book

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Bounds on jobs that cross between sites.
const (
	MaxRemoteJobs = 100_000 // that other sites run and that have not ended
	MaxVisits     = 250_000 // of other sites that are remembered: the rest is for this site's own
)

// RemoteJob is a job of this site's user that another site runs. It has a number among
// the jobs of this site. Its state is the last state that the other site reported.
type RemoteJob struct {
	ID        messages.JobID
	Account   messages.Name
	Key       string
	Digest    []byte
	Payer     messages.Name
	Spec      *messages.JobSpec // as the other site gets it
	Peer      messages.Name
	Chosen    string // why it is there, where that was left to the auctioneer
	Submitted messages.Time

	Phase         RemotePhase
	Authorisation *messages.SignedAuthorisation // of its bank's, from Sending on
	Cancelled     bool                          // whether it is to end
	By            messages.Name                 // who said so
	Told          bool                          // and the other site knows
	Refused       *messages.Error               // why it is not run
	Status        messages.JobSummary
	Known         messages.Time // when the other site spoke last; 0: never
	Concluding    bool          // it is over by the other site's word, of which the bank does not know
}

// RemotePhase is how far a job has come that goes to another site.
type RemotePhase uint8

// Each phase is left for the next by an answer: the bank's, the other site's, and
// the other site's word that the job has ended. Releasing is that of a job which
// is not run there after all, until its authorisation is given back.
const (
	Authorising RemotePhase = iota
	Sending
	There
	Releasing
	Over
)

var remotePhaseNames = [...]string{"Authorising", "Sending", "There", "Releasing", "Ended"}

// String returns the phase's name.
func (p RemotePhase) String() string { return remotePhaseNames[p] }

// Visit says of which job of which site a job is that this one runs, and what
// pays for it. It never changes.
type Visit struct {
	messages.Visit
	Authorisation string        // its identifier at the home bank
	Until         messages.Time // when it can no longer be charged
}

// EnterRemote enters a job that another site is to run. Result: RemoteReceipt, of the
// earlier job if the account has used the key before.
type EnterRemote struct {
	Account messages.Name
	Key     string
	Digest  []byte
	Payer   messages.Name
	Spec    *messages.JobSpec
	Peer    messages.Name
	Chosen  string
}

// RemoteReceipt is what a submission to another site is answered with.
type RemoteReceipt struct {
	Job    messages.JobID
	Payer  messages.Name
	Held   messages.Credits
	Tasks  int
	Peer   messages.Name
	Chosen string
}

// Advance takes remote jobs from phase to phase. A step that does not fit the phase of
// its job is an old word, and is let pass. Result: nil; of a step that cancels,
// the messages.State before, or why it cannot.
type Advance struct {
	Steps []Step
}

// Step is one thing that became known about a job. Exactly one field beside Job
// and Conclude is set.
type Step struct {
	Job        messages.JobID
	Authorised *messages.SignedAuthorisation // the bank set its budget aside
	Arrived    *messages.JobSummary          // the other site took it, and said this
	Status     *messages.JobSummary          // the other site said this later
	Refused    *messages.Error               // it will not run there
	Cancel     messages.Name                 // who wants it ended
	Told       bool                          // the other site was told to end it
	Released   bool                          // nothing is set aside for it any more
	Forgotten  *messages.JobSummary          // the other site knows nothing of it any more
	Concluded  bool                          // the bank knows that it is over by the other site's word

	// Conclude, with Arrived or Status, has the bank told where the job is over by that.
	Conclude bool
}

// remote are the jobs of this site that others run.
type remote struct {
	remoteJobs map[messages.JobID]*RemoteJob
	departed   map[messages.Name]int    // by peer: jobs that are not over
	past       map[messages.JobID]*Past // that are over, and whose records are in the archive
	handed     int                      // how many of the first of returned are there
	archive    *archive
	returned   []messages.JobID // those that are remembered after their end, in its order
	index      *index
	watch      *watch
	clock      *clock
}

// Remote returns a job that another site runs, nil if there is none. It must not
// be changed.
func (b *remote) Remote(id messages.JobID) *RemoteJob { return b.remoteJobs[id] }

// Departed counts the jobs at a peer that are not over.
func (b *remote) Departed(peer messages.Name) int { return b.departed[peer] }

// Receipt returns the answer to the job's submission.
func (r *RemoteJob) Receipt() RemoteReceipt {
	return RemoteReceipt{Job: r.ID, Payer: r.Payer, Held: r.Spec.Budget, Tasks: r.Spec.TaskCount(), Peer: r.Peer, Chosen: r.Chosen}
}

// Active says whether the job may still run.
func (r *RemoteJob) Active() bool { return r.Phase <= There && !r.Status.State.Final() }

// enter enters a job under a key that was not used.
func (b *remote) enter(c *EnterRemote) (RemoteReceipt, error) {
	if len(b.remoteJobs)+len(b.past)-len(b.returned) >= MaxRemoteJobs {
		return RemoteReceipt{}, messages.Errorf(messages.Exhausted, "%d jobs at other sites have not ended; submit again later", MaxRemoteJobs)
	}
	r := &RemoteJob{ID: b.index.number(c.Account, c.Key), Account: c.Account, Key: c.Key, Digest: c.Digest, Payer: c.Payer, Spec: c.Spec,
		Peer: c.Peer, Chosen: c.Chosen, Submitted: b.clock.now}
	r.Status = messages.JobSummary{State: messages.Waiting, Reason: "Authorising", Tasks: c.Spec.TaskCount()}
	b.remoteJobs[r.ID] = r
	b.departed[r.Peer]++
	b.watch.touch(r.ID)
	return r.Receipt(), nil
}

func (b *remote) advance(c *Advance) (result any) {
	for i := range c.Steps {
		s := &c.Steps[i]
		r := b.remoteJobs[s.Job]
		switch {
		case r == nil && s.Cancel != "":
			result = messages.Errorf(messages.NotFound, "there is no job %d", s.Job)
		case r == nil:
		case s.Cancel != "":
			result = b.recall(r, s.Cancel)
		default:
			b.step(r, s)
		}
	}
	return result
}

func (b *remote) step(r *RemoteJob, s *Step) {
	switch {
	case s.Authorised != nil && r.Phase == Authorising:
		r.Phase, r.Authorisation = Sending, s.Authorised
		r.Status.Reason = "Sending"
	case s.Arrived != nil && r.Phase == Sending:
		b.heard(r, s.Arrived, s.Conclude)
	case s.Status != nil && (r.Phase == Sending || r.Phase == There): // it may overtake Arrived
		b.heard(r, s.Status, s.Conclude)
	case s.Refused != nil && r.Phase < There:
		b.refused(r, s.Refused)
	case s.Told && (r.Phase == There || r.Phase == Releasing):
		r.Told = true
	case s.Forgotten != nil && r.Phase == There: // what is set aside for it still is given back
		r.Status, r.Told = *s.Forgotten, true
		b.stay(r, s.Forgotten.State, s.Forgotten.Reason)
	case s.Released && r.Phase == Releasing:
		b.over(r)
	case s.Concluded && r.Concluding:
		r.Concluding = false
	default:
		return
	}
	b.watch.touch(r.ID)
}

// refused ends a job that the bank or the other site refuses. One that is to end
// anyway ends as cancelled.
func (b *remote) refused(r *RemoteJob, why *messages.Error) {
	r.Refused = why
	if r.Cancelled {
		b.stay(r, messages.Cancelled, "CancelledBy"+by(r.By, r.Account))
		return
	}
	b.stay(r, messages.Discarded, "RefusedBy"+cause(r.Phase))
}

// cause names who refuses a job in a phase.
func cause(p RemotePhase) string {
	if p == Authorising {
		return "Bank"
	}
	return "Site"
}

// heard takes what the other site said. A final state is its last word.
func (b *remote) heard(r *RemoteJob, s *messages.JobSummary, conclude bool) {
	r.Phase, r.Known = There, b.clock.now
	r.Status = *s
	r.Status.Visit, r.Status.Away = nil, nil
	if s.State.Final() {
		b.index.count(r.Account, -1)
		r.Concluding = conclude && r.Authorisation != nil
		b.over(r)
	}
}

// Unheard are steps that end the jobs of which another site can say nothing any more
// that would count: what was authorised for them has been freed by now, so that they
// are over there, and can be charged no more. A site that is gone for good would
// otherwise keep them for ever. So would one that was lost, because this site parted
// from it: what was authorised for jobs there is given back.
func (b *remote) Unheard(now messages.Time, lost map[messages.Name]bool) (out []Step) {
	for id, r := range b.remoteJobs {
		parted := lost[r.Peer]
		if r.Phase < Sending || r.Phase == Over || r.Authorisation == nil || !parted && r.Authorisation.Authorisation.Frees() >= now {
			continue
		}
		if r.Phase == Releasing {
			out = append(out, Step{Job: id, Released: true})
			continue
		}
		if r.Phase == Sending && !parted {
			out = append(out, Step{Job: id, Refused: messages.Errorf(messages.Expired, "site %s did not take it before what was authorised for it ended", r.Peer)})
			continue
		}
		last := r.Status
		last.State, last.Reason = messages.Failed, "SiteGone"
		if parted {
			last.Running, last.Ended = 0, now
			last.Reason, last.Message = "PeerLost", "this site has parted from site "+r.Peer+"; the budget is given back"
		}
		if r.Cancelled {
			last.State, last.Reason = messages.Cancelled, "CancelledBy"+by(r.By, r.Account)
		}
		out = append(out, Step{Job: id, Status: &last})
	}
	slices.SortFunc(out, func(x, y Step) int { return cmp.Compare(x.Job, y.Job) })
	return out[:min(len(out), mostUnheard)]
}

// mostUnheard bounds the steps of one command.
const mostUnheard = 256

// stay ends a job that will not run at the other site.
func (b *remote) stay(r *RemoteJob, state messages.State, reason string) {
	b.index.count(r.Account, -1)
	r.Phase = Releasing
	r.Status.State, r.Status.Reason, r.Status.Ended = state, reason, b.clock.now
}

// recall ends a job that has not been sent yet. A job that has been sent is marked to
// be ended there.
func (b *remote) recall(r *RemoteJob, who messages.Name) any {
	was := r.Status.State
	switch {
	case !r.Active() || was == messages.Settling:
		return messages.Errorf(messages.Ended, "job %d is %v already", r.ID, was)
	case r.Cancelled:
		return was
	}
	r.Cancelled, r.By = true, who
	if r.Phase == Authorising {
		b.stay(r, messages.Cancelled, "CancelledBy"+by(who, r.Account))
	}
	b.watch.touch(r.ID)
	return was
}

// over remembers an ended job, and drops the oldest above the number that is retained.
func (b *remote) over(r *RemoteJob) {
	r.Phase = Over
	if b.departed[r.Peer]--; b.departed[r.Peer] == 0 {
		delete(b.departed, r.Peer)
	}
	b.returned = append(b.returned, r.ID)
	b.archiveOldest()
	for len(b.returned) > retainEnded {
		id := b.returned[0]
		b.returned, b.handed = b.returned[1:], max(0, b.handed-1)
		if p := b.past[id]; p != nil {
			delete(b.past, id)
			b.index.drop(p.Account, p.Key)
			continue
		}
		old := b.remoteJobs[id]
		b.archive.add(Ended{Remote: old})
		delete(b.remoteJobs, id)
		b.index.remove(old.Account, old.Key, id)
		b.watch.touch(id)
	}
}

// Summary is the job as its owner sees it.
func (r *RemoteJob) Summary() messages.JobSummary {
	s := r.Status
	s.Job, s.Name, s.Account, s.Payer, s.Budget = r.ID, r.Spec.Name, r.Account, r.Payer, r.Spec.Budget
	s.Market, s.Visit = cmp.Or(s.Market, r.Spec.Market), nil
	s.Submitted, s.Labels = r.Submitted, r.Spec.Labels
	if len(r.Spec.Stages) == 1 {
		s.Array = r.Spec.Stages[0].Array
	}
	phase := r.Phase
	if phase == There && s.State.Final() {
		phase = Over
	}
	s.Away = &messages.Away{Site: r.Peer, Phase: phase.String(), Known: r.Known, Chosen: r.Chosen}
	if r.Cancelled && r.Active() {
		s.Reason = "Cancelling"
	}
	return s
}
