package messages

import (
	"strings"
	"testing"
	"time"
)

func TestValidOwner(t *testing.T) {
	for name, want := range map[string]bool{
		"alice": true, "alice@west": true, VisitorName("a", "b"): true,
		"": false, "@": false, "alice@": false, "@west": false, "alice@west@east": false, "Alice@west": false, "alice@West": false, "$auctioneer": false, "a b": false,
	} {
		if ValidOwner(name) != want {
			t.Errorf("%q: got %v", name, !want)
		}
	}
	if ValidName(VisitorName("alice", "west")) {
		t.Error("a user can have a visitor's name")
	}
}

func someVisit() PeerSubmitRequest {
	return PeerSubmitRequest{Job: 17, Account: "alice",
		Spec: JobSpec{Budget: Credit, Stages: []Stage{{Name: "main", Command: []string{"true"}}}},
		Authorisation: SignedAuthorisation{Authorisation: Authorisation{Issuer: "west", Peer: "east", ID: RemoteJobAuthorisation(17), Account: "lab", Member: "alice",
			Amount: Credit, Issued: 1, Interval: Duration(time.Hour), Margin: MaxClockSkew}}}
}

func TestPeerSubmitRequestIsChecked(t *testing.T) {
	good := someVisit()
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for field, c := range map[string]struct {
		kind  Kind
		spoil func(*PeerSubmitRequest)
	}{
		"job: is 0":                       {Invalid, func(r *PeerSubmitRequest) { r.Job = 0 }},
		"account":                         {Invalid, func(r *PeerSubmitRequest) { r.Account = "alice@west" }},
		"was asked for by":                {Invalid, func(r *PeerSubmitRequest) { r.Account = "bob" }},
		"not the authorisation of job 18": {Conflict, func(r *PeerSubmitRequest) { r.Job = 18 }},
		"the budget is 1.000001":          {Insufficient, func(r *PeerSubmitRequest) { r.Spec.Budget++ }},
		"authorisation.interval:":         {Invalid, func(r *PeerSubmitRequest) { r.Authorisation.Authorisation.Interval = 0 }},
		"stages":                          {Invalid, func(r *PeerSubmitRequest) { r.Spec.Stages = nil }},
	} {
		bad := someVisit()
		c.spoil(&bad)
		if err := bad.Validate(); KindOf(err) != c.kind || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

func TestSiteOfSubmissionIsChecked(t *testing.T) {
	r := SubmitRequest{Key: "k", Spec: someVisit().Spec, Site: AnySite}
	if err := r.Validate(); err != nil {
		t.Error(err)
	}
	r.Site = "a.b"
	if err := r.Validate(); KindOf(err) != Invalid || !strings.HasPrefix(Detail(err), "site") {
		t.Errorf("got %v", err)
	}
}
