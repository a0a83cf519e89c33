package peers

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
)

// AddStatus adds the command "status" to the command `site`. The command "status" shows the state of a running site.
// The argument `usage` is a help template with the flags of the connection.
func AddStatus(a *cli.App, site *cobra.Command, usage string) {
	status := siteStatusCommand(a)
	status.SetUsageTemplate(usage)
	site.AddCommand(status)
}

type siteStatus struct {
	Links clearing.LinksReply `json:"links"`
	Bank  clearing.PeersReply `json:"bank"`
	// Failure says why the state of the links could not be read. It is "" if the state is known.
	Failure string `json:"failure"`
}

func siteStatusCommand(a *cli.App) *cobra.Command {
	return a.Tabled(&cobra.Command{
		Use:   "status",
		Short: "show links, debts and retries between sites (operators)",
		Long: `Show for each peer the connections between its servers and the servers of this
site, the round trip of each connection, the time that the peer's bank took to
answer a request just now, the debts, the unsettled debts and the retries. The
exit code is 1 if a peer has no link or its bank does not answer.`,
		Example: "  candor site status\n  candor site status --json | jq '.links.trips[] | select(.took == 0)'",
		RunE: a.Operating(func(ctx context.Context, s *cli.Session, _ []string) error {
			bank, err := cli.Call[clearing.PeersReply](ctx, s, messages.Bank, clearing.VerbPeers, messages.Empty{})
			if err != nil {
				return err
			}
			r, err := linked(ctx, s, bank)
			if err != nil {
				return err
			}
			return a.Verdict(r, r.sound(), func(p *cli.Page) { writeSiteStatus(p, r) })
		}),
	})
}

// linksTimeout is how long to wait for the service that reports the links. It answers within two seconds.
const linksTimeout = 4 * time.Second

// linked asks for the state of the links. If the NATS servers are not the site's own processes, nobody answers the
// request. Then the status has only the bank's answer.
func linked(ctx context.Context, s *cli.Session, bank clearing.PeersReply) (r siteStatus, err error) {
	r.Bank, r.Links.Site = bank, bank.Site
	if len(bank.Peers) == 0 {
		return r, nil
	}
	ctx, cancel := context.WithTimeout(ctx, linksTimeout)
	defer cancel()
	r.Links, err = cli.Call[clearing.LinksReply](ctx, s, messages.Links, messages.VerbStatus, messages.Empty{})
	if messages.KindOf(err) == messages.Unavailable {
		r.Failure, err = "this site does not know the links: ask the NATS servers, with nats server report leafnodes", nil
	}
	return r, err
}

// sound reports whether all peers are in order: no books are in dispute, and every peer has a link and answers. If it
// is not known whether a peer has a link, sound assumes that it has one. Parted peers do not count.
func (r *siteStatus) sound() bool {
	for _, p := range r.Bank.Peers {
		if p.Standing == clearing.PeerParted {
			continue
		}
		apart := r.Failure == "" && (len(r.linksTo(p.Peer)) == 0 || r.trip(p.Peer).Took == 0)
		if p.Dispute != "" || p.Tries > 0 || apart {
			return false
		}
	}
	return true
}

func (r *siteStatus) linksTo(peer messages.Name) (links []clearing.Link) {
	for _, l := range r.Links.Links {
		if l.Peer == peer {
			links = append(links, l)
		}
	}
	return links
}

func (r *siteStatus) trip(peer messages.Name) clearing.PeerTrip {
	i := slices.IndexFunc(r.Links.Trips, func(t clearing.PeerTrip) bool { return t.Peer == peer })
	if i < 0 {
		return clearing.PeerTrip{Peer: peer, Failure: "the peer is not in the site's configuration"}
	}
	return r.Links.Trips[i]
}

func writeSiteStatus(p *cli.Page, r siteStatus) {
	p.Printf("%s\n", p.Bold("Site "+r.Bank.Site))
	p.Fields(
		"Settled, unpaid", owed(r.Bank.Settled),
		"Reserve", cli.Amount(r.Bank.Reserve),
		"Refused", refusals(r.Bank.Refused),
		"Fault", p.Red(terminal.Safe(r.Bank.Fault)),
		"Hosts that do not answer", strings.Join(r.Links.Missing, ", "),
		"Links", r.Failure)
	if len(r.Bank.Peers) == 0 {
		p.Printf("No peers. Name peers in the site's configuration, or use \"candor site invite\" and \"candor site join\".\n")
		return
	}
	p.Title("Peers")
	t := terminal.NewTable("~PEER|~LINK|>ROUND TRIP|>BANK REPLY|>THIS SITE OWES|>PEER OWES|>LIMIT|>IN FLIGHT|>CREDITS|~STATE").Spare("CREDITS|IN FLIGHT|LIMIT|BANK REPLY|ROUND TRIP")
	for _, peer := range r.Bank.Peers {
		trip := r.trip(peer.Peer)
		way, rtt := way(r.linksTo(peer.Peer))
		if r.Failure != "" {
			way = "" // the state of the links is unknown
		}
		t.Row(peer.Peer, way, rtt, milliseconds(trip.Took), max(peer.Owed, 0).String(), max(-peer.Owed, 0).String(), peer.Limit.String(),
			cli.Number(peer.Outstanding), cli.OrBlank(peer.Waiting), peerState(p, peer))
	}
	p.Table(t, "  ")
	for _, peer := range r.Bank.Peers {
		if trip := r.trip(peer.Peer); trip.Took == 0 && peer.Standing != clearing.PeerParted && r.Failure == "" {
			p.Printf("  %s\n", p.Yellow("The bank of "+peer.Peer+" did not answer just now: "+terminal.Safe(trip.Failure)))
		}
	}
}

// The function `way` returns two texts about the links to a peer. The first text has the address of the first link, and
// the number of other links. The second text has the shortest round trip time of the links.
func way(links []clearing.Link) (string, string) {
	if len(links) == 0 {
		return "none", ""
	}
	least := links[0].RTT
	for _, l := range links {
		least = min(least, l.RTT)
	}
	from := "from "
	if links[0].Outgoing {
		from = "to "
	}
	text := from + terminal.Safe(links[0].Address)
	if len(links) > 1 {
		text += " and " + terminal.Plural(len(links)-1, "more")
	}
	return text, milliseconds(least)
}

func milliseconds(d messages.Duration) string {
	if d == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(d)/1e6, 'f', 1, 64) + " ms"
}
