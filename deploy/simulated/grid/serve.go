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
	result := l.propose(&book.Command{Register: &book.Register{Node: node, Session: r.Session, Slots: r.Slots, Running: r.Running,
		MostSuspended: messages.MaxSuspended}}) // memory is no part of the model
	stop, ok := result.([]messages.Attempt)
	if !ok {
		l.fail("node %s cannot register: %v", node, result)
	}
	l.hear(node)
	return &messages.RegisterReply{Lease: l.config.Lease, Term: 1, Stop: stop, Markets: []messages.Market{l.market.Config}}
}

// exchange commits what an agent finished and claims.
func (l *leader) exchange(node messages.Name, x *messages.Exchange) (*messages.ExchangeReply, error) {
	l.traffic.Exchanges++
	reply := &messages.ExchangeReply{Seq: x.Seq}
	n := l.book.Node(node)
	if len(x.Finished)+len(x.Claims) == 0 && (n == nil || !n.Examines(l.now)) {
		l.traffic.Heartbeats++
		if n == nil || !n.Up || n.Session != x.Session {
			return nil, messages.Errorf(messages.Fenced, "session %x of node %s is over", x.Session, node)
		}
	} else {
		result := l.propose(&book.Command{Exchange: &book.Exchange{Node: node, Session: x.Session, Seq: x.Seq, Finished: x.Finished, Claims: l.resolve(x.Claims), Rules: book.RulesHealth}})
		if err, refused := result.(error); refused {
			return nil, err
		}
		reply.Grants = slices.Clone(result.([]messages.Grant))
		l.traffic.Grants += uint64(len(reply.Grants))
	}
	l.hear(node)
	for _, g := range reply.Grants {
		reply.Programs = append(reply.Programs, l.program(g))
	}
	if n = l.book.Node(node); n != nil {
		reply.Stop, reply.Held, reply.Version = slices.Clone(n.Stop), n.Halted(), n.Version
	}
	return reply, nil
}

// hear renews a node's lease. Where messages get lost, its claims are taken back
// once nothing was heard of it for half a lease longer than it runs on it.
func (l *leader) hear(node messages.Name) {
	_, watched := l.heard[node]
	l.heard[node] = l.now
	if !watched && !l.net.Reliable() {
		l.watch(node)
	}
}

func (l *leader) watch(node messages.Name) {
	until := l.heard[node].Add(l.config.Lease + l.config.Lease/2)
	l.queue.Push(until, func() {
		if l.heard[node].Add(l.config.Lease+l.config.Lease/2) > l.now {
			l.watch(node)
			return
		}
		delete(l.heard, node)
		l.traffic.Evicted++
		l.propose(&book.Command{Lost: &book.Lost{Node: node, Session: l.book.Node(node).Session}})
	})
}

// program is what a granted task runs. A job of the book that has ended
// meanwhile is stopped with the same answer.
func (l *leader) program(g messages.Grant) messages.Program {
	r := g.Attempt.Task
	if r.Job == 0 {
		return book.ProbeProgram(class)
	}
	p := messages.Program{Job: r.Job, Stage: r.Stage, StageName: stage, Class: class}
	if j := l.book.Job(r.Job); j != nil {
		s := &j.Spec.Stages[r.Stage]
		p.Account, p.Tasks, p.Command, p.TimeLimit = j.Account, s.TaskCount(), s.Command, s.TimeLimit
	}
	return p
}

func (l *leader) resolve(claims []messages.Claim) []book.Claim {
	out := make([]book.Claim, len(claims))
	for i := range claims {
		l.traffic.Claims += uint64(claims[i].Slots)
		out[i] = l.market.Resolve(l.book, &claims[i], l.rng)
	}
	return out
}
