package book

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Node is a node in the book.
type Node struct {
	Name     messages.Name
	Session  uint64
	Up       bool
	Since    messages.Time // of the session, or of its loss
	Slots    []messages.ClassSlots
	Used     []int // by position in Slots; what leaves Slots is not counted
	Claims   map[messages.TaskRef]Held
	Stop     []messages.Attempt // to be ended by the agent
	Seq      uint64             // of the last exchange applied
	Grants   []messages.Grant   // its answer
	Finished uint64
	Version  uint64        // rises when what is held back changes
	Drain    messages.Time // by when its tasks are to be gone; 0: it takes work

	Abilities []messages.Name
	// MostSuspended is how many suspended tasks it is to keep at once; 0: as many as
	// its slots allow.
	MostSuspended int `msgpack:"-"` // kept in an image's annex
	// Left are sessions that others followed, the latest ones: a registration under
	// one of them is late.
	Left   []uint64 `msgpack:"-"` // kept in an image's annex
	Health Health   `msgpack:"-"` // kept in an image's supplement
}

// keptSessions is how many sessions of a node are remembered that it has left.
const keptSessions = 8

// Held is a claim as its node holds it.
type Held struct {
	Attempt uint32
	Class   messages.Name
	Halt    Halt
	Leaving bool              // it is to end, and its task to be claimed again
	Since   messages.Time     // of Halt
	Paused  messages.Duration // how long it was suspended or gathered before
}

// Halt says whether a claimed task may run.
type Halt uint8

// The kinds of halt.
const (
	Goes      Halt = iota
	Gathers        // waits for the rest of its gang, on its slot
	Suspended      // has left its slot to others
)

func (n *Node) class(name messages.Name) int {
	return slices.IndexFunc(n.Slots, func(s messages.ClassSlots) bool { return s.Class == name })
}

// Idle is the number of free slots of a class.
func (n *Node) Idle(class messages.Name) int {
	if n.barred() {
		return 0
	}
	return n.room(class)
}

// room is the number of slots of a class that have no task, where the node's
// health does not matter: for a task that it has already.
func (n *Node) room(class messages.Name) int {
	i := n.class(class)
	if !n.Up || i < 0 || n.Drain != 0 {
		return 0
	}
	return max(0, n.Slots[i].Slots-n.Used[i])
}

func (n *Node) use(class messages.Name, by int) {
	if i := n.class(class); i >= 0 {
		n.Used[i] += by
	}
}

// held lists the node's claims in the order of job, stage and index.
func (n *Node) held() []messages.TaskRef {
	refs := make([]messages.TaskRef, 0, len(n.Claims))
	for r := range n.Claims {
		refs = append(refs, r)
	}
	slices.SortFunc(refs, func(a, b messages.TaskRef) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Index, b.Index))
	})
	return refs
}

func (b *Book) register(c *Register) any {
	i, known := b.names[c.Node]
	if !known {
		if len(b.nodes) >= MaxNodes {
			return messages.Errorf(messages.Exhausted, "the site knows %d nodes, its limit", MaxNodes)
		}
		i = uint32(len(b.nodes))
		b.nodes = append(b.nodes, &Node{Name: c.Node})
		b.names[c.Node] = i
	}
	n := b.nodes[i]
	b.touchNode(i)
	if n.Up && n.Session == c.Session {
		return slices.Clone(n.Stop)
	}
	if slices.Contains(n.Left, c.Session) {
		return messages.Errorf(messages.Fenced, "session %x of node %s was followed by another; register under a new one", c.Session, c.Node)
	}
	n.leave(c.Session)
	n.resetHealth(b.now)
	stop := b.rejoin(n, c)
	n.Session, n.Up, n.Since, n.Seq, n.Grants, n.Stop = c.Session, true, b.now, 0, nil, stop
	return slices.Clone(stop)
}

// leave remembers the session that another one follows. Two agents of one name
// fence each other so, too.
func (n *Node) leave(next uint64) {
	if n.Session == 0 || n.Session == next {
		return
	}
	n.Left = append(slices.Clone(n.Left[max(0, len(n.Left)+1-keptSessions):]), n.Session)
}

// rejoin keeps the claims that the agent still has in hand, takes back the
// others, and returns what the agent has in hand without a claim.
func (b *Book) rejoin(n *Node, c *Register) (stop []messages.Attempt) {
	inHand := make(map[messages.TaskRef]uint32, len(c.Running))
	for _, a := range c.Running {
		inHand[a.Task] = a.Number
		if n.Claims[a.Task].Attempt != a.Number {
			stop = append(stop, a)
		}
	}
	n.Slots, n.Used, n.Abilities, n.MostSuspended = c.Slots, make([]int, len(c.Slots)), c.Abilities, c.MostSuspended
	for _, r := range n.held() {
		if h := n.Claims[r]; inHand[r] != h.Attempt {
			b.uncount(r, h)
			b.giveBack(r, h.Attempt)
			delete(n.Claims, r)
		}
	}
	for _, r := range n.held() { // those that are kept, some of them broken by the loss of others
		h := n.Claims[r]
		if h.Halt != Suspended {
			n.use(h.Class, 1)
		}
		if h.Halt != Goes {
			n.Version++ // the agent is to be told again
		}
		if j := b.jobs[r.Job]; j == nil || !j.Active() || h.Leaving {
			stop = append(stop, messages.Attempt{Task: r, Number: h.Attempt})
		}
	}
	return stop
}

func (b *Book) lost(c *Lost) any {
	i, known := b.names[c.Node]
	if !known || b.nodes[i].Session != c.Session || !b.nodes[i].Up {
		return 0
	}
	n := b.nodes[i]
	refs := n.held()
	for _, r := range refs {
		b.uncount(r, n.Claims[r])
		b.giveBack(r, n.Claims[r].Attempt)
	}
	n.Up, n.Since, n.Claims, n.Stop, n.Grants = false, b.now, nil, nil, nil
	n.Used = make([]int, len(n.Slots))
	b.touchNode(i)
	return len(refs)
}

// giveBack makes a claimed task pending again without counting the attempt.
func (b *Book) giveBack(r messages.TaskRef, attempt uint32) {
	j := b.jobs[r.Job]
	if j == nil {
		return
	}
	s := &j.Stages[r.Stage]
	if t := &s.Tasks[r.Index]; t.Phase == Claimed && t.Attempt == attempt {
		b.again(j, s, r.Index)
		b.breakGang(j, int(r.Stage))
	}
}

func (b *Book) again(j *Job, s *Stage, index uint32) {
	t := &s.Tasks[index]
	t.Phase, t.Ended = Pending, b.now
	s.Running--
	s.Retried++
	s.Again = append(s.Again, index)
	s.Broken = s.Broken && s.Running > 0
	b.touch(j.ID)
}
