package submit

import (
	"context"
	"crypto/rand"
	"slices"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// spreadRanks divides a job's ranks among the fewest nodes with room for them. If the job names no market, it goes to
// the first market in which the ranks have room. If there is no such market, spreadRanks does not change the job. The
// site then says what is missing.
func spreadRanks(ctx context.Context, s *cli.Session, job *jobfile.Job) error {
	if !job.Spreads() {
		return nil
	}
	markets, err := cli.Call[market.MarketsReply](ctx, s, messages.Auctioneer, messages.VerbMarkets, messages.Empty{})
	if err != nil {
		return err
	}
	nodes, err := cli.Call[market.NodesReply](ctx, s, messages.Auctioneer, messages.VerbNodes, messages.Empty{})
	if err != nil {
		return err
	}
	for i := range markets.Markets {
		m := &markets.Markets[i].Market
		if job.Spec.Market != "" && job.Spec.Market != m.Name {
			continue
		}
		n, spec := fewestNodes(job, m, nodes.Nodes)
		if n > 1 && job.Spec.Market == "" { // not every mechanism can start tasks together
			spec.Market = m.Name
			_, err := cli.Call[jobmsg.SubmitReply](ctx, s, messages.Auctioneer, messages.VerbSubmit, jobmsg.SubmitRequest{Key: rand.Text(), Spec: spec, DryRun: true})
			if messages.KindOf(err).Retriable() {
				return err
			} else if err != nil {
				continue
			}
			job.Spec.Market = m.Name
		}
		if n > 1 {
			return job.SpreadOver(n)
		} else if n == 1 {
			return nil
		}
	}
	return nil
}

// fewestNodes returns the smallest number of nodes on which the job's ranks have room now. It also returns the job,
// divided among this number of nodes. If even all nodes of the market have too little room, the number is 0.
func fewestNodes(job *jobfile.Job, m *market.Market, nodes []market.NodeStatus) (int, jobmsg.JobSpec) {
	for n := range job.NodeCounts(len(nodes)) {
		again := *job
		if again.SpreadOver(n) == nil && holding(m, &again.Spec.Stages[0], nodes) >= n {
			return n, again.Spec
		}
	}
	return 0, job.Spec
}

// holding counts the nodes of a market that, when empty, have room for a task of a stage.
func holding(m *market.Market, s *jobmsg.Stage, nodes []market.NodeStatus) (most int) {
	for _, class := range m.Classes {
		width, ok := widthIn(m, class, s)
		if !ok {
			continue
		}
		largest, count := 0, 0
		for i := range nodes {
			slots := slotsOf(nodes[i].Slots, class)
			if slots < width || len(m.Nodes) > 0 && !slices.Contains(m.Nodes, nodes[i].Node) || !suits(&nodes[i], s) {
				continue
			}
			if s.TakesNode() && slots > largest { // such a task takes a whole node: count only the largest nodes
				largest, count = slots, 0
			}
			if slots >= largest {
				count++
			}
		}
		most = max(most, count)
	}
	return most
}

// suits reports whether a node meets what a stage requires of its nodes.
func suits(n *market.NodeStatus, s *jobmsg.Stage) bool {
	if len(s.Nodes) > 0 && !slices.Contains(s.Nodes, n.Node) || slices.Contains(s.Exclude, n.Node) ||
		s.GPUType != "" && n.Resources != nil && n.Resources.GPUType != s.GPUType {
		return false
	}
	c, err := jobmsg.ParseConstraint(s.Constraint)
	return s.Constraint == "" || err == nil && c.Satisfied(n.Labels)
}
