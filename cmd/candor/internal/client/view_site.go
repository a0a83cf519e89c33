package client

import (
	"fmt"
	"strings"

	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
)

func (p *page) nodes(r messages.NodesReply) {
	if len(r.Nodes) == 0 {
		p.printf("No nodes. A site has nodes as soon as a node agent registers.\n")
		return
	}
	t := terminal.NewTable(terminal.Left("NODE"), terminal.Left("STATE"), terminal.Left("USED"), terminal.Left("SINCE"), terminal.Right("FOR"), terminal.Right("FINISHED"), terminal.Right("SUSPENDED"), terminal.Left("CAN"))
	for _, n := range r.Nodes {
		t.Row(n.Node, p.nodeState(n.State), used(n), p.at(n.Since), p.between(n.Since, 0), terminal.Count(n.Finished), suspended(n), strings.Join(n.Abilities, ", "))
	}
	t.Write(p, p.Style, "")
	for _, n := range r.Nodes {
		if n.Reason == "" {
			continue
		}
		p.printf("\n%s: %s", n.Node, terminal.Safe(n.Reason))
		if n.ProbeAt != 0 {
			p.printf("; next probe %s", p.exactly(n.ProbeAt))
		}
		p.printf("\n")
	}
	p.reach(r.Nodes)
}

// reach says of the nodes that keep tasks apart least what tasks can reach there.
func (p *page) reach(nodes []messages.NodeStatus) {
	worst := nodes[0].Abilities
	for _, n := range nodes {
		if messages.Containment(n.Abilities) < messages.Containment(worst) {
			worst = n.Abilities
		}
	}
	var names []string
	for _, n := range nodes {
		if messages.Containment(n.Abilities) == messages.Containment(worst) {
			names = append(names, n.Node)
		}
	}
	who := strings.Join(names, ", ")
	if len(names) == len(nodes) {
		who = "each node"
	} else if len(names) > 8 {
		who = fmt.Sprintf("%d nodes", len(names))
	}
	p.printf("A task on %s can reach %s.\n", terminal.Safe(who), messages.Reach(worst))
}

func (p *page) nodeState(state string) string {
	switch state {
	case "Up":
		return p.Green(state)
	case "Draining":
		return p.Yellow(state)
	}
	return p.Red(terminal.Safe(state))
}

// used writes the slots of a node, by class: "map 2/4, reduce 0/1".
func used(n messages.NodeStatus) string {
	var parts []string
	for _, s := range n.Slots {
		parts = append(parts, fmt.Sprintf("%s %d/%d", s.Class, slotsOf(n.Used, s.Class), s.Slots))
	}
	return strings.Join(parts, ", ")
}

// suspended writes how many suspended tasks a node keeps, of how many at most.
func suspended(n messages.NodeStatus) string {
	if n.MostSuspended == 0 { // of a site that does not say
		return ""
	}
	return fmt.Sprintf("%d/%d", n.Suspended, n.MostSuspended)
}

func slotsOf(slots []messages.ClassSlots, class messages.Name) int {
	for _, s := range slots {
		if s.Class == class {
			return s.Slots
		}
	}
	return 0
}

func (p *page) markets(r messages.MarketsReply) {
	for i, m := range r.Markets {
		if i > 0 {
			p.printf("\n")
		}
		p.market(m)
	}
}

// market writes a market with its prices and largest bidders.
func (p *page) market(m messages.MarketStatus) {
	p.printf("%s  %s  %d waiting, %d running\n", p.Bold(m.Market.Name), m.Market.Mechanism, m.Waiting, m.Running)
	p.prices(m.Prices)
	for _, t := range m.Tariffs {
		p.printf("  a second on a slot of %s costs %s\n", t.Class, tariff(t))
	}
	for _, n := range m.Next {
		p.printf("  next for %s: job %v of %s%s\n", n.Class, n.Job, n.Account, bidding(n.Rate))
	}
	if len(m.Top) > 0 {
		p.printf("\n")
		p.bidders(m)
	}
}

func tariff(t messages.SlotTariff) string {
	switch {
	case t.OwnBid:
		return "what each bids"
	case t.Length > 0:
		return fmt.Sprintf("%s to a job of %v, and others in proportion to their length", credits(t.Price), t.Length)
	}
	return credits(t.Price)
}

func bidding(rate messages.Credits) string {
	if rate == 0 {
		return ""
	}
	return fmt.Sprintf(", which bids %v", rate)
}

func (p *page) prices(prices []messages.ClassPrice) {
	t := terminal.NewTable(terminal.Left("CLASS"), terminal.Right("PRICE"), terminal.Left("SLOTS"), terminal.Right("USED"),
		terminal.Right("TASKS WAITING"), terminal.Right("BIDDERS"))
	for _, c := range prices {
		busy := c.Slots - c.Idle
		t.Row(c.Class, price(c.Price), terminal.Bar(float64(busy)/float64(max(c.Slots, 1)), 16), fmt.Sprintf("%d/%d", busy, c.Slots),
			terminal.Count(c.Pending), terminal.Count(c.Bidders))
	}
	t.Write(p, p.Style, "  ")
}

// bidders writes the largest bidders and their share of each class.
func (p *page) bidders(m messages.MarketStatus) {
	columns := []terminal.Column{terminal.Right("JOB"), terminal.Left("NAME"), terminal.Left("ACCOUNT"), terminal.Right("BUDGET"), terminal.Right("RUNNING"), terminal.Right("WAITING")}
	for _, class := range m.Market.Classes {
		columns = append(columns, terminal.Left(strings.ToUpper(class)))
	}
	t := terminal.NewTable(columns...)
	for _, j := range m.Top {
		row := []string{j.Job.String(), terminal.Clip(terminal.Safe(j.Name), 20), j.Account, j.Budget.String(), terminal.Count(j.Running), terminal.Count(j.Pending)}
		for _, class := range m.Market.Classes {
			row = append(row, p.shareBar(j.Shares, class))
		}
		t.Row(row...)
	}
	t.Write(p, p.Style, "  ")
}

// shareBar draws a job's present share of a class, "" where it has none.
func (p *page) shareBar(shares []messages.ClassShare, class messages.Name) string {
	for _, s := range shares {
		if s.Class == class {
			return p.Cyan(terminal.Bar(s.Now, 8)) + fmt.Sprintf(" %4s", terminal.Percent(s.Now))
		}
	}
	return ""
}

// overview is what "candor top" shows.
type overview struct {
	Site    messages.Name           `json:"site"`
	Account messages.AccountReply   `json:"account"`
	Nodes   []messages.NodeStatus   `json:"nodes"`
	Markets []messages.MarketStatus `json:"markets"`
}

func (p *page) top(o overview) {
	up := 0
	for _, n := range o.Nodes {
		if n.State == "Up" {
			up++
		}
	}
	p.printf("%s  %s  %d of %s up  %s: %s available, %v held\n\n", p.Bold("candor top"), p.exactly(p.now)+"  "+o.Site,
		up, terminal.Plural(len(o.Nodes), "node"), o.Account.Account, credits(o.Account.Available), o.Account.Reserved)
	p.markets(messages.MarketsReply{Markets: o.Markets})
}
