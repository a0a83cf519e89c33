package grid

import (
	"slices"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
)

// index is the number in a node's name.
func (l *leader) index(node messages.Name) int {
	i, err := strconv.Atoi(strings.TrimPrefix(node, "n"))
	if err != nil || i >= len(l.agents) {
		l.fail("node %q is none of ours", node)
		return 0
	}
	return i
}

// register admits a node.
func (l *leader) register(node messages.Name, r *messages.RegisterRequest) *messages.RegisterReply {
	result := l.propose(&book.Command{Register: &book.Register{Node: node, Session: r.Session, Slots: r.Slots, Running: r.Running}})
	stop, ok := result.([]messages.Attempt)
	if !ok {
		l.fail("node %s cannot register: %v", node, result)
	}
	return &messages.RegisterReply{Lease: l.config.Lease, Term: 1, Stop: stop, Markets: []messages.Market{l.market.Config}}
}

// exchange commits what an agent finished and claims.
func (l *leader) exchange(node messages.Name, x *messages.Exchange) (*messages.ExchangeReply, error) {
	l.traffic.Exchanges++
	reply := &messages.ExchangeReply{Seq: x.Seq}
	n := l.book.Node(node)
	if len(x.Finished)+len(x.Claims) == 0 {
		l.traffic.Heartbeats++
		if n == nil || n.Session != x.Session {
			return nil, messages.Errorf(messages.Fenced, "session %x of node %s is over", x.Session, node)
		}
	} else {
		result := l.propose(&book.Command{Exchange: &book.Exchange{Node: node, Session: x.Session, Seq: x.Seq, Finished: x.Finished, Claims: l.resolve(x.Claims)}})
		if err, refused := result.(error); refused {
			return nil, err
		}
		reply.Grants = slices.Clone(result.([]messages.Grant))
		l.traffic.Grants += uint64(len(reply.Grants))
	}
	for _, g := range reply.Grants {
		reply.Programs = append(reply.Programs, l.program(g))
	}
	if n = l.book.Node(node); n != nil {
		reply.Stop, reply.Held, reply.Version = slices.Clone(n.Stop), n.Halted(), n.Version
	}
	return reply, nil
}

func (l *leader) program(g messages.Grant) messages.Program {
	r := g.Attempt.Task
	j := l.book.Job(r.Job)
	return messages.Program{Job: r.Job, Stage: r.Stage, StageName: "main", Account: j.Account, Class: class, Tasks: j.Stages[0].Total, Command: j.Spec.Stages[0].Command}
}

// resolve gives each claim its jobs in order of preference: the one sampled and,
// where that has too little work left, others drawn by their shares.
func (l *leader) resolve(claims []messages.Claim) []book.Claim {
	const mostSubstitutes = 16
	out := make([]book.Claim, 0, len(claims))
	for _, c := range claims {
		l.traffic.Claims += uint64(c.Slots)
		jobs := []messages.JobID{c.Job}
		for missing := c.Slots - l.market.Pending(c.Job, 0); missing > 0 && len(jobs) <= mostSubstitutes; {
			id := l.market.Substitute(0, l.rng)
			if id == 0 {
				break
			}
			if !slices.Contains(jobs, id) {
				missing -= l.market.Pending(id, 0)
			}
			jobs = append(jobs, id)
		}
		claim := book.Claim{Class: class, Slots: c.Slots, Jobs: jobs}
		if l.market.Directs() {
			for _, id := range jobs {
				claim.Most = append(claim.Most, l.market.Most(id, 0))
			}
		}
		out = append(out, claim)
	}
	return out
}

// submit is what a user does: it sends its job, and a hold is made for it before
// it is in the book.
func (g *Grid) submit(i int) {
	if g.Progress != nil && i%1024 == 0 {
		g.Progress(i, len(g.out.Jobs))
	}
	g.traffic.Submissions++
	g.call(userActor, auctioneerActor, func() any {
		g.leader.submit(i)
		return nil
	}, func(any) {})
}
