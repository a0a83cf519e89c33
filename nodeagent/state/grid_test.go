package state_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/state"
)

// grid has a leader, a few agents, and a bad network between them, all in virtual time. After every step it checks two
// things: that no attempt runs twice, and that none runs beyond the lease of its node.
type grid struct {
	t      *testing.T
	rng    *rand.Rand
	now    messages.Time
	events []event
	leader leader
	nodes  []*node
	faulty bool
}

type event struct {
	at messages.Time
	do func()
}

// node is an agent with one class of slots. The function act carries out its actions.
type node struct {
	name    string
	state   *state.State
	running map[messages.Attempt]bool
}

// leader is a simple leader for tests. It gives out each task again, until an attempt of the task has ended well.
type leader struct {
	tasks    int
	pending  []int // task numbers
	attempts map[int]uint32
	holder   map[messages.Attempt]string
	done     map[int]int // how often the end of each task was accepted
	nodes    map[string]*session
	seq      uint64
}

type session struct {
	number  uint64
	seq     uint64
	reply   *agentmsg.ExchangeReply
	renewed messages.Time
}

func newGrid(t *testing.T, seed uint64, nodes, slots, tasks int) *grid {
	g := &grid{t: t, rng: rand.New(rand.NewPCG(seed, 0)), now: 1, faulty: true}
	g.leader = leader{tasks: tasks, attempts: map[int]uint32{}, holder: map[messages.Attempt]string{},
		done: map[int]int{}, nodes: map[string]*session{}}
	for i := range tasks {
		g.leader.pending = append(g.leader.pending, i)
	}
	for i := range nodes {
		g.nodes = append(g.nodes, &node{
			name:    fmt.Sprint("node", i),
			state:   state.New([]job.ClassSlots{{Class: "cpu", Slots: slots}}, rand.New(rand.NewPCG(seed, uint64(i+1)))),
			running: map[messages.Attempt]bool{},
		})
	}
	return g
}

func (g *grid) after(d messages.Duration, do func()) {
	g.events = append(g.events, event{g.now.Add(d), do})
}

// deliver passes on a message: it calls the function `do` after a random delay. If the grid is faulty, it may call `do`
// twice or never.
func (g *grid) deliver(do func()) {
	copies := 1
	if g.faulty {
		copies = []int{0, 1, 1, 1, 1, 1, 1, 2}[g.rng.IntN(8)]
	}
	for range copies {
		g.after(messages.Duration(1e5+g.rng.Int64N(2e8)), do)
	}
}

// step handles the next event. But if a node must act before the next event, step only wakes this node.
func (g *grid) step() {
	var at messages.Time
	next, sleeper := -1, (*node)(nil)
	for i, e := range g.events {
		if next < 0 || e.at < at {
			next, at = i, e.at
		}
	}
	for _, n := range g.nodes {
		if w := n.state.Wake(); w != 0 && (next < 0 && sleeper == nil || w < at) {
			sleeper, at = n, w
		}
	}
	g.now = max(g.now, at)
	if sleeper != nil {
		g.act(sleeper)
		return
	}
	do := g.events[next].do
	g.events = append(g.events[:next], g.events[next+1:]...)
	do()
}

func (g *grid) act(n *node) {
	do := n.state.Act(g.now)
	for _, s := range do.Start {
		if n.running[s.Grant.Attempt] {
			g.t.Fatalf("%s: attempt %v started twice", n.name, s.Grant.Attempt)
		}
		n.running[s.Grant.Attempt] = true
		g.after(messages.Duration(g.rng.Int64N(3e9)), func() { g.end(n, s.Grant.Attempt, agentmsg.Exited) })
	}
	for _, s := range do.Stop {
		took := messages.Duration(0)
		if !s.Kill {
			took = messages.Duration(g.rng.Int64N(1e9))
		}
		g.after(took, func() { g.end(n, s.Attempt, agentmsg.Stopped) })
	}
	for range do.Fetch {
		g.deliver(func() {
			v := g.leader.vector(g.nodes)
			n.state.Fetched(g.now, v)
			g.act(n)
		})
		n.state.FetchFailed(g.now, "main") // ask again if the vector does not come
	}
	if r := do.Request; r != nil {
		g.send(n, r)
	}
	if n.state.Joined() && n.state.Running() != len(n.running) {
		g.t.Fatalf("%s: %d tasks run, the state knows of %d", n.name, len(n.running), n.state.Running())
	}
}

func (g *grid) end(n *node, a messages.Attempt, how agentmsg.Outcome) {
	if !n.running[a] {
		return
	}
	delete(n.running, a)
	n.state.Ended(agentmsg.Finished{Attempt: a, Outcome: how})
	g.act(n)
}

// send carries a request to the leader, and the answer back.
func (g *grid) send(n *node, r *state.Request) {
	g.after(r.Within, func() {
		n.state.Failed(g.now, r.ID, fails(messages.Unavailable))
		g.act(n)
	})
	g.deliver(func() {
		if r.Register != nil {
			reply := g.leader.register(g.now, n.name, r.Register)
			g.deliver(func() { n.state.Registered(g.now, r.ID, reply); g.act(n) })
			return
		}
		reply, err := g.leader.exchange(g.now, n.name, r.Exchange)
		g.deliver(func() {
			if err != nil {
				n.state.Failed(g.now, r.ID, err)
			} else {
				n.state.Answered(g.now, r.ID, reply)
			}
			g.act(n)
		})
	})
}

// publish sends the vector to all nodes while there is work.
func (g *grid) publish() {
	if len(g.leader.pending) > 0 {
		v := g.leader.vector(g.nodes)
		for _, n := range g.nodes {
			g.deliver(func() { n.state.Vector(g.now, v); g.act(n) })
		}
	}
	g.leader.expire(g.now)
	g.after(second/4, g.publish)
}

func (l *leader) vector(nodes []*node) *agentmsg.Vector {
	l.seq++
	idle := 0
	for _, n := range nodes {
		idle += n.state.Idle()
	}
	return whole(1, l.seq, len(l.pending), idle, only(7))
}

func (l *leader) register(now messages.Time, name string, r *agentmsg.RegisterRequest) *agentmsg.RegisterReply {
	reply := &agentmsg.RegisterReply{Lease: lease, Markets: []agentmsg.NodeMarket{{Name: "main", Classes: []messages.Name{"cpu"}}}, Term: 1}
	if s := l.nodes[name]; s != nil && s.number == r.Session {
		return reply
	}
	kept := map[messages.Attempt]bool{}
	for _, a := range r.Running {
		if l.holder[a] == name {
			kept[a] = true
		} else {
			reply.Stop = append(reply.Stop, a)
		}
	}
	for _, a := range l.heldBy(name) {
		if !kept[a] {
			l.release(a)
		}
	}
	l.nodes[name] = &session{number: r.Session, renewed: now}
	return reply
}

func (l *leader) exchange(now messages.Time, name string, e *agentmsg.Exchange) (*agentmsg.ExchangeReply, error) {
	s := l.nodes[name]
	switch {
	case s == nil || s.number != e.Session || e.Seq < s.seq:
		return nil, fails(messages.Fenced)
	case e.Seq == s.seq:
		return s.reply, nil
	case e.Seq > s.seq+1:
		return nil, fails(messages.Invalid)
	}
	s.seq, s.renewed = e.Seq, now
	for _, f := range e.Finished {
		if l.holder[f.Attempt] != name {
			continue
		}
		l.release(f.Attempt)
		if f.Outcome == agentmsg.Exited {
			task := int(f.Attempt.Task.Index)
			l.done[task]++
			l.pending = l.pending[:len(l.pending)-1] // release has just appended the task
		}
	}
	s.reply = &agentmsg.ExchangeReply{Seq: e.Seq, Programs: []agentmsg.Program{{Job: 7, Class: "cpu"}}}
	for range min(slotsOf(e), len(l.pending)) {
		task := l.pending[0]
		l.pending = l.pending[1:]
		l.attempts[task]++
		a := messages.Attempt{Task: messages.TaskRef{Job: 7, Index: uint32(task)}, Number: l.attempts[task]}
		l.holder[a] = name
		s.reply.Grants = append(s.reply.Grants, agentmsg.Grant{Attempt: a})
	}
	return s.reply, nil
}

func (l *leader) release(a messages.Attempt) {
	delete(l.holder, a)
	l.pending = append(l.pending, int(a.Task.Index))
}

// expire releases the attempts of nodes that were silent for a whole lease.
func (l *leader) expire(now messages.Time) {
	for _, name := range slices.Sorted(maps.Keys(l.nodes)) {
		if now.Sub(l.nodes[name].renewed) <= lease {
			continue
		}
		delete(l.nodes, name)
		for _, a := range l.heldBy(name) {
			l.release(a)
		}
	}
}

// heldBy returns the attempts of a node, sorted, so that one seed always gives the same run.
func (l *leader) heldBy(name string) (held []messages.Attempt) {
	for a, holder := range l.holder {
		if holder == name {
			held = append(held, a)
		}
	}
	slices.SortFunc(held, func(a, b messages.Attempt) int { return cmp.Compare(a.Task.Index, b.Task.Index) })
	return held
}

// check fails the test if an attempt runs although the leader gave its task to another node.
func (g *grid) check() {
	for _, n := range g.nodes {
		for a := range n.running {
			if holder, ok := g.leader.holder[a]; ok && holder != n.name {
				g.t.Fatalf("%v runs on %s and belongs to %s", a, n.name, holder)
			}
		}
	}
	for _, n := range g.nodes {
		if s := g.leader.nodes[n.name]; s == nil && len(n.running) > 0 {
			g.t.Fatalf("%s runs %v though its lease is over", n.name, n.running)
		}
	}
}

// TestGridOverBadNetwork runs a small grid over a network with failures, some longer than a lease. Every task must be
// done exactly once.
func TestGridOverBadNetwork(t *testing.T) {
	lost := 0
	for seed := range uint64(150) {
		g := newGrid(t, seed, 3, 2, 40)
		sessions := map[uint64]bool{}
		g.publish()
		for range 40_000 {
			if g.now > messages.Time(120*second/1000) {
				g.faulty = false
			}
			g.step()
			g.check()
			for _, n := range g.nodes {
				sessions[n.state.Session()] = true
			}
			if len(g.leader.done) == g.leader.tasks && !g.faulty {
				break
			}
		}
		lost += len(sessions) - len(g.nodes)
		for task := range g.leader.tasks {
			if g.leader.done[task] != 1 {
				t.Fatalf("seed %d: task %d was done %d times at %v", seed, task, g.leader.done[task], g.now)
			}
		}
	}
	if lost == 0 {
		t.Error("no session was ever lost: the network is too good for this test")
	}
}
