package book

import (
	"cmp"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
)

// RemoteJob is a job of a user of this site, which another site runs. It has a number of this site, and the state that
// the other site reported last.
type RemoteJob struct {
	ID        messages.JobID
	Account   messages.Name
	Key       string
	Digest    []byte
	Payer     messages.Name
	Spec      *job.JobSpec // the description that the other site gets
	Peer      messages.Name
	Chosen    string // why Peer was chosen, if the auctioneer chose it
	Submitted messages.Time

	Phase         RemotePhase
	Authorisation *clearing.SignedAuthorisation // the authorisation by this site's bank; set from the phase Sending on
	Cancelled     bool                          // somebody cancelled the job, and it must end
	By            messages.Name                 // the account that cancelled it
	Told          bool                          // the other site knows that the job is cancelled
	Refused       *messages.Error               // why the bank or the other site refused the job
	Status        job.JobSummary
	Known         messages.Time // when the other site last reported; 0 means never
	Concluding    bool          // the other site reported the end of the job; this site's bank does not know it yet
}

// RemotePhase is the phase of a job that goes to another site.
type RemotePhase uint8

// A job stays in a phase until an answer comes. In the phase Authorising, the bank must answer. In the phase Sending,
// the other site must answer. The phase There ends when the other site reports the end of the job. The phase Releasing
// is for a job that will not run: the bank must answer that it has freed the job's authorisation.
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
func (r *RemoteJob) Summary() job.JobSummary {
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
	s.Away = &job.Away{Site: r.Peer, Phase: phase.String(), Known: r.Known, Chosen: r.Chosen}
	if r.Cancelled && r.Active() {
		s.Reason = "Cancelling"
	}
	return s
}
