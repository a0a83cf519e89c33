package federation

import (
	"fmt"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
)

// Errand is the next request about a remote job.
type Errand uint8

// The errands Authorise, Conclude and Release are requests to this site's bank. Send and Recall are requests to the
// peer. Conclude tells the bank that the job has ended, which limits the time in which the peer can charge for it. The
// errand inquire asks the peer about a job that is missing from the peer's list.
const (
	Authorise Errand = iota
	Send
	Recall
	Release
	Conclude
	inquire
)

func (e Errand) to(r *book.RemoteJob) messages.Name {
	if e == Authorise || e == Release || e == Conclude {
		return bank
	}
	return r.Peer
}

// Next returns the errand for a remote job in its present phase, or false if there is none.
func Next(r *book.RemoteJob) (Errand, bool) {
	switch r.Phase {
	case book.Authorising:
		return Authorise, true
	case book.Sending:
		return Send, true
	case book.There:
		return Recall, r.Cancelled && !r.Told
	case book.Releasing:
		if r.Authorisation != nil && !r.Told {
			return Recall, true // the job may have reached the other site
		}
		return Release, true
	case book.Over:
		return Conclude, r.Concluding
	}
	return 0, false
}

// request returns the request of an errand. The release of a job needs the job's authorisation. If the authorisation is
// not known, the bank may have given it in a reply that was lost. Then request first returns a request to the bank for
// the same authorisation. `sought` is true if the bank has answered that request already.
func (e Errand) request(r *book.RemoteJob, authorisedFor messages.Duration, sought bool) Request {
	q := Request{Peer: e.to(r), Job: r.ID, Within: errandWithin}
	byNumber := &job.JobRequest{Job: r.ID}
	switch {
	case e == Authorise || e == Release && r.Authorisation == nil && !sought:
		q.Verb, q.Reply = clearing.VerbAuthorise, new(clearing.SignedAuthorisation)
		q.Body = &clearing.AuthoriseRequest{Key: clearing.RemoteJobKey(r.ID), Account: r.Payer, Member: r.Account, Peer: r.Peer,
			Amount: r.Spec.Budget, Interval: authorisedFor, Job: r.ID, Reason: fmt.Sprintf("%s, number %d", r.Spec.Title(), r.ID)}
	case e == Release, e == Conclude:
		q.Verb, q.Reply = clearing.VerbRevoke, new(clearing.ClearingReply)
		q.Body = &clearing.RevokeRequest{ID: clearing.RemoteJobAuthorisation(r.ID), Ended: e == Conclude}
	case e == Send:
		q.Verb, q.Reply = clearing.VerbPeerSubmit, new(clearing.PeerSubmitReply)
		q.Body = &clearing.PeerSubmitRequest{Job: r.ID, Account: r.Account, Spec: *r.Spec, Authorisation: *r.Authorisation}
	case e == Recall:
		q.Verb, q.Reply, q.Body = clearing.VerbPeerCancel, new(job.CancelReply), byNumber
	case e == inquire:
		q.Verb, q.Reply, q.Body = clearing.VerbPeerJob, new(job.JobDetail), byNumber
	}
	return q
}

// step returns the change that follows from the answer to an errand, or nil. An error means that the errand must be
// sent again.
func (e Errand) step(r *book.RemoteJob, q *Request, reply any, err error) (*book.Step, error) {
	switch kind := messages.KindOf(err); {
	case e == Recall && (err == nil || kind == messages.Ended || kind == messages.NotFound):
		return &book.Step{Told: true}, nil // the job has ended, or the peer does not know it: nothing more to do
	case e == Recall && r.Phase == book.Releasing && !messages.Waits(err): // the job is not at the other site
		return &book.Step{Told: true}, nil
	case e == Recall:
		return nil, err
	case e == inquire && kind == messages.NotFound: // the job ended long ago; the bank's books have its cost
		last := r.Status
		last.State, last.Reason, last.Running = job.Failed, "ForgottenThere", 0
		return &book.Step{Forgotten: &last}, nil
	case err != nil && messages.Waits(err): // an earlier request without an answer may have been carried out
		return nil, err
	case e == inquire && err != nil, q.Verb == clearing.VerbAuthorise && e == Release:
		return nil, nil
	case e == Release:
		return &book.Step{Released: true}, nil
	case e == Conclude: // if err is not nil, the job was charged before
		return &book.Step{Concluded: true}, nil
	case err != nil:
		return &book.Step{Refused: messages.AsError(q.Verb, err)}, nil
	}
	return said(r, reply)
}

// said returns the step of a remote job that follows from an answer without an error.
func said(r *book.RemoteJob, reply any) (*book.Step, error) {
	switch reply := reply.(type) {
	case *clearing.SignedAuthorisation:
		return &book.Step{Authorised: reply}, nil
	case *clearing.PeerSubmitReply:
		return &book.Step{Arrived: Heard(&reply.Job, r), Conclude: true}, nil
	case *job.JobDetail:
		return &book.Step{Status: Heard(&reply.JobSummary, r), Conclude: true}, nil
	}
	return nil, messages.Errorf(messages.Unavailable, "the answer has an unexpected type: %T", reply)
}

// Portable returns an error for a job that needs something of its home site, such as other jobs to wait for.
func Portable(spec *job.JobSpec) error {
	switch {
	case spec.Hold:
		return messages.Errorf(messages.Invalid, "hold: a job at another site cannot be on hold; submit the job later")
	case len(spec.Notify) > 0:
		return messages.Errorf(messages.Invalid, "notify: this site sends no messages about jobs at other sites; leave the field notify out, or submit the job here")
	case spec.Begin != 0:
		return messages.Errorf(messages.Invalid, "begin: a job at another site cannot wait for a time; submit the job at that time, or submit the job to your own site")
	case len(spec.Predecessors()) > 0:
		return messages.Errorf(messages.Invalid, "%s: a job at another site cannot wait for jobs of this site; submit the job when these jobs have ended, or submit the job to your own site", waits(spec))
	}
	return nil
}

// waits returns the name of the field that makes the job wait for other jobs. It returns "" if the job waits for none.
func waits(spec *job.JobSpec) string {
	switch {
	case len(spec.AfterJobs) > 0:
		return "after_jobs"
	case len(spec.AfterOK) > 0:
		return "after_ok"
	case len(spec.AfterFailed) > 0:
		return "after_failed"
	case len(spec.AfterStart) > 0:
		return "after_start"
	}
	return "after_each"
}
