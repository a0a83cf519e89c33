package desk

import (
	"testing"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
)

// The desk's requests take a remote job from phase to phase. A silent peer must be asked again.
func TestErrandsAreRun(t *testing.T) {
	s := newSite(t, func(c *Config) { c.RemoteFor = 3600 * second })
	id := s.must(&book.Command{EnterRemote: &book.EnterRemote{Account: "ada", Key: "k", Digest: []byte("k"), Payer: "ada", Peer: "east",
		Spec: &job.JobSpec{Budget: 5, Stages: []job.Stage{{Name: "a", Tasks: 1}}}}}).(book.RemoteReceipt).Job
	s.step()
	if r := s.asked[0]; r.To != messages.Bank || r.Verb != clearing.VerbAuthorise || r.Body.(*clearing.AuthoriseRequest).Interval != 3600*second {
		t.Fatalf("asked %+v", r)
	}
	s.answer(&clearing.SignedAuthorisation{Authorisation: clearing.Authorisation{Issued: epoch, Interval: 3600 * second}}, nil)
	if r := s.asked[0]; r.To != messages.Auctioneer || r.Peer != "east" || r.Verb != clearing.VerbPeerSubmit {
		t.Fatalf("asked %+v", r)
	}
	s.answer(nil, messages.Errorf(messages.Unavailable, "nobody answers"))
	if ran := s.told[len(s.told)-1].(Ran); ran.Job != id || ran.Done || ran.Trouble == "" {
		t.Errorf("told %+v", ran)
	}
	s.pass(second)
	s.answer(&clearing.PeerSubmitReply{Job: job.JobSummary{State: job.Running}}, nil)
	if ran := s.told[len(s.told)-1].(Ran); !ran.Done || ran.Trouble != "" || s.Remote(id).Phase != book.There {
		t.Errorf("told %+v, and the job is %v", ran, s.Remote(id).Phase)
	}
	s.answer(nil, messages.Errorf(messages.Unavailable, "nobody answers"))
	s.now.Wall = s.Remote(id).Authorisation.Authorisation.Frees() + 1
	s.pass(2 * second)
	if r := s.Remote(id); r.Phase != book.Over || r.Status.Reason != "SiteGone" {
		t.Errorf("the job is %v: %s", r.Phase, r.Status.Reason)
	}
	s.asked = nil
	s.pass(60 * second)
	if s.next >= 0 && s.next < 10*second {
		t.Errorf("a step in %v for jobs that are over", s.next)
	}
}

func TestVisitingJobsEndInTime(t *testing.T) {
	s := newSite(t, usual)
	id := s.visit("east", 1)
	s.step()
	s.now.Wall = s.Job(id).Visit.Until.Add(-60 * second)
	s.pass(2 * second)
	if j := s.Job(id); j.Active() || j.Reason != "AuthorisationEnds" {
		t.Errorf("the job is %v: %s", j.State, j.Reason)
	}
}
