package client

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/messages"
)

func someLinks() messages.LinksReply {
	ms := messages.Duration(time.Millisecond)
	return messages.LinksReply{
		Site: "west", Missing: []messages.Name{"rack3"},
		Links: []messages.Link{
			{Peer: "east", Host: "rack1", Address: "10.1.0.1:7422", Outgoing: true, RTT: 61 * ms},
			{Peer: "east", Host: "rack2", Address: "10.1.0.1:7422", Outgoing: true, RTT: 60 * ms},
			{Peer: "south", Host: "rack1", Address: "10.3.0.1:40000"},
		},
		Trips: []messages.PeerTrip{{Peer: "east", Took: 64 * ms}, {Peer: "north", Failure: "nobody answers"}, {Peer: "south", Took: ms / 2}},
	}
}

func TestSiteStatusViews(t *testing.T) {
	unlinked := siteStatus{Bank: somePeers(), Failure: "nobody here knows the links"}
	for name, r := range map[string]siteStatus{
		"site_status":          {Links: someLinks(), Bank: somePeers()},
		"site_status_no_peers": {Bank: messages.PeersReply{Site: "west"}},
		"site_status_unlinked": unlinked,
	} {
		p := &page{now: at(3600), zone: time.UTC, columns: 80}
		p.siteStatus(r)
		golden(t, name+".txt", p.String())
	}
}

// TestSiteStatus: the exit code tells whether every peer is linked and answers.
func TestSiteStatus(t *testing.T) {
	s := newSite(t)
	run := func(code int, out, err string, args ...string) {
		t.Helper()
		s.further = []Group{{Title: "Run a site:", Commands: []*cobra.Command{{Use: "site", Short: "prepare a site"}}}}
		s.run(append([]string{"site", "status"}, args...)...).expect(t, code, out, err)
	}
	bank, links := somePeers(), someLinks()
	answer(s, messages.Bank, messages.VerbPeers, func(messages.Empty) (messages.PeersReply, error) { return bank, nil })
	run(codeFailed, "nobody here knows the links", "", "--timeout", "1s")
	answer(s, messages.Links, messages.VerbStatus, func(messages.Empty) (messages.LinksReply, error) { return links, nil })
	run(codeFailed, "The bank of north did not answer just now: nobody answers", "")
	bank.Peers = bank.Peers[:1]
	run(codeOK, "60.0 ms", "")
	run(codeOK, `"failure":""`, "", "--json")
	links.Links = nil
	run(codeFailed, "none", "")
	bank.Peers = nil
	run(codeOK, "No peers.", "")
	run(codeUsage, "", "", "west")
}

// TestBetweenSites: what users ask their bank for, and how it is told.
func TestBetweenSites(t *testing.T) {
	s := newSite(t)
	var remit messages.RemitRequest
	answer(s, messages.Bank, messages.VerbRemit, func(r messages.RemitRequest) (messages.ClearingReply, error) {
		remit = r
		return messages.ClearingReply{Number: 12}, nil
	})
	var asked messages.AuthoriseRequest
	answer(s, messages.Bank, messages.VerbAuthorise, func(r messages.AuthoriseRequest) (messages.SignedAuthorisation, error) {
		asked = r
		return messages.SignedAuthorisation{Authorisation: messages.Authorisation{
			Peer: r.Peer, ID: "alice/" + r.Key, Account: "alice", Amount: r.Amount, Issued: at(0), Interval: r.Interval, Margin: messages.MaxClockSkew}}, nil
	})
	var revoked messages.RevokeRequest
	number := uint64(13)
	answer(s, messages.Bank, messages.VerbRevoke, func(r messages.RevokeRequest) (messages.ClearingReply, error) {
		revoked = r
		return messages.ClearingReply{Number: number}, nil
	})
	run := func(code int, line, out, err string) {
		t.Helper()
		s.run(strings.Fields(line)...).expect(t, code, out, err)
	}
	run(codeOK, "remit bob@east 10 --key k --from climate --reason thanks", "Set aside 10 credits for bob at east; the bank of east is asked as number 12", "")
	if want := (messages.RemitRequest{Key: "k", Account: "climate", Peer: "east", Payee: "bob", Amount: 10 * credit, Reason: "thanks"}); remit != want {
		t.Errorf("asked for %+v", remit)
	}
	run(codeUsage, "remit bob 10", "", "like bob@east")
	run(codeUsage, "remit bob@east ten", "", "ten")
	run(codeOK, "authorise east 20 --for 2d --key k", "Site east may charge alice once, up to 20 credits, until 2026-03-03 12:00:00", "")
	if asked.Peer != "east" || asked.Amount != 20*credit || asked.Interval.Std() != 48*time.Hour || asked.Key != "k" {
		t.Errorf("asked for %+v", asked)
	}
	run(codeOK, "authorise east 20 --key k --json", `"id":"alice/k"`, "")
	if asked.Interval.Std() != 7*24*time.Hour {
		t.Errorf("by default for %v", asked.Interval)
	}
	run(codeUsage, "authorise east 20 --for ever", "", "--for")
	run(codeOK, "revoke alice/k", "asked as number 13", "")
	number = 0
	run(codeOK, "revoke alice/k", "was asked before", "")
	if revoked.ID != "alice/k" {
		t.Errorf("revoked %+v", revoked)
	}
	other := newSite(t)
	refuse[messages.RevokeRequest](other, messages.Bank, messages.VerbRevoke, messages.Errorf(messages.NotFound, "no such authorisation"))
	other.run("revoke", "x").expect(t, codeNotFound, "", "no such authorisation")
}

// TestAt: --at finds a site among those of this machine.
func TestAt(t *testing.T) {
	s := newSite(t)
	s.write("state/sites/east/site.json", `{"site":"east","server":"nats://127.0.0.1:4223","default_account":"carol"}`)
	s.write("state/sites/east/creds/carol.creds", "x")
	serve(s, messages.Subject("east", messages.Auctioneer, messages.VerbJobs, "*"), messages.VerbJobs, func(messages.JobsRequest) (messages.JobsReply, error) { return messages.JobsReply{}, nil })
	answer(s, messages.Auctioneer, messages.VerbJobs, func(messages.JobsRequest) (messages.JobsReply, error) { return messages.JobsReply{}, nil })
	check := func(want target, args ...string) {
		t.Helper()
		s.run(args...).expect(t, codeOK, "", "")
		if s.last.site != want.site || s.last.server != want.server || s.last.account != want.account || s.last.creds != want.creds {
			t.Errorf("%v: connects to %+v", args, s.last)
		}
	}
	west := target{site: "west", server: "nats://127.0.0.1:4222", account: "alice"}
	east := target{site: "east", server: "nats://127.0.0.1:4223", account: "carol", creds: s.path("state/sites/east/creds/carol.creds")}
	check(west, "jobs")
	check(west, "--at", "west", "jobs")
	check(east, "--at", "east", "jobs")
	s.env["CANDOR_AT"] = "east"
	check(east, "jobs")
	check(west, "jobs", "--at", "west")
	s.run("--at", "south", "jobs").expect(t, codeNotFound, "", "no site south is known here (there is west, east)")
	s.run("--at", "South!", "jobs").expect(t, codeUsage, "", "is not a name")
}
