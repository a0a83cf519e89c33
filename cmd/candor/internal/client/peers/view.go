package peers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
)

func writePeers(p *cli.Page, r clearing.PeersReply) {
	p.Printf("%s\n", p.Bold("Site "+r.Site))
	cycle := ""
	if r.Cycle > 0 {
		cycle = terminal.Count(r.Cycle)
	}
	p.Fields(
		"Key, for peers", terminal.Safe(r.Key),
		"Latest cycle", cycle,
		"Settled, unpaid", owed(r.Settled),
		"Reserve", cli.Amount(r.Reserve),
		"Corrections", cli.OrBlank(r.Correction),
		"Refused", refusals(r.Refused),
		"Fault", p.Red(terminal.Safe(r.Fault)))
	if len(r.Peers) == 0 {
		p.Printf("No peers. An operator adds a peer with candor peer add.\n")
		return
	}
	p.Title("Peers")
	t := terminal.NewTable("~PEER|>THIS SITE OWES|>PEER OWES|>LIMIT|>HELD|>SETTLED|>SHARE|>IN FLIGHT|>CREDITS|>NEXT OUT|>NEXT IN|HEARD|~STATE").Spare("NEXT OUT|NEXT IN|SHARE|HEARD|SETTLED|CREDITS|IN FLIGHT|HELD")
	for _, peer := range r.Peers {
		t.Row(peer.Peer, max(peer.Owed, 0).String(), max(-peer.Owed, 0).String(), peer.Limit.String(), peer.Held.String(), cli.OrBlank(peer.Settled), peer.Share.String(),
			cli.Number(peer.Outstanding), cli.OrBlank(peer.Waiting), terminal.Count(peer.Sent.Number+uint64(peer.Outstanding)+1),
			terminal.Count(peer.Received.Number+1), p.At(peer.Heard), peerState(p, peer))
	}
	p.Table(t, "  ")
}

func writeParted(p *cli.Page, r clearing.PartReply) {
	peer := r.Peer
	if peer.Standing == clearing.PeerParted {
		p.Printf("This site has parted from %s\n", peer.Peer)
		p.Fields("Written off", cli.Amount(peer.Lost), "Given back to users", cli.Amount(r.Returned), "Charges given up", cli.Amount(r.Forgone), "Owed to the peer", owed(max(0, -peer.Settled)))
		return
	}
	p.Printf("This site is parting from %s: no new jobs or payments begin\n", peer.Peer)
	p.Fields(
		"Jobs there, authorised", cli.Number(r.Authorised),
		"Jobs here, to be charged", cli.Number(r.Visits),
		"To be settled", owed(peer.Owed),
		"Settled, unpaid", owed(-peer.Settled),
		"Not answered", cli.Number(peer.Outstanding))
	p.Printf("The operator of the peer must use \"candor peer part\" too. The sites have parted when\nnothing is left to settle: \"candor peer list\" shows what is left.\n")
}

// owed says who owes whom, or returns "" if nobody does.
func owed(c messages.Credits) string {
	switch {
	case c > 0:
		return cli.Credits(c) + " owed by this site"
	case c < 0:
		return cli.Credits(-c) + " owed to this site"
	}
	return ""
}

func refusals(list []clearing.RefusalTally) string {
	words := make([]string, len(list))
	for i, r := range list {
		words[i] = terminal.Count(r.Count) + " " + terminal.Safe(r.Reason)
	}
	return strings.Join(words, ", ")
}

func peerState(p *cli.Page, r clearing.PeerReply) string {
	switch {
	case r.Standing == clearing.PeerParted:
		return "parted " + p.At(r.Since) + partedDebt(r)
	case r.Restored:
		return p.Red("this site was restored: candor peer reconcile " + r.Peer)
	case gone(r):
		return p.Red(fmt.Sprintf("has parted from this site: to part from the peer too, use \"candor peer part %s --loss %s --reason TEXT\"", r.Peer, max(0, r.Settled-r.Owed)))
	case r.Dispute != "":
		return p.Red("disputed: " + terminal.Safe(r.Dispute))
	case r.Standing == clearing.PeerParting:
		return p.Yellow("parting since " + p.At(r.Since) + ": " + parting(r))
	case r.Standing == clearing.PeerSuspended:
		return p.Red("suspended " + p.At(r.Since) + ", " + silent(r))
	case r.Leaving:
		return p.Yellow("wants to part from this site: to agree, use \"candor peer part " + r.Peer + "\"")
	case r.Tries > 0:
		return p.Yellow(silent(r))
	case unsettleable(r) != "":
		return p.Yellow("answers; " + unsettleable(r))
	}
	return p.Green("answers")
}

// partedDebt returns a text about the debt that is left after the parting from a peer: what this site still owes to the
// peer, or what it wrote off. It returns "" if no debt is left.
func partedDebt(r clearing.PeerReply) string {
	switch {
	case r.Settled < 0:
		return "; " + cli.Credits(-r.Settled) + " owed to the peer"
	case r.Lost > 0:
		return "; " + cli.Credits(r.Lost) + " written off"
	}
	return ""
}

func parting(r clearing.PeerReply) string {
	switch {
	case r.Owed != 0:
		return "the debts are settled by the next cycle"
	case r.Settled != 0:
		return cli.Credits(r.Settled) + " are settled and not paid"
	case r.Tries > 0:
		return silent(r)
	case r.Outstanding > 0:
		return "the peer's bank has " + terminal.Plural(r.Outstanding, "instruction") + " to answer"
	case r.Held > 0:
		return "jobs that the peer pays for still run here"
	}
	return "the peer's operator must part too; after that, \"candor peer list\" at the peer's site says what is missing"
}

// The function `silent` returns a text that says how many messages a peer has not answered, and the error of the last
// try.
func silent(r clearing.PeerReply) string {
	return "silent after " + terminal.Plural(r.Tries, "message") + ": " + terminal.Safe(r.Failure)
}

// gone reports whether a peer refuses all messages because the peer's own operator has parted the sites.
func gone(r clearing.PeerReply) bool {
	return r.Tries > 0 && strings.HasPrefix(r.Failure, "parted: ")
}

// unsettleable says why no settlement cycle can settle the debt of a peer, or returns "".
func unsettleable(r clearing.PeerReply) string {
	switch {
	case r.Owed >= 0 || r.Settled < r.Share:
		return ""
	case r.Share == 0:
		return "none of the peer's debt can be settled: the peer's share of the reserve is 0 credits"
	}
	return "no more of the peer's debt can be settled before the peer pays " + cli.Credits(r.Settled) + "; after the payment, grant this amount to clearing--" + r.Peer
}

func writeLeft(p *cli.Page, peers []clearing.PeerReply) {
	peers = slices.DeleteFunc(slices.Clone(peers), func(r clearing.PeerReply) bool { return r.Owed == 0 })
	if len(peers) > 0 {
		p.Title("Still owed")
	}
	for _, r := range peers {
		why := "the debt is newer than the cycle, or the peer did not accept it: the next cycle settles the debt"
		switch {
		case r.Dispute != "":
			why = "nothing is settled while the books do not agree: \"candor peer reconcile " + r.Peer + "\" compares them"
		case unsettleable(r) != "":
			why = unsettleable(r)
		case r.Tries > 0:
			why = "the bank of " + r.Peer + " does not answer"
		}
		whose := "by " + r.Peer
		if r.Owed > 0 {
			whose = "to " + r.Peer
		}
		p.Printf("  %s %s: %s\n", cli.Credits(max(r.Owed, -r.Owed)), whose, terminal.Safe(why))
	}
}

func writeNet(p *cli.Page, r clearing.NettingReport) {
	verdict := p.Green("complete")
	if !r.Balanced {
		verdict = p.Red("NOT complete")
	}
	p.Printf("%s is %s\n", p.Bold(fmt.Sprintf("Cycle %d", r.Cycle)), verdict)
	missing := make([]string, len(r.Missing))
	for i, name := range r.Missing {
		missing[i] = terminal.Safe(name)
	}
	p.Fields(
		"Moved between sites", cli.Credits(r.Volume),
		"Left after netting pairs", cli.Credits(r.Bilateral),
		"Left after netting all", cli.Credits(r.Multilateral),
		"Not final", strings.Join(missing, ", "))
	for _, fault := range r.Faults {
		p.Printf("  %s\n", p.Red(terminal.Safe(fault)))
	}
	p.Title("Positions")
	t := terminal.NewTable("~SITE|~WITH|>PAID|>RECEIVED|>NET")
	for _, site := range r.Positions {
		for _, leg := range site.Legs {
			t.Row(terminal.Safe(site.Site), terminal.Safe(leg.Peer), leg.Paid.String(), leg.Received.String(), p.Change(leg.Received-leg.Paid))
		}
		t.Row(terminal.Safe(site.Site), "all", "", "", p.Change(site.Net))
	}
	p.Table(t, "  ")
	if len(r.Payments) > 0 {
		p.Title("To be paid outside the banks")
	}
	for _, pay := range r.Payments {
		p.Printf("  %s pays %s to %s\n", terminal.Safe(pay.From), cli.Credits(pay.Amount), terminal.Safe(pay.To))
	}
}
