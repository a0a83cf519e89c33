package client

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
)

func someLinks() clearing.LinksReply {
	ms := messages.Duration(time.Millisecond)
	return clearing.LinksReply{
		Site: "west", Missing: []messages.Name{"rack3"},
		Links: []clearing.Link{
			{Peer: "east", Host: "rack1", Address: "10.1.0.1:7422", Outgoing: true, RTT: 61 * ms},
			{Peer: "east", Host: "rack2", Address: "10.1.0.1:7422", Outgoing: true, RTT: 60 * ms},
			{Peer: "south", Host: "rack1", Address: "10.3.0.1:40000"},
		},
		Trips: []clearing.PeerTrip{{Peer: "east", Took: 64 * ms}, {Peer: "north", Failure: "nobody answers"}, {Peer: "south", Took: ms / 2}},
	}
}

// prepareSite returns a group with a command site. The client adds the command "site status" to it.
func prepareSite() []Group {
	return []Group{{Title: "Run a site:", Commands: []*cobra.Command{{Use: "site", Short: "prepare a site"}}}}
}

func TestSiteStatusViews(t *testing.T) {
	linked := func(s *fakeSite) {
		gives[messages.Empty](messages.Bank, clearing.VerbPeers, somePeers())(s)
		gives[messages.Empty](messages.Links, messages.VerbStatus, someLinks())(s)
	}
	checkViews(t, map[string]view{
		"site_status":          {"site status", linked},
		"site_status_no_peers": {"site status", gives[messages.Empty](messages.Bank, clearing.VerbPeers, clearing.PeersReply{Site: "west"})},
		"site_status_unlinked": {"site status --timeout 1s", gives[messages.Empty](messages.Bank, clearing.VerbPeers, somePeers())},
	})
}

// TestSiteStatus checks that the exit code says whether every peer is linked and answers.
func TestSiteStatus(t *testing.T) {
	s := newSite(t)
	run := func(code int, out, err string, args ...string) {
		t.Helper()
		s.further = prepareSite
		s.run(append([]string{"site", "status"}, args...)...).expect(t, code, out, err)
	}
	bank, links := somePeers(), someLinks()
	answer(s, messages.Bank, clearing.VerbPeers, func(messages.Empty) (clearing.PeersReply, error) { return bank, nil })
	run(cli.CodeFailed, "this site does not know the links", "", "--timeout", "1s")
	answer(s, messages.Links, messages.VerbStatus, func(messages.Empty) (clearing.LinksReply, error) { return links, nil })
	run(cli.CodeFailed, "The bank of north did not answer just now: nobody answers", "")
	bank.Peers = bank.Peers[:1]
	run(cli.CodeOK, "60.0 ms", "")
	run(cli.CodeOK, `"failure":""`, "", "--json")
	links.Links = nil
	run(cli.CodeFailed, "none", "")
	bank.Peers = nil
	run(cli.CodeOK, "No peers.", "")
	run(cli.CodeUsage, "", "", "west")
}

// TestBetweenSites checks the requests about payments between sites that users send to their bank, and the texts
// about the answers.
func TestBetweenSites(t *testing.T) {
	s := newSite(t)
	var remit clearing.RemitRequest
	answer(s, messages.Bank, clearing.VerbRemit, func(r clearing.RemitRequest) (clearing.ClearingReply, error) {
		remit = r
		return clearing.ClearingReply{Number: 12}, nil
	})
	var asked clearing.AuthoriseRequest
	answer(s, messages.Bank, clearing.VerbAuthorise, func(r clearing.AuthoriseRequest) (clearing.SignedAuthorisation, error) {
		asked = r
		return clearing.SignedAuthorisation{Authorisation: clearing.Authorisation{
			Peer: r.Peer, ID: "alice/" + r.Key, Account: "alice", Amount: r.Amount, Issued: at(0), Interval: r.Interval, Margin: clearing.MaxClockSkew}}, nil
	})
	var revoked clearing.RevokeRequest
	number := uint64(13)
	answer(s, messages.Bank, clearing.VerbRevoke, func(r clearing.RevokeRequest) (clearing.ClearingReply, error) {
		revoked = r
		return clearing.ClearingReply{Number: number}, nil
	})
	run := func(code int, line, out, err string) {
		t.Helper()
		s.run(strings.Fields(line)...).expect(t, code, out, err)
	}
	run(cli.CodeOK, "remit bob@east 10 --key k --from climate --reason thanks", "Set aside 10 credits for bob at east; this is request 12 to the bank of east", "")
	if want := (clearing.RemitRequest{Key: "k", Account: "climate", Peer: "east", Payee: "bob", Amount: 10 * credit, Reason: "thanks"}); remit != want {
		t.Errorf("asked for %+v", remit)
	}
	run(cli.CodeUsage, "remit bob 10", "", "like bob@east")
	run(cli.CodeUsage, "remit bob@east ten", "", "ten")
	run(cli.CodeOK, "authorise east 20 --for 2d --key k", "Site east may charge alice once, up to 20 credits, until 2026-03-03 12:00:00", "")
	if asked.Peer != "east" || asked.Amount != 20*credit || asked.Interval.Std() != 48*time.Hour || asked.Key != "k" {
		t.Errorf("asked for %+v", asked)
	}
	run(cli.CodeOK, "authorise east 20 --key k --json", `"id":"alice/k"`, "")
	if asked.Interval.Std() != 7*24*time.Hour {
		t.Errorf("by default for %v", asked.Interval)
	}
	run(cli.CodeUsage, "authorise east 20 --for ever", "", "--for")
	run(cli.CodeOK, "revoke alice/k", "this is request 13", "")
	number = 0
	run(cli.CodeOK, "revoke alice/k", "was asked before", "")
	if revoked.ID != "alice/k" {
		t.Errorf("revoked %+v", revoked)
	}
	other := newSite(t)
	refuse[clearing.RevokeRequest](other, messages.Bank, clearing.VerbRevoke, messages.Errorf(messages.NotFound, "no such authorisation"))
	other.run("revoke", "x").expect(t, cli.CodeNotFound, "", "no such authorisation")
}

// TestAt checks that --at finds a site of this machine by its name.
func TestAt(t *testing.T) {
	s := newSite(t)
	s.write("state/sites/east/site.json", `{"site":"east","server":"nats://127.0.0.1:4223","default_account":"carol"}`)
	s.write("state/sites/east/creds/carol.creds", "x")
	serveAt(s, messages.Subject("east", messages.Auctioneer, messages.VerbJobs, "*"), messages.VerbJobs, func(job.JobsRequest) (job.JobsReply, error) { return job.JobsReply{}, nil })
	answer(s, messages.Auctioneer, messages.VerbJobs, func(job.JobsRequest) (job.JobsReply, error) { return job.JobsReply{}, nil })
	check := func(want cli.Target, args ...string) {
		t.Helper()
		s.run(args...).expect(t, cli.CodeOK, "", "")
		if s.last.Site != want.Site || s.last.Server != want.Server || s.last.Account != want.Account || s.last.Creds != want.Creds {
			t.Errorf("%v: connects to %+v", args, s.last)
		}
	}
	west := cli.Target{Site: "west", Server: "nats://127.0.0.1:4222", Account: "alice"}
	east := cli.Target{Site: "east", Server: "nats://127.0.0.1:4223", Account: "carol", Creds: s.path("state/sites/east/creds/carol.creds")}
	check(west, "jobs")
	check(west, "--at", "west", "jobs")
	check(east, "--at", "east", "jobs")
	s.env["CANDOR_AT"] = "east"
	check(east, "jobs")
	check(west, "jobs", "--at", "west")
	s.run("--at", "south", "jobs").expect(t, cli.CodeNotFound, "", "no site south is known here (there is west, east)")
	s.run("--at", "South!", "jobs").expect(t, cli.CodeUsage, "", "is not a name")
}
