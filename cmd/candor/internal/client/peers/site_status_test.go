package peers_test

import (
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
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

func TestSiteStatusViews(t *testing.T) {
	linked := func(s *clienttest.Site) {
		clienttest.Gives[messages.Empty](messages.Bank, clearing.VerbPeers, somePeers())(s)
		clienttest.Gives[messages.Empty](messages.Links, messages.VerbStatus, someLinks())(s)
	}
	clienttest.CheckViews(t, newSite, map[string]clienttest.View{
		"site_status":          {Line: "site status", Serve: linked},
		"site_status_no_peers": {Line: "site status", Serve: clienttest.Gives[messages.Empty](messages.Bank, clearing.VerbPeers, clearing.PeersReply{Site: "west"})},
		"site_status_unlinked": {Line: "site status --timeout 1s", Serve: clienttest.Gives[messages.Empty](messages.Bank, clearing.VerbPeers, somePeers())},
	})
}

func TestSiteStatus(t *testing.T) {
	s := newSite(t)
	run := func(code int, out, err string, args ...string) {
		t.Helper()
		s.Run(append([]string{"site", "status"}, args...)...).Expect(t, code, out, err)
	}
	bank, links := somePeers(), someLinks()
	clienttest.Answer(s, messages.Bank, clearing.VerbPeers, func(messages.Empty) (clearing.PeersReply, error) { return bank, nil })
	run(cli.CodeFailed, "this site does not know the links", "", "--timeout", "1s")
	clienttest.Answer(s, messages.Links, messages.VerbStatus, func(messages.Empty) (clearing.LinksReply, error) { return links, nil })
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
