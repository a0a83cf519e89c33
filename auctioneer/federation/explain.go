package federation

import (
	"fmt"
	"strings"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// Explain adds to an answer the reason for the state of a remote job, as far as this site knows it. The argument `err`
// is the error of the request to the peer, if there was one.
func Explain(reply *market.WhyReply, r *book.RemoteJob, now messages.Time, err error) {
	switch {
	case r.Refused != nil && r.Status.Reason == "RefusedByBank":
		reply.Message = "the bank of this site did not hold the budget: " + r.Refused.Message
	case r.Refused != nil:
		reply.Message = fmt.Sprintf("site %s refused the job: %s", r.Peer, r.Refused.Message)
		reply.Change = []string{"a new submission to another site, or with the changes that the site asks for"}
	case r.Phase == book.Authorising:
		reply.Message = fmt.Sprintf("this site asks its bank to authorise %s for site %s", r.Spec.Budget.Words(), r.Peer)
	case r.Phase == book.Sending:
		reply.Message = fmt.Sprintf("this site asks site %s to run the job", r.Peer)
		if trouble := reply.Away.Trouble; trouble != "" {
			reply.Reason = "SiteSilent"
			reply.Message += ", and does not answer: " + trouble
			reply.Change = []string{"an answer of the site; the request is repeated"}
		}
	case r.Known == 0:
		reply.Message = "the job was cancelled before it was sent to site " + r.Peer
	default:
		reply.Message = fmt.Sprintf("site %s; %v ago the job was %v: %s, with %d of %d tasks done and %d running", unreachable(r.Peer, err), now.Sub(r.Known).Std().Round(time.Second), r.Status.State, r.Status.Reason, r.Status.Done, r.Status.Tasks, r.Status.Running)
		if r.Phase == book.There {
			reply.Reason = "SiteSilent"
			reply.Change = []string{"an answer of the site; jobs there go on, and are charged when they end"}
		}
	}
}

// unreachable returns a clause that says why a peer could not be asked about a job.
func unreachable(peer messages.Name, err error) string {
	text := messages.Detail(err)
	if messages.Passing(err) {
		return fmt.Sprintf("%s does not answer (%s)", peer, text)
	}
	return fmt.Sprintf("%s says: %s", peer, text)
}

// Chosen returns why the auctioneer chose the site of a remote job, as the end of a sentence, or "" if the user chose
// it.
func Chosen(r *book.RemoteJob) string {
	if r.Chosen == "" {
		return ""
	}
	return "; the job is there because " + r.Chosen
}

// Expected returns the names, classes and numbers of tasks of a job's stages, from its description alone.
func Expected(spec *job.JobSpec) []job.StageStatus {
	out := make([]job.StageStatus, len(spec.Stages))
	for i := range spec.Stages {
		s := &spec.Stages[i]
		out[i] = job.StageStatus{Name: s.Name, Class: s.Class, Tasks: s.TaskCount()}
	}
	return out
}

// OwnContract replaces a contract's name by its name at the peer. It returns an error if another site offered the
// contract.
func OwnContract(spec *job.JobSpec, peer messages.Name) error {
	site, own, foreign := strings.Cut(spec.Contract, "/")
	switch {
	case !foreign:
	case site != peer:
		return messages.Errorf(messages.Invalid, "contract: %s belongs to site %s, and the job is for site %s; submit the job to the site of the contract", spec.Contract, site, peer)
	default:
		spec.Contract = own
	}
	return nil
}
