package clearing

import (
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

func TestValidOwner(t *testing.T) {
	for name, want := range map[string]bool{
		"alice": true, "alice@west": true, messages.VisitorName("a", "b"): true,
		"": false, "@": false, "alice@": false, "@west": false, "alice@west@east": false, "Alice@west": false, "alice@West": false, "$auctioneer": false, "a b": false,
	} {
		if messages.ValidOwner(name) != want {
			t.Errorf("%q: got %v", name, !want)
		}
	}
	if messages.ValidName(messages.VisitorName("alice", "west")) {
		t.Error("a user can have a visitor's name")
	}
}

func someVisit() PeerSubmitRequest {
	return PeerSubmitRequest{Job: 17, Account: "alice",
		Spec: job.JobSpec{Budget: messages.Credit, Stages: []job.Stage{{Name: "main", Command: []string{"true"}}}},
		Authorisation: SignedAuthorisation{Authorisation: Authorisation{Issuer: "west", Peer: "east", ID: RemoteJobAuthorisation(17), Account: "lab", Member: "alice",
			Amount: messages.Credit, Issued: 1, Interval: messages.Duration(time.Hour), Margin: MaxClockSkew}}}
}

func TestPeerSubmitRequestIsChecked(t *testing.T) {
	good := someVisit()
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for field, c := range map[string]struct {
		kind  messages.Kind
		spoil func(*PeerSubmitRequest)
	}{
		"job: is 0": {messages.Invalid, func(r *PeerSubmitRequest) { r.Job = 0 }},
		"account":   {messages.Invalid, func(r *PeerSubmitRequest) { r.Account = "alice@west" }},
		"asked for the authorisation, but the job belongs to": {messages.Invalid, func(r *PeerSubmitRequest) { r.Account = "bob" }},
		"is not for job 18: the authorisation":                {messages.Conflict, func(r *PeerSubmitRequest) { r.Job = 18 }},
		"the budget is 1.000001":                              {messages.Insufficient, func(r *PeerSubmitRequest) { r.Spec.Budget++ }},
		"authorisation.interval:":                             {messages.Invalid, func(r *PeerSubmitRequest) { r.Authorisation.Authorisation.Interval = 0 }},
		"stages":                                              {messages.Invalid, func(r *PeerSubmitRequest) { r.Spec.Stages = nil }},
	} {
		bad := someVisit()
		c.spoil(&bad)
		if err := bad.Validate(); messages.KindOf(err) != c.kind || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

func TestSiteOfSubmissionIsChecked(t *testing.T) {
	r := job.SubmitRequest{Key: "k", Spec: someVisit().Spec, Site: AnySite}
	if err := r.Validate(); err != nil {
		t.Error(err)
	}
	r.Site = "a.b"
	if err := r.Validate(); messages.KindOf(err) != messages.Invalid || !strings.HasPrefix(messages.Detail(err), "site") {
		t.Errorf("got %v", err)
	}
}
