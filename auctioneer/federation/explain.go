package federation

import (
	"fmt"
	"strings"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
)

// Explain adds to an answer about a remote job why it is where it is, as far as that
// is known without the peer, which answered a question about the job with an error.
func Explain(reply *messages.WhyReply, r *book.RemoteJob, now messages.Time, err error) {
	switch {
	case r.Refused != nil && r.Status.Reason == "RefusedByBank":
		reply.Message = "this site's bank did not set its budget aside: " + r.Refused.Message
	case r.Refused != nil:
		reply.Message = fmt.Sprintf("site %s does not run it: %s", r.Peer, r.Refused.Message)
		reply.Change = []string{"what the other site asks for, or another site, in a new submission"}
	case r.Phase == book.Authorising:
		reply.Message = fmt.Sprintf("this site's bank is asked to authorise %v credits for site %s", r.Spec.Budget, r.Peer)
	case r.Phase == book.Sending:
		reply.Message = fmt.Sprintf("site %s is asked to run it", r.Peer)
		if trouble := reply.Away.Trouble; trouble != "" {
			reply.Reason = "SiteSilent"
			reply.Message += ", and does not answer: " + trouble
			reply.Change = []string{"the site answering; it is asked again and again"}
		}
	case r.Known == 0:
		reply.Message = "it was cancelled before it was sent to site " + r.Peer
	default:
		reply.Message = fmt.Sprintf("site %s; %v ago it was %v: %s, with %d of %d tasks done and %d running", instead(r.Peer, err), now.Sub(r.Known).Std().Round(time.Second), r.Status.State, r.Status.Reason, r.Status.Done, r.Status.Tasks, r.Status.Running)
		if r.Phase == book.There {
			reply.Reason = "SiteSilent"
			reply.Change = []string{"the site answering; its jobs go on there meanwhile, and are charged when they end"}
		}
	}
}

// instead says what a peer that could not be asked about a job said instead.
func instead(peer messages.Name, err error) string {
	text := messages.AsError("", err).Message
	if messages.Passing(err) {
		return fmt.Sprintf("%s does not answer (%s)", peer, text)
	}
	return fmt.Sprintf("%s says: %s", peer, text)
}

// Chosen says why a remote job is where it is, if the site chose that, as the end of
// a sentence.
func Chosen(r *book.RemoteJob) string {
	if r.Chosen == "" {
		return ""
	}
	return "; it is there because " + r.Chosen
}

// Expected are the stages of a job of which no more is known than what it is.
func Expected(spec *messages.JobSpec) []messages.StageStatus {
	out := make([]messages.StageStatus, len(spec.Stages))
	for i := range spec.Stages {
		s := &spec.Stages[i]
		out[i] = messages.StageStatus{Name: s.Name, Class: s.Class, Tasks: s.TaskCount()}
	}
	return out
}

// OwnContract makes the contract that a job names one by its name at the peer, and
// refuses one of another site.
func OwnContract(spec *messages.JobSpec, peer messages.Name) error {
	site, own, foreign := strings.Cut(spec.Contract, "/")
	switch {
	case !foreign:
	case site != peer:
		return messages.Errorf(messages.Invalid, "contract: %s is of site %s, and the job is for %s; submit it there", spec.Contract, site, peer)
	default:
		spec.Contract = own
	}
	return nil
}
