package clearing

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
)

// Net returns the payments outside the ledgers that settle a cycle, given one position for each of n sites. There are
// at most n-1 payments. Their sum is the smallest possible: the sum of the debtors' net debts. The caller checks the
// signatures first. A position whose legs do not sum to its net is a fault, and is left out.
func Net(cycle uint64, positions []clearing.Position) clearing.NettingReport {
	n := netting{r: clearing.NettingReport{
		Cycle: cycle, Positions: slices.Clone(positions), Payments: []clearing.NetPayment{}, Missing: []messages.Name{}, Faults: []string{},
	}, sites: map[messages.Name]*clearing.Position{}}
	slices.SortFunc(n.r.Positions, func(a, b clearing.Position) int { return cmp.Compare(a.Site, b.Site) })
	for i := range n.r.Positions {
		n.enter(&n.r.Positions[i])
	}
	for i := range n.r.Positions {
		n.compare(&n.r.Positions[i])
	}
	slices.Sort(n.r.Missing)
	n.r.Missing = slices.Compact(n.r.Missing)
	n.pay()
	return n.r
}

type netting struct {
	r     clearing.NettingReport
	sites map[messages.Name]*clearing.Position
	sound []*clearing.Position // positions whose legs sum to their net
}

// The method add adds an amount to a sum. Other sites sign the amounts and may choose any number, so the sum could
// overflow. In this case, the method returns false.
func (n *netting) add(sum *messages.Credits, more messages.Credits) (fits bool) {
	all := *sum + more
	if fits = (all > *sum) == (more > 0) && all > math.MinInt64; fits {
		*sum = all
	}
	return fits
}

func (n *netting) fault(format string, args ...any) {
	n.r.Faults = append(n.r.Faults, fmt.Sprintf(format, args...))
}

// enter checks the position of one site. It does not compare the position with those of other sites.
func (n *netting) enter(p *clearing.Position) {
	var net messages.Credits
	fits := true
	for _, leg := range p.Legs {
		fits = n.add(&net, leg.Received-leg.Paid) && n.add(&n.r.Volume, leg.Volume) && fits
		if !leg.Final {
			n.r.Missing = append(n.r.Missing, p.Site, leg.Peer)
		}
	}
	switch {
	case p.Cycle != n.r.Cycle:
		n.fault("the position of %s is of cycle %d", p.Site, p.Cycle)
	case n.sites[p.Site] != nil:
		n.fault("there are two positions of %s", p.Site)
	case !fits:
		n.fault("the legs of %s sum to more than can be counted", p.Site)
	case net != p.Net:
		n.fault("the legs of %s sum to %v, but its position says %v", p.Site, net, p.Net)
	default:
		n.sound = append(n.sound, p)
	}
	n.sites[p.Site] = p
}

// A leg of a position is what the site says about one peer. compare compares each leg of a position with what that peer
// says about the site.
func (n *netting) compare(p *clearing.Position) {
	for _, leg := range p.Legs {
		other := n.sites[leg.Peer]
		if other == nil {
			n.r.Missing = append(n.r.Missing, leg.Peer)
			continue
		}
		i := slices.IndexFunc(other.Legs, func(l clearing.Leg) bool { return l.Peer == p.Site })
		if i < 0 || other.Legs[i].Received != leg.Paid {
			n.fault("%s says it settled %v with %s, and %s does not", p.Site, leg.Paid, leg.Peer, leg.Peer)
			continue
		}
		if net := leg.Paid - leg.Received; net > 0 && !n.add(&n.r.Bilateral, net) {
			n.fault("what %s settled is more than can be counted", p.Site)
		}
	}
}

// pay pairs the largest debtor with the largest creditor until no debtor or no creditor is left.
func (n *netting) pay() {
	var debtors, creditors []clearing.NetPayment
	var sum messages.Credits
	for _, p := range n.sound {
		if !n.add(&sum, p.Net) {
			n.fault("what all sites have together is more than can be counted")
		}
		if p.Net < 0 {
			debtors = append(debtors, clearing.NetPayment{From: p.Site, Amount: -p.Net})
		} else if p.Net > 0 {
			creditors = append(creditors, clearing.NetPayment{To: p.Site, Amount: p.Net})
		}
	}
	largest := func(a, b clearing.NetPayment) int { return cmp.Compare(b.Amount, a.Amount) }
	slices.SortStableFunc(debtors, largest)
	slices.SortStableFunc(creditors, largest)
	for len(debtors) > 0 && len(creditors) > 0 {
		d, c := &debtors[0], &creditors[0]
		amount := min(d.Amount, c.Amount)
		n.r.Payments = append(n.r.Payments, clearing.NetPayment{From: d.From, To: c.To, Amount: amount})
		if !n.add(&n.r.Multilateral, amount) {
			n.fault("the payments sum to more than can be counted")
		}
		if d.Amount -= amount; d.Amount == 0 {
			debtors = debtors[1:]
		}
		if c.Amount -= amount; c.Amount == 0 {
			creditors = creditors[1:]
		}
	}
	n.r.Balanced = sum == 0 && len(n.r.Missing) == 0 && len(n.r.Faults) == 0
}
