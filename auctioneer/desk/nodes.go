package desk

import (
	"fmt"
	"math"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
)

// nodes sends directives to nodes. It takes back the claims of silent nodes, and ends the tasks on nodes whose drain is
// over.
type nodes struct {
	*core
	markets  *Markets
	heard    map[messages.Name]messages.Duration // when each node was heard last, by the monotonic clock
	sessions map[messages.Name]uint64            // by node: the latest session
	told     map[uint32]uint64                   // by node: the last version of its directive that was published
	informed map[messages.Name]uint64            // by node: number of the exchange whose answer told it its markets
	next     messages.Duration                   // when to search for silent nodes next
	drains   messages.Time                       // end of the first drain; 0 if no node drains
	evicted  map[messages.Name]messages.Time     // by node: end of the drain whose eviction was already proposed
	lost     map[messages.Name]bool              // nodes whose claims are being taken back
}

func newNodes(c *core, m *Markets) nodes {
	n := nodes{core: c, heard: map[messages.Name]messages.Duration{}, sessions: map[messages.Name]uint64{}, evicted: map[messages.Name]messages.Time{}, lost: map[messages.Name]bool{}}
	n.serve(m)
	c.book.Read(func(b *book.Book) { // a node that is up counts as heard at this moment, even if the desk's first step is late
		for _, node := range b.Nodes() {
			if node.Up {
				n.registered(node.Name, node.Session, c.now.Mono)
			}
		}
	})
	return n
}

// serve replaces the markets. Each node learns its new markets in the answer to its next exchange.
func (n *nodes) serve(m *Markets) {
	n.markets, n.told, n.informed = m, map[uint32]uint64{}, map[messages.Name]uint64{}
}

func (n *nodes) hear(node messages.Name, at messages.Duration) {
	if at > n.heard[node] || n.heard[node] == 0 {
		n.heard[node] = at
	}
}

// registered renews the lease of a node that has registered a session. The lease begins at the time `at`, when this
// desk answered the registration. If another desk answered it, `at` is the present time.
func (n *nodes) registered(node messages.Name, session uint64, at messages.Duration) {
	n.sessions[node] = session
	n.hear(node, at)
}

// changed handles a change of a node in the book, and sends the node a directive if needed. A new registration of the
// node counts as a message from it.
func (n *nodes) changed(b *book.Book, i uint32, node *book.Node) {
	if !node.Up {
		delete(n.sessions, node.Name)
	} else if n.sessions[node.Name] != node.Session {
		n.registered(node.Name, node.Session, n.now.Mono)
	}
	n.next = min(n.next, n.leaseEnd(node.Name))
	n.awaitDrain(node)
	told, known := n.told[i]
	fresh := n.inform && !known
	if len(node.Stop) == 0 && told == node.Version && !fresh {
		return
	}
	n.told[i] = node.Version
	d := agent.Directive{Term: n.Term, Stop: stops(node.Stop), Suspended: node.Halted(), Version: node.Version}
	d.Last = lastWords(b, node, d.Stop)
	if fresh {
		d.Markets = n.markets.serving(node.Name, node.Slots)
	}
	n.out.Direct = append(n.out.Direct, Direction{node.Name, d})
}

// leaseEnd returns the time at which the claims of a silent node are taken back. At the end of the lease its agent
// stops the tasks, and the claims are taken back half a lease later.
func (n *nodes) leaseEnd(node messages.Name) messages.Duration {
	return n.heard[node] + n.Lease + n.Lease/2
}

func (n *nodes) step() {
	if n.now.Mono > n.next {
		n.expire()
	}
	if n.drains != 0 && n.drains <= n.now.Wall {
		n.evict()
	}
	if n.next != math.MaxInt64 {
		n.wakeIn(n.next + 1 - n.now.Mono)
	}
	n.wakeAt(n.drains)
}

func (n *nodes) expire() {
	n.next = math.MaxInt64
	n.book.Read(func(b *book.Book) {
		for _, node := range b.Nodes() {
			if !node.Up || n.lost[node.Name] {
				continue
			}
			if end := n.leaseEnd(node.Name); n.now.Mono > end {
				n.lose(node)
			} else {
				n.next = min(n.next, end)
			}
		}
	})
}

func (n *nodes) lose(node *book.Node) {
	name := node.Name
	n.lost[name] = true
	n.propose(&book.Command{Lost: &book.Lost{Node: name, Session: node.Session}}, func(tasks any, err error) {
		delete(n.lost, name)
		again := n.leaseEnd(name) // the node may have registered again in the meantime
		if err != nil {
			again = n.now.Mono + n.Lease/8
		}
		n.next = min(n.next, again)
		n.tell(Lost{name, tasks, err})
	})
}

// awaitDrain makes sure that the desk makes a step when the drain of a node ends.
func (n *nodes) awaitDrain(node *book.Node) {
	if node.Drain != 0 && node.Drain != book.ToTheirEnd && n.evicted[node.Name] != node.Drain && (n.drains == 0 || node.Drain < n.drains) {
		n.drains = node.Drain
	}
}

// evict ends the remaining tasks of nodes whose drain is over. If its proposal to end them is not committed, it
// proposes this again.
func (n *nodes) evict() {
	n.drains = 0
	n.book.Read(func(b *book.Book) {
		for _, node := range b.Nodes() {
			switch {
			case node.Drain > n.now.Wall:
				n.awaitDrain(node)
			case node.Gone(n.now.Wall) && n.evicted[node.Name] != node.Drain:
				n.end(node)
			}
		}
	})
}

func (n *nodes) end(node *book.Node) {
	name, until := node.Name, node.Drain
	n.evicted[name] = until
	n.propose(&book.Command{Drain: &book.Drain{Node: name, Until: until, Evict: true}}, func(_ any, err error) {
		if err != nil {
			delete(n.evicted, name)
			n.drains = n.now.Wall.Add(soon)
			n.tell(Evicted{name, err})
		}
	})
}

// stops returns the first MostStops of the attempts that a node must end. The node is told about the next ones when
// these have ended.
func stops(all []messages.Attempt) []messages.Attempt {
	return slices.Clone(all[:min(len(all), market.MostStops)])
}

// lastWords returns a text for each attempt in the list `stop`. The text becomes the last line of the attempt's output,
// and says in Slurm's words why the attempt ends. If no attempt gets such a text, lastWords returns nil.
func lastWords(b *book.Book, n *book.Node, stop []messages.Attempt) (all []string) {
	for i, a := range stop {
		j, claim := b.Job(a.Task.Job), n.Claims[a.Task]
		if j == nil || claim.Attempt != a.Number {
			continue
		}
		if words := wordsOf(j, int(a.Task.Stage), claim.Why); words != "" {
			if all == nil {
				all = make([]string, len(stop))
			}
			all[i] = words
		}
	}
	return all
}

// wordsOf returns the last line of the output of a task that must end. The line tells the user the reason.
func wordsOf(j *book.Job, stage int, why job.EndReason) string {
	switch {
	case j.Outcome == job.Failed && j.Reason == job.EndTimeLimit.String(): // another task of the job reached its limit before
		return fmt.Sprintf("DUE TO TIME LIMIT *** its time limit is %v", j.Spec.Stages[stage].TimeLimit)
	case why == job.EndTaskCancelled:
		return "*** the task was cancelled"
	case why == job.EndRequeued:
		return "DUE TO JOB REQUEUE ***"
	case why == job.EndPreempted, j.Outcome == job.Discarded && j.Reason == job.EndPreempted.String():
		return "DUE TO PREEMPTION ***"
	case why == job.NoReason && j.Outcome == job.Cancelled && !j.Active():
		return "*** " + j.Cause
	case j.Outcome == job.Discarded && j.Reason == mechanism.BudgetSpent:
		return "DUE TO BUDGET *** " + j.Cause
	}
	return ""
}
