package site

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

func upgradeCommand(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "upgrade",
		Short: "upgrade a site while it runs (operators)",
		Long: `Upgrade a site host by host, while it runs. A release works together with the
release before it and with the next one. The replicas agree on a level, which
rises when all of them run the new release: a day later, or with "candor upgrade
finish". Until then each host can go back to the old release.`,
		Example: "  candor upgrade plan\n  candor upgrade finish",
	}, a.Tabled(upgradePlan(a)), upgradeFinish(a))
}

func upgradePlan(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "plan",
		Short: "show the steps of the upgrade, in order",
		Long: `Show the steps, in order, that upgrade this site to the release of this
program. The command reads which releases the replicas and nodes run, and
changes nothing. Repeat the command after each step.`,
		Example: "  candor upgrade plan\n  candor upgrade plan --json | jq -r '.steps[].do'",
		RunE: a.Operating(func(ctx context.Context, s *cli.Session, _ []string) error {
			var groups []messages.ReplicasReply
			for _, actor := range replicated {
				reply, err := cli.Call[messages.ReplicasReply](ctx, s, actor, messages.VerbReplicas, messages.Empty{})
				if err != nil {
					return err
				}
				groups = append(groups, reply)
			}
			nodes, err := cli.Call[market.NodesReply](ctx, s, messages.Auctioneer, messages.VerbNodes, messages.Empty{})
			if err != nil {
				return err
			}
			p := planUpgrade(messages.ThisRelease(), messages.Level, groups, nodes.Nodes)
			return a.Show(p, func(page *cli.Page) { writeUpgrade(page, &p, groups) })
		}),
	}
}

func upgradeFinish(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "finish",
		Short: "raise the agreed level now; then no host can run the old release",
		Long: `Let the replicas agree on the level of the new release now, instead of a day
after the last host was upgraded. Then commands that need the new release work,
and no host can go back to the release before. The command is refused until all
replicas run the new release.`,
		Example: "  candor upgrade finish",
		RunE: a.Operating(func(ctx context.Context, s *cli.Session, _ []string) error {
			var groups []messages.ReplicasReply
			for _, actor := range replicated {
				reply, err := cli.Call[messages.ReplicasReply](ctx, s, actor, messages.VerbReplica, messages.ReplicaRequest{Raise: true})
				if err != nil {
					return err
				}
				if reply.Level < messages.Level { // the leader still runs the earlier release, and does not know the new level
					return messages.Errorf(messages.Conflict, "the replicas of the %s agree on level %d, and this release has level %d: upgrade the hosts that `candor upgrade plan` names, and repeat the command", actor, reply.Level, messages.Level)
				}
				groups = append(groups, reply)
			}
			return a.Show(groups, func(p *cli.Page) {
				for _, g := range groups {
					p.Printf("The replicas of the %s agree on level %d\n", g.Actor, g.Level)
				}
			})
		}),
	}
}

// upgradeStep is one step of an upgrade. Do is what the operator does. Check says how the operator sees that the next
// step can begin.
type upgradeStep struct {
	Host  string `json:"host,omitempty"` // the host to do it on; empty means any
	Do    string `json:"do"`
	Check string `json:"check"`
}

type upgrade struct {
	Release string        `json:"release"`
	Level   int           `json:"level"`
	Agreed  int           `json:"agreed"` // lowest level that a group of replicas agreed on
	Steps   []upgradeStep `json:"steps"`  // none means nothing is left to do
	Back    string        `json:"back"`   // how to go back
}

// planUpgrade plans how an operator upgrades the hosts of a site to a release. `level` is the level of this release
// (the version of its commands). The plan has the hosts that lead at the end, so that leadership changes seldom. Each
// replica has the name of its host.
func planUpgrade(release string, level int, groups []messages.ReplicasReply, nodes []market.NodeStatus) upgrade {
	u := upgrade{Release: release, Level: level}
	hosts := map[string]*upgradeHost{}
	for i, g := range groups {
		if agreed := max(g.Level, 1); i == 0 || agreed < u.Agreed {
			u.Agreed = agreed
		}
		for _, r := range g.Replicas {
			h := hosts[r.ID]
			if h == nil {
				h = &upgradeHost{name: r.ID}
				hosts[r.ID] = h
			}
			h.add(&g, &r, release)
		}
	}
	all := make([]*upgradeHost, 0, len(hosts))
	for _, h := range hosts {
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b *upgradeHost) int { return cmp.Or(len(a.leads)-len(b.leads), strings.Compare(a.name, b.name)) })
	u.Back = u.wayBack()
	if err := messages.CheckAgreed(u.Agreed, level); err != nil {
		u.Steps = []upgradeStep{{Do: "Use another release: " + messages.AsError("", err).Message, Check: "\"candor upgrade plan\" of that release shows other steps"}}
		return u
	}
	if u.Steps = firstStart(all); len(u.Steps) > 0 {
		return u
	}
	for _, h := range all {
		if !h.new {
			u.Steps = append(u.Steps, h.step(release))
		}
	}
	if step, needed := oldAgents(nodes, level, len(u.Steps) > 0); needed {
		u.Steps = append(u.Steps, step)
	}
	if u.Agreed < level {
		u.Steps = append(u.Steps, upgradeStep{Do: "candor upgrade finish (or wait a day)", Check: fmt.Sprintf("\"candor upgrade plan\" says that the replicas agree on level %d; from then on no host can go back to an earlier release", level)})
	}
	return u
}

func (u *upgrade) wayBack() string {
	if u.Agreed == u.Level && u.Level > 1 {
		return fmt.Sprintf("The replicas agree on level %d: a release of level %d can no longer be started here", u.Level, u.Level-1)
	}
	return "Install the earlier release again on the hosts that were upgraded, one host after the other, with the same checks; the hosts that lead come last"
}

type upgradeHost struct {
	name   string
	leads  []string // actors whose leader is on this host
	silent []string // actors whose replica on this host does not answer
	new    bool     // all replicas on this host run the new release
	seen   bool
}

func (h *upgradeHost) add(g *messages.ReplicasReply, r *messages.ReplicaState, release string) {
	if r.Leads {
		h.leads = append(h.leads, g.Actor)
	}
	if !r.Answers || !r.Votes {
		h.silent = append(h.silent, g.Actor)
	}
	h.new = (h.new || !h.seen) && r.Release == release
	h.seen = true
}

func (h *upgradeHost) step(release string) upgradeStep {
	leads := ""
	if len(h.leads) > 0 {
		leads = " This host leads the " + strings.Join(h.leads, " and the ") + ": another host takes over."
	}
	return upgradeStep{Host: h.name, Do: fmt.Sprintf("On %s: install candor %s, then type: systemctl restart candor@%s.%s", h.name, release, h.name, leads),
		Check: "\"candor replica list\" shows no replica as Silent or Catching up, and \"candor nodes\" shows the nodes of " + h.name + " as Up with a new SINCE"}
}

// firstStart returns the steps before an upgrade of a running site: one for each host with a replica that does not
// answer or has not caught up.
func firstStart(all []*upgradeHost) (steps []upgradeStep) {
	for _, h := range all {
		if len(h.silent) > 0 {
			steps = append(steps, upgradeStep{Host: h.name, Do: fmt.Sprintf("On %s: start candor, or wait until its replica of the %s has caught up. Before that, upgrade no other host", h.name, strings.Join(h.silent, " and the ")),
				Check: "\"candor replica list\" shows no replica as Silent or Catching up; then type candor upgrade plan again"})
		}
	}
	return steps
}

// oldAgents returns the step of an upgrade in which nodes with an older agent are upgraded. An agent is older if its
// release has a lower level. A node on a host of the site is not part of this step, because it is upgraded together
// with its host.
func oldAgents(nodes []market.NodeStatus, level int, withHosts bool) (step upgradeStep, needed bool) {
	var old []string
	for _, n := range nodes {
		if n.State != "Lost" && n.State != "Stopped" && max(n.Level, 1) < level {
			old = append(old, n.Node)
		}
	}
	which := "with a lower level now: " + strings.Join(old, ", ")
	if withHosts {
		which += "; nodes on the hosts above are upgraded together with these hosts"
	}
	return upgradeStep{Do: "Nodes on other machines (" + which + "): install the release there, and restart candor-nodeagent@NODE",
		Check: "candor nodes shows the nodes as Up with a new SINCE"}, len(old) > 0
}

func writeUpgrade(p *cli.Page, u *upgrade, groups []messages.ReplicasReply) {
	p.Printf("This program is candor %s, of level %d. The replicas agree on level %d.\n\n", u.Release, u.Level, u.Agreed)
	t := terminal.NewTable("ACTOR|~REPLICA|STATE|>LEVEL|~RELEASE")
	for _, g := range groups {
		for _, r := range g.Replicas {
			t.Row(g.Actor, r.ID, replicaState(&r), terminal.Count(uint64(r.Level)), r.Release)
		}
	}
	p.Table(t, "")
	p.Printf("\n")
	if len(u.Steps) == 0 {
		p.Printf("Nothing is left to do.\n")
	}
	for i, s := range u.Steps {
		p.Printf("%d. %s.\n   Go on when %s.\n", i+1, strings.TrimSuffix(s.Do, "."), s.Check)
	}
	p.Printf("\nTo go back: %s.\n", u.Back)
}
