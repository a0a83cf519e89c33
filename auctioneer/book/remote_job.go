package book

import (
	"cmp"

	"github.com/candor-grid/candor/messages"
)

// RemoteJob is a job of this site's user that another site runs. It has a number among
// the jobs of this site. Its state is the last state that the other site reported.
type RemoteJob struct {
	ID        messages.JobID
	Account   messages.Name
	Key       string
	Digest    []byte
	Payer     messages.Name
	Spec      *messages.JobSpec // as it is sent to the other site
	Peer      messages.Name
	Chosen    string // why it is there, if the auctioneer chose the site
	Submitted messages.Time

	Phase         RemotePhase
	Authorisation *messages.SignedAuthorisation // authorisation of this site's bank, from Sending on
	Cancelled     bool                          // the job is cancelled, and must end
	By            messages.Name                 // the account that cancelled it
	Told          bool                          // the other site knows that the job is cancelled
	Refused       *messages.Error               // why it is not run
	Status        messages.JobSummary
	Known         messages.Time // when the other site last reported; 0: never
	Concluding    bool          // the other site says that it has ended, but the bank does not know yet
}

// RemotePhase is how far a job has come that goes to another site.
type RemotePhase uint8

// An answer ends each phase: first the bank's, then the other site's, then the other site's report
// that the job has ended. A job is Releasing if it will not run at the other site: the bank is
// asked to free its authorisation.
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

// Receipt returns the answer to the job's submission.
func (r *RemoteJob) Receipt() RemoteReceipt {
	return RemoteReceipt{Job: r.ID, Payer: r.Payer, Held: r.Spec.Budget, Tasks: r.Spec.TaskCount(), Peer: r.Peer, Chosen: r.Chosen}
}

// Active reports whether the job may still run.
func (r *RemoteJob) Active() bool { return r.Phase <= There && !r.Status.State.Final() }

// Summary returns the job as its owner sees it.
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
