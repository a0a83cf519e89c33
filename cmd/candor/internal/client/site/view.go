package site

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/spelling"
)

func writeNodes(p *cli.Page, r market.NodesReply) {
	if len(r.Nodes) == 0 {
		p.Printf("No nodes. A node appears when its agent registers.\n")
		return
	}
	t := terminal.NewTable("~NODE|STATE|~30USED|SINCE|>FOR|>FINISHED|>SUSPENDED|~CAN").Spare("CAN|SINCE|FINISHED|SUSPENDED|FOR")
	for _, n := range r.Nodes {
		t.Row(n.Node, nodeState(p, n.State), used(n), p.At(n.Since), p.Between(n.Since, 0), terminal.Count(n.Finished), suspended(n), strings.Join(abilityWords(n.Abilities), ", "))
	}
	p.Table(t, "")
	writeNodeResources(p, r.Nodes)
	writeLicenses(p, r.Licenses)
	if len(r.Windows) > 0 {
		p.Printf("\n")
		writeWindows(p, r.Windows)
	}
	for _, n := range r.Nodes {
		if said := remark(p, n); said != "" {
			p.Printf("\n%s: %s\n", n.Node, said)
		}
	}
	writeReach(p, r.Nodes)
}

// writeNodeResources writes the resources of nodes, how much of them is sold, and the labels. It leaves out nodes that
// do not report resources.
func writeNodeResources(p *cli.Page, nodes []market.NodeStatus) {
	t, any := terminal.NewTable("~NODE|~50SOLD|~LABELS"), false
	for _, n := range nodes {
		if n.Resources == nil && len(n.Labels) == 0 {
			continue
		}
		var all, sold job.Resources
		if any = true; n.Resources != nil && n.Sold != nil {
			all, sold = *n.Resources, *n.Sold
		}
		t.Row(n.Node, all.Sold(sold), strings.Join(n.Labels, ", "))
	}
	if any {
		p.Printf("\n")
		p.Table(t, "")
	}
}

// abilityWords returns words for the abilities of a node that the page lists. It leaves out the abilities that identify
// the node's build, and the abilities that the page describes in a sentence of their own.
func abilityWords(abilities []messages.Name) (out []string) {
	for _, x := range []struct{ ability, words string }{
		{agent.AbilityFreeze, "freeze"}, {agent.AbilityMemory, "limit memory"}, {agent.AbilityPids, "limit processes"}, {agent.AbilityCPU, "limit CPU"},
		{agent.AbilityUser, "switch users"}, {agent.AbilityApart, "isolate accounts"}, {agent.AbilityPrivate, "isolate accounts and block the network"},
		{agent.AbilityNamespaces, "run containers"},
	} {
		if slices.Contains(abilities, x.ability) {
			out = append(out, x.words)
		}
	}
	return out
}

func writeLicenses(p *cli.Page, licenses []job.LicenseStatus) {
	if len(licenses) == 0 {
		return
	}
	t := terminal.NewTable("~LICENCE|>TOTAL|>USED")
	for _, l := range licenses {
		t.Row(l.Name, strconv.Itoa(l.Total), strconv.Itoa(l.Used))
	}
	p.Printf("\n")
	p.Table(t, "")
}

// remark says why a node does not take new work, and until when. Example: the node is drained.
func remark(p *cli.Page, n market.NodeStatus) string {
	var parts []string
	if n.Reason != "" {
		parts = append(parts, p.Said(n.Reason))
	}
	switch {
	case n.Window != 0 && n.DrainBy == 0:
		parts = append(parts, fmt.Sprintf("in maintenance, window %d: the node's tasks run to their end", n.Window))
	case n.State == "Draining" && n.DrainBy == 0:
		parts = append(parts, "drains: its tasks run to their end")
	case n.DrainBy != 0:
		parts = append(parts, "drains: tasks that still run at "+p.At(n.DrainBy)+" will run again on other nodes")
	}
	if n.ProbeAt != 0 {
		parts = append(parts, "next probe "+p.At(n.ProbeAt))
	}
	return strings.Join(parts, "; ")
}

// writeReach says what tasks can reach on the nodes with the weakest protection.
func writeReach(p *cli.Page, nodes []market.NodeStatus) {
	worst := slices.MinFunc(nodes, func(a, b market.NodeStatus) int {
		return cmp.Compare(agent.Containment(a.Abilities), agent.Containment(b.Abilities))
	}).Abilities
	var names []string
	for _, n := range nodes {
		if agent.Containment(n.Abilities) == agent.Containment(worst) {
			names = append(names, n.Node)
		}
	}
	who := strings.Join(names, ", ")
	if len(names) == len(nodes) {
		who = "each node"
	} else if len(names) > 8 {
		who = fmt.Sprintf("%d nodes", len(names))
	}
	p.Printf("A task on %s can reach %s.\n", terminal.Safe(who), agent.Reach(worst))
	for _, says := range []func([]messages.Name) string{agent.Lingers, agent.Unbounded, agent.Nests, agent.Outdated} {
		for _, n := range nodes {
			if text := says(n.Abilities); text != "" {
				p.Printf("On %s, %s.\n", terminal.Safe(n.Node), text)
				break
			}
		}
	}
}

func nodeState(p *cli.Page, state string) string {
	switch state {
	case "Up":
		return p.Green(state)
	case "Draining", "Stopped":
		return p.Yellow(state)
	}
	return p.Red(terminal.Safe(state))
}

// used returns for each class how many slots of a node are in use, and how many the node has: "map 2/4, reduce 0/1".
func used(n market.NodeStatus) string {
	var parts []string
	for _, s := range n.Slots {
		parts = append(parts, fmt.Sprintf("%s %d/%d", s.Class, slotsOf(n.Used, s.Class), s.Slots))
	}
	return strings.Join(parts, ", ")
}

// suspended returns how many suspended tasks a node keeps, and how many it can keep.
func suspended(n market.NodeStatus) string {
	if n.MostSuspended == 0 { // the site does not report the limit
		return ""
	}
	return fmt.Sprintf("%d/%d", n.Suspended, n.MostSuspended)
}

func slotsOf(slots []job.ClassSlots, class messages.Name) int {
	if i := slices.IndexFunc(slots, func(s job.ClassSlots) bool { return s.Class == class }); i >= 0 {
		return slots[i].Slots
	}
	return 0
}

func writeMarkets(p *cli.Page, r market.MarketsReply) {
	if p.Layout.Names {
		t := terminal.NewTable("MARKET")
		for _, m := range r.Markets {
			t.Row(m.Market.Name)
		}
		p.Table(t, "")
		return
	}
	for i, m := range r.Markets {
		if i > 0 {
			p.Printf("\n")
		}
		writeMarket(p, m)
	}
}

func writeMarketsVersioned(p *cli.Page, r market.MarketsReply) {
	writeMarkets(p, r)
	if !p.Layout.Names {
		p.Printf("\nThe markets are at version %d\n", r.Version)
	}
}

// owners lists the names of some accounts and projects, separated by commas. If there are too many names, it ends with
// the number of the others.
func owners(names []messages.Name) string {
	const most = 8
	if more := len(names) - most; more > 1 {
		names = append(slices.Clone(names[:most]), spelling.Number(more, "other", "others"))
	}
	return spelling.List(names)
}

func writeMarket(p *cli.Page, m market.MarketStatus) {
	closed := ""
	if m.Market.Closed {
		closed = ", closed"
	}
	p.Printf("%s  %s  jobs: %d waiting, %d running%s\n", p.Bold(m.Market.Name), m.Market.Mechanism, m.Waiting, m.Running, closed)
	if len(m.Market.Allow) > 0 {
		p.Printf("  takes jobs of %s only\n", owners(m.Market.Allow))
	}
	if len(m.Market.Deny) > 0 {
		p.Printf("  takes no jobs of %s\n", owners(m.Market.Deny))
	}
	if len(m.Market.DefaultFor) > 0 {
		p.Printf("  takes the jobs of %s that name no market\n", owners(m.Market.DefaultFor))
	}
	for _, of := range bounds(&m.Market.AtOnce) {
		p.Printf("  %s\n", of)
	}
	if len(m.Bid) > 0 {
		p.Printf("  fields of a bid: %s\n", strings.Join(m.Bid, ", "))
	}
	if len(m.Raises) > 0 {
		p.Printf("  a job can later raise: %s\n", strings.Join(m.Raises, ", "))
	}
	if m.Gains != "" {
		p.Printf("  actions known to gain more than a true bid: %s\n", m.Gains)
	}
	p.Prices(m.Prices)
	for _, t := range m.Tariffs {
		if text := cli.Tariff(t); text != "" {
			p.Printf("  %s\n", text)
		}
	}
	if c := m.Promises; c != nil {
		p.Printf("  completed as promised: %d of %s\n", c.Kept, terminal.Plural(int(c.Kept+c.Broken), "contract"))
	}
	for _, n := range m.Next {
		p.Printf("  next for %s: job %v of %s%s\n", n.Class, n.Job, n.Account, bidding(n.Rate))
	}
	if len(m.Top) > 0 {
		p.Printf("\n")
		writeBidders(p, m)
	}
}

func bidding(rate messages.Credits) string {
	if rate == 0 {
		return ""
	}
	return ", which bids " + cli.Hourly(rate)
}

// writeBidders writes the jobs in a market that the user may see, with their shares of each class.
func writeBidders(p *cli.Page, m market.MarketStatus) {
	header := ">JOB|~NAME|~ACCOUNT|>BUDGET|>SLOTS|>SUSPENDED|>WANTED"
	for _, class := range m.Market.Classes {
		header += "|" + strings.ToUpper(class)
	}
	t := terminal.NewTable(header).Spare("WANTED|BUDGET|SLOTS")
	for _, j := range m.Top {
		row := []string{j.Job.String(), terminal.Safe(j.Name), j.Account, cli.OrBlank(j.Budget), terminal.Count(j.Running), cli.Number(j.Suspended), terminal.Count(j.Pending)}
		for _, class := range m.Market.Classes {
			row = append(row, shareBar(p, j.Shares, class))
		}
		t.Row(row...)
	}
	p.Table(t, "  ")
}

// shareBar draws the job's present share in a class as a bar. It returns "" if `shares` does not have the class.
func shareBar(p *cli.Page, shares []job.ClassShare, class messages.Name) string {
	for _, s := range shares {
		if s.Class == class {
			return p.Cyan(terminal.Bar(s.Now, 8)) + fmt.Sprintf(" %4s", terminal.Percent(s.Now))
		}
	}
	return ""
}

// overview is what "candor top" shows.
type overview struct {
	Site    messages.Name         `json:"site"`
	Account money.AccountReply    `json:"account"`
	Nodes   []market.NodeStatus   `json:"nodes"`
	Markets []market.MarketStatus `json:"markets"`
	Windows []market.Window       `json:"windows,omitempty"`
}

func writeTop(p *cli.Page, o overview) {
	p.Printf("%s\n\n", topHead(p, o))
	writeOverview(p, o)
}

func writeOverview(p *cli.Page, o overview) {
	writeMarkets(p, market.MarketsReply{Markets: o.Markets})
	if len(o.Windows) > 0 {
		p.Printf("\n")
		writeWindows(p, o.Windows)
	}
}

func topHead(p *cli.Page, o overview) string {
	up := 0
	for _, n := range o.Nodes {
		if n.State == "Up" {
			up++
		}
	}
	return fmt.Sprintf("%s  %s  %d of %s up  %s: %s available, %v held", p.Bold("candor top"), p.At(p.Now)+"  "+o.Site,
		up, terminal.Plural(len(o.Nodes), "node"), o.Account.Account, cli.Credits(o.Account.Available), o.Account.Reserved)
}

// bounds returns how many slots, GPUs and tasks each account and project can have at once in a market.
func bounds(a *market.AtOnce) (lines []string) {
	for _, of := range []struct {
		who   string
		bound market.Bound
	}{{"each account", a.Account}, {"each project", a.Project}} {
		if of.bound != (market.Bound{}) {
			lines = append(lines, of.who+" has "+atMost(of.bound)+" at once")
		}
	}
	for _, of := range a.Of {
		lines = append(lines, of.Name+" has "+atMost(a.Find(of.Name, false))+" at once")
	}
	return lines
}

// atMost returns a bound in words, such as "at most 64 slots, 2 GPUs".
func atMost(b market.Bound) string {
	var words []string
	if b.Slots > 0 {
		words = append(words, spelling.Number(b.Slots, "slot", "slots"))
	}
	if b.GPUs > 0 {
		words = append(words, spelling.Number(b.GPUs, "GPU", "GPUs"))
	}
	if b.Tasks > 0 {
		words = append(words, spelling.Number(b.Tasks, "task", "tasks"))
	}
	if len(words) == 0 {
		return "any number"
	}
	return "at most " + spelling.List(words)
}
