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

// Receipt returns the answer to the job's submission.
func (r *RemoteJob) Receipt() RemoteReceipt {
	return RemoteReceipt{Job: r.ID, Payer: r.Payer, Held: r.Spec.Budget, Tasks: r.Spec.TaskCount(), Peer: r.Peer, Chosen: r.Chosen}
}

// Active says whether the job may still run.
func (r *RemoteJob) Active() bool { return r.Phase <= There && !r.Status.State.Final() }

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
