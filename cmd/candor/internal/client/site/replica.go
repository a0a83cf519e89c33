package site

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
)

var replicated = []string{messages.Auctioneer, messages.Bank}

func replicaCommand(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "replica",
		Short: "list, add and remove replicas (operators)",
		Long: `List, add and remove replicas of the auctioneer and of the bank.

A replica that comes back with an empty disk has no vote until the other
replicas have brought it up to date. To replace a replica that does not come
back: start another replica with a new name and with "joins: true" in the
configuration of its host, add it, and then remove the lost replica.`,
		Example: `  candor replica list
  candor replica add auctioneer rack4 --address 10.0.0.4:7001
  candor replica remove auctioneer rack2`,
	}, a.Tabled(replicaList(a)), replicaAdd(a), replicaRemove(a))
}

func replicaList(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list [auctioneer|bank]",
		Short:   "list the replicas, and how many of them the site can lose",
		Example: "  candor replica list\n  candor replica list bank --json | jq '.[].spare'",
		RunE: a.Operating(func(ctx context.Context, s *cli.Session, args []string) error {
			actors := replicated
			if len(args) == 1 {
				if err := checkActor(args[0]); err != nil {
					return err
				}
				actors = args
			}
			var replies []messages.ReplicasReply
			for _, actor := range actors {
				reply, err := cli.Call[messages.ReplicasReply](ctx, s, actor, messages.VerbReplicas, messages.Empty{})
				if err != nil {
					return err
				}
				replies = append(replies, reply)
			}
			return a.Show(replies, func(p *cli.Page) { writeReplicas(p, replies...) })
		}),
	}
}

func replicaAdd(a *cli.App) *cobra.Command {
	var r messages.ReplicaRequest
	cmd := &cobra.Command{
		Use:   "add auctioneer|bank ID",
		Short: "add a replica that runs with an empty disk",
		Long: `Add a replica that runs with an empty disk. The replica first gets all data of
the others, and then a vote. If this takes longer than --timeout, repeat the
command to wait again. --address is the address at which the replica serves its
group. The other replicas keep the address in their log and need no other
configuration.`,
		Example: "  candor replica add auctioneer rack4 --address 10.0.0.4:7001\n  candor replica add bank rack4 --address 10.0.0.4:7002 --timeout 5m",
		RunE: a.Operating(func(ctx context.Context, s *cli.Session, args []string) error {
			r.Add = args[1]
			return regroup(ctx, a, s, args[0], r)
		}),
	}
	cmd.Flags().StringVar(&r.Address, "address", "", "`host:port` where the replica serves its group (default: as for the other replicas)")
	return cmd
}

func replicaRemove(a *cli.App) *cobra.Command {
	var r messages.ReplicaRequest
	cmd := &cobra.Command{
		Use:   "remove auctioneer|bank ID",
		Short: "remove a replica",
		Long: `Remove a replica that is lost, after you added another replica. The command is
refused if the other replicas would have no majority. Without --force it is also
refused if the site could then lose fewer replicas than now.`,
		Example: "  candor replica remove auctioneer rack2",
		RunE: a.Operating(func(ctx context.Context, s *cli.Session, args []string) error {
			r.Remove = args[1]
			return regroup(ctx, a, s, args[0], r)
		}),
	}
	cmd.Flags().BoolVar(&r.Force, "force", false, "remove the replica even if the site can then lose fewer replicas")
	return cmd
}

func regroup(ctx context.Context, a *cli.App, s *cli.Session, actor string, r messages.ReplicaRequest) error {
	if err := checkActor(actor); err != nil {
		return err
	}
	return cli.Ask(ctx, a, s, actor, messages.VerbReplica, r, func(p *cli.Page, reply messages.ReplicasReply) { writeReplicas(p, reply) })
}

func checkActor(actor string) error {
	if !slices.Contains(replicated, actor) {
		return cli.Usagef("%q is no actor with replicas: name auctioneer or bank", actor)
	}
	return nil
}

func writeReplicas(p *cli.Page, groups ...messages.ReplicasReply) {
	t := terminal.NewTable("ACTOR|~REPLICA|STATE|>BEHIND|~ADDRESS")
	for _, g := range groups {
		for _, r := range g.Replicas {
			t.Row(g.Actor, r.ID, replicaState(&r), terminal.Count(r.Behind), r.Address)
		}
	}
	p.Table(t, "")
	for _, g := range groups {
		for _, r := range g.Replicas {
			if r.Weak != "" {
				p.Printf("%s\n", p.Red("The replica "+r.ID+" of the "+g.Actor+" should not lead: "+r.Weak))
			}
		}
		p.Printf("The %s can lose %s\n", g.Actor, losable(g.Spare))
		if len(g.Replicas) == 2 {
			p.Printf("%s\n", p.Red("The "+g.Actor+" needs both of its replicas: while one is lost, the "+g.Actor+" serves nobody. Add a third replica"))
		}
	}
}

// losable says how many replicas a group can lose and still work.
func losable(spare int) string {
	if spare <= 0 {
		return "no replica"
	}
	return terminal.Plural(spare, "more replica")
}

func replicaState(r *messages.ReplicaState) string {
	switch {
	case !r.Answers:
		return "Silent"
	case r.Leads:
		return "Leads"
	case !r.Votes:
		return "Catching up"
	}
	return "Follows"
}
