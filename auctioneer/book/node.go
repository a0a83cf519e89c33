package book

import (
	"math"
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// The value ToTheirEnd of [Node.Drain] means that the node's tasks may run to their end.
const ToTheirEnd = messages.Time(math.MaxInt64)

// Node is a node in the book.
type Node struct {
	Name     messages.Name
	Session  uint64
	Up       bool
	Since    messages.Time // start of the session, or time of its loss
	Slots    []job.ClassSlots
	Used     []int                          // number of slots in use, by position in Slots; removed slots are not counted
	Claims   map[messages.TaskRef]NodeClaim `json:"-"`
	Stop     []messages.Attempt             // attempts that the agent must end
	Seq      uint64                         // number of the last applied exchange
	Grants   []agent.Grant                  // answer to that exchange
	Finished uint64
	Version  uint64        // rises when the list of suspended claims changes
	Drain    messages.Time // when the site ends the node's tasks, or [ToTheirEnd]; 0 means that the node takes new tasks

	Abilities []messages.Name
	// MostSuspended is how many suspended tasks the node should keep. 0 means as many as its slots allow.
	MostSuspended int
	// Left are the latest sessions of the node that were replaced by another session. A registration under such a
	// session comes too late, and is refused.
	Left   []uint64
	Health Health
	// DrainReason is the operator's reason for the drain.
	DrainReason string
	// Stopped means that the agent itself ended its last session. The node is not lost.
	Stopped bool
	// Removed means that an operator removed the node. The node keeps its position in the list of nodes, because tasks
	// refer to this position. If its agent registers again, the node is no longer removed.
	Removed bool
	// Ahead is how many claims were made in advance and have no slot yet, by position in Slots; see the constant
	// [Ahead].
	Ahead []int
	// Resources are the resources of the whole node, or nil if unknown. Stages use the Labels to choose nodes.
	Resources *job.Resources
	// Units are the resources of one slot, by position in Slots. Without units, slots have no sizes.
	Units  []job.Resources
	Labels []messages.Name
	// Gatherings are the tasks of several slots for which the node keeps slots free until it has enough of them. There
	// is at most one for each class. Before the time Gathered, the node may not begin to keep slots for another task.
	Gatherings []Gathering
	Gathered   messages.Time
	// Exchanged is when the last exchange of the node was applied.
	Exchanged messages.Time
	// Window is the number of the maintenance window that drains the node, or 0 if no window drains it.
	Window uint32 `json:",omitempty"`
	// Level is the level of the agent's release; see [messages.Level].
	Level int `json:",omitempty"`
	// InVain is how often the node kept slots free for a task and gave up, since it last had enough slots for such a
	// task. It is at most [mostDoublings].
	InVain int `json:",omitempty"`

	halted  []messages.Attempt // claims that must not run now: see [Node.Halted]
	windows []*market.Window   // its maintenance windows that are not over: see [windows]
	taking  []messages.Name    // classes for which this node is counted in nodes.taking
}

const keptSessions = 8

// NodeClaim is a claim in the book's record of the node that has it.
type NodeClaim struct {
	Attempt uint32
	Class   messages.Name
	Width   int // number of slots of the class; 0 means 1
	Halt    Halt
	Leaving bool              // the attempt must end, and its task must be claimed again
	Since   messages.Time     // when Halt last changed
	Paused  messages.Duration // how long the claim was suspended, or waited for its gang, before Since
	Why     job.EndReason     // why the attempt must end, if Leaving
	// The field `until` is the time at which the claim lost its slot, if this was before the agent reported the
	// attempt's end. Otherwise it is 0.
	until messages.Time
}

// Halt reports whether a claimed task may run, and if not, why.
type Halt uint8

// A claimed task runs (Goes), or does not run for one of these reasons.
const (
	Goes      Halt = iota
	Gathers        // the task has its slot, and waits until all tasks of its gang have theirs
	Suspended      // the task has given up its slot to other tasks
	Ahead          // the task waits on its node for the next free slot: it does not run, and costs nothing
)

func (n *Node) class(name messages.Name) int {
	return slices.IndexFunc(n.Slots, func(s job.ClassSlots) bool { return s.Class == name })
}

func (h *NodeClaim) slots() int { return max(h.Width, 1) }

// Idle returns the number of slots of a class that a new task could get now. It is 0 if the node keeps free slots of
// the class for a wide task, or if the node's health forbids new work.
func (n *Node) Idle(class messages.Name) int {
	if n.barred() || n.Gathers(class) {
		return 0
	}
	return n.freeSlotsBeside(class, n.Gatherings)
}

// ahead returns how many more tasks of a class the node may claim before it has free slots for them. The node's agent
// asks for at most `wanted`.
func (n *Node) ahead(class messages.Name, wanted int) int {
	i := n.class(class)
	if wanted <= 0 || n.barred() || !n.Up || i < 0 || n.Drain != 0 || n.Gathers(class) {
		return 0
	}
	return max(0, min(wanted, agent.MaxAhead*n.Slots[i].Slots)-n.waiting(i))
}

// waiting returns how many claims of the node wait for a slot in class i.
func (n *Node) waiting(i int) int {
	if i >= len(n.Ahead) {
		return 0
	}
	return n.Ahead[i]
}

// wait adds `by` to the number of claims that wait for a slot of the class.
func (n *Node) wait(class messages.Name, by int) {
	if i := n.class(class); i >= 0 {
		n.Ahead = append(n.Ahead, make([]int, max(0, len(n.Slots)-len(n.Ahead)))...)
		n.Ahead[i] += by
	}
}

// freeSlots returns the number of slots of a class that have no task and enough free resources. It is 0 if the node is
// down or drains. A node in quarantine counts like any other node, because the function is used for tasks that are
// already on the node.
func (n *Node) freeSlots(class messages.Name) int { return n.freeSlotsBeside(class, nil) }

// freeSlotsBeside returns the same as freeSlots, but resources that the node keeps free for wide tasks do not count as
// free. The argument `gathered` lists these tasks, which do not have enough slots yet.
func (n *Node) freeSlotsBeside(class messages.Name, gathered []Gathering) int {
	i := n.class(class)
	if !n.Up || i < 0 || n.Drain != 0 {
		return 0
	}
	return max(0, min(n.Slots[i].Slots-n.Used[i], n.unusedResourcesHold(i, gathered)))
}

// unusedResourcesHold returns how many slots of class i fit into the unused resources. If a node does not report its
// resources, there is no limit.
func (n *Node) unusedResourcesHold(i int, gathered []Gathering) int {
	if n.Resources == nil || i >= len(n.Units) {
		return math.MaxInt32
	}
	left, unit := *n.Resources, n.Units[i].Of(n.Resources)
	if unit == (job.Resources{}) {
		return math.MaxInt32
	}
	for k, used := range n.Used {
		left = left.Less(n.Units[k].Times(used))
	}
	for _, g := range gathered {
		if k := n.class(g.Class); k >= 0 {
			left = left.Less(n.Units[k].Times(g.Width))
		}
	}
	unit.GPUType = ""
	return left.Holds(unit)
}

// Sold returns the resources of the slots that have tasks.
func (n *Node) Sold() (sold job.Resources) {
	for k := range n.Units {
		sold = sold.Less(n.Units[k].Times(-n.Used[k]))
	}
	return sold
}

// Offers returns how many slots of class i the node offers: the slots that have a task, and the slots that still fit
// into its free resources.
func (n *Node) Offers(i int) int {
	return min(n.Slots[i].Slots, n.Used[i]+max(0, n.unusedResourcesHold(i, nil)))
}

// Free returns how many slots of a class have no task. It includes free slots that the node keeps for a wide task.
func (n *Node) Free(class messages.Name) int { return n.freeSlots(class) }

func (n *Node) use(class messages.Name, by int) {
	if i := n.class(class); i >= 0 {
		n.Used[i] += by
	}
}

// claimed lists the node's claims by job, stage and index.
func (n *Node) claimed() []messages.TaskRef {
	refs := make([]messages.TaskRef, 0, len(n.Claims))
	for r := range n.Claims {
		refs = append(refs, r)
	}
	slices.SortFunc(refs, messages.TaskRef.Compare)
	return refs
}

// forgetStops removes ended attempts from the attempts that the agent must end.
func (n *Node) forgetStops(finished []agent.Finished) {
	if len(n.Stop) == 0 || len(finished) == 0 {
		return
	}
	over := make(map[messages.Attempt]bool, len(finished))
	for i := range finished {
		over[finished[i].Attempt] = true
	}
	n.Stop = slices.DeleteFunc(n.Stop, func(a messages.Attempt) bool { return over[a] })
}

// leave is called before the node gets the session `next`. If the node already has another session, leave adds this old
// session to the replaced sessions. So if two agents have the same name, the one that registers last stops the other
// one.
func (n *Node) leave(next uint64) {
	if n.Session == 0 || n.Session == next {
		return
	}
	n.Left = append(slices.Clone(n.Left[max(0, len(n.Left)+1-keptSessions):]), n.Session)
}

// suspendedPerSlot is the default number of suspended tasks per slot. Suspended and running tasks must fit in the
// node's memory together.
const suspendedPerSlot = 4

// SuspendedLimit returns how many suspended tasks the node may have at the same time.
func (n *Node) SuspendedLimit() int {
	if n.MostSuspended > 0 {
		return n.MostSuspended
	}
	slots := 0
	for _, s := range n.Slots {
		slots += s.Slots
	}
	return suspendedPerSlot * slots
}

// Suspended returns the number of suspended tasks, without tasks that are about to end.
func (n *Node) Suspended() (count int) {
	for _, h := range n.Claims {
		if h.Halt == Suspended && !h.Leaving {
			count++
		}
	}
	return count
}

// Halted returns the attempts that wait on the node without running. They are suspended attempts, and attempts of gangs
// that are not complete. They are ordered by job, stage and index. The caller must not change the list. The node does
// not change it either: when an attempt is added or removed, the node makes a new list.
func (n *Node) Halted() []messages.Attempt { return n.halted }

func (n *Node) set(r messages.TaskRef, to NodeClaim) {
	if n.Claims == nil {
		n.Claims = map[messages.TaskRef]NodeClaim{}
	}
	was := n.Claims[r]
	n.Claims[r] = to
	n.list(r, was, to)
}

func (n *Node) drop(r messages.TaskRef) {
	was := n.Claims[r]
	delete(n.Claims, r)
	n.list(r, was, NodeClaim{})
}

// halts reports whether the task of a claim must not run now, because it waits for its gang or is suspended. An agent
// may not yet know this, and still run the task.
func (h *NodeClaim) halts() bool { return h.Halt == Gathers || h.Halt == Suspended }

// The method list updates the node's list of halted attempts after a claim has changed. The claims of a gang are
// halted, and later released, in the order of the list. So most attempts are added at the end of the list and removed
// at its front, which does not copy the list.
func (n *Node) list(r messages.TaskRef, was, is NodeClaim) {
	if was.halts() == is.halts() {
		return
	}
	at, _ := slices.BinarySearchFunc(n.halted, r, func(a messages.Attempt, r messages.TaskRef) int { return a.Task.Compare(r) })
	switch last := len(n.halted) - 1; {
	case is.halts() && at > last:
		n.halted = append(n.halted, messages.Attempt{Task: r, Number: is.Attempt})
	case is.halts():
		n.halted = slices.Insert(slices.Clone(n.halted), at, messages.Attempt{Task: r, Number: is.Attempt})
	case last == 0:
		n.halted = nil
	case at == 0:
		n.halted = n.halted[1:]
	case at == last:
		n.halted = slices.Clip(n.halted[:last]) // a later append must not overwrite the list that readers have
	default:
		n.halted = slices.Concat(n.halted[:at], n.halted[at+1:])
	}
}

// Gone reports whether the node still has claims after the end of its drain.
func (n *Node) Gone(now messages.Time) bool {
	return n.Up && n.Drain != 0 && now >= n.Drain && len(n.Claims) > 0
}

// nodes are all nodes that have ever registered.
type nodes struct {
	inOrder []*Node // in the order of first registration
	names   map[messages.Name]uint32
	present int                   // nodes that were not removed
	taking  map[messages.Name]int // by class: number of nodes that accept its tasks
}

// find returns a node and its position, or nil if there is none.
func (s *nodes) find(name messages.Name) (uint32, *Node) {
	if i, ok := s.names[name]; ok {
		return i, s.inOrder[i]
	}
	return 0, nil
}

func (s *nodes) add(n *Node) uint32 {
	i := uint32(len(s.inOrder))
	s.inOrder = append(s.inOrder, n)
	s.names[n.Name] = i
	if !n.Removed {
		s.present++
	}
	s.recount(n)
	return i
}

// remove takes a node out of the list. The node must be down. The book keeps the node's data, for a late message or a
// new registration of the node's agent.
func (s *nodes) remove(n *Node) error {
	if n.Up {
		return messages.Errorf(messages.Conflict, "node %s is up, or was until a moment ago: stop its agent, and repeat this when \"candor nodes\" shows the node as stopped or lost", n.Name)
	}
	n.Removed, n.Window, n.Drain, n.DrainReason = true, 0, 0, ""
	n.Slots, n.Units, n.Used, n.Abilities, n.Health.Failures, n.Health.Well = nil, nil, nil, nil, nil, nil
	s.present--
	return nil
}

func (n *Node) takes(class messages.Name) bool {
	return n.Up && n.Drain == 0 && n.Health.Quarantined == 0 && n.class(class) >= 0
}

// recount updates the field s.taking: for each class, the number of nodes that accept tasks. Call it when the node n
// may have begun or stopped to accept work.
func (s *nodes) recount(n *Node) {
	for _, class := range n.taking {
		if s.taking[class]--; s.taking[class] == 0 {
			delete(s.taking, class)
		}
	}
	n.taking = n.taking[:0]
	for _, c := range n.Slots {
		if n.takes(c.Class) && !slices.Contains(n.taking, c.Class) {
			n.taking = append(n.taking, c.Class)
			s.taking[c.Class]++
		}
	}
}

// lastOf returns a class that no other node than node i accepts, or "".
func (s *nodes) lastOf(i uint32) messages.Name {
	for _, c := range s.inOrder[i].Slots {
		if !s.elsewhere(c.Class, []uint32{i}) {
			return c.Class
		}
	}
	return ""
}

// elsewhere reports whether a node outside the list `but` accepts tasks of a class. The list has no duplicates.
func (s *nodes) elsewhere(class messages.Name, but []uint32) bool {
	others := s.taking[class]
	for _, i := range but {
		if s.inOrder[i].takes(class) {
			others--
		}
	}
	return others > 0
}

// Gathering says that a node keeps slots free for a task of several slots, until it has enough of them.
type Gathering struct {
	Class messages.Name
	Job   messages.JobID
	Stage uint32
	Width int
	Since messages.Time
	// Micros is how many slot-microseconds were idle up to the time At, because the node kept the slots for this task.
	Micros uint64
	At     messages.Time
}

// Gathers reports whether the node keeps slots of a class free for a wide task, until it has enough of them.
func (n *Node) Gathers(class messages.Name) bool {
	return slices.ContainsFunc(n.Gatherings, func(g Gathering) bool { return g.Class == class })
}

// Examines reports whether a probe of the node is due. The book begins a probe when it applies an exchange of the node.
// So when a probe is due, even an empty exchange must be committed.
func (n *Node) Examines(now messages.Time) bool {
	h := &n.Health
	switch {
	case !n.Up:
		return false
	case h.Probe.Number != 0:
		return now.Sub(h.Probe.Since) >= ProbeWithin
	case h.Quarantined != 0:
		return now >= h.Retry
	}
	return h.doubted() && now.Sub(h.Probed) >= min(leastBetween<<min(h.Passed, 10), mostBetween)
}

// ProbeClass returns the class of the last task that failed on the node, or else the first class of the node. It is ""
// if the node has no slots.
func (n *Node) ProbeClass() messages.Name {
	if k := len(n.Health.Failures); k > 0 && n.class(n.Health.Failures[k-1].Class) >= 0 {
		return n.Health.Failures[k-1].Class
	}
	if len(n.Slots) == 0 {
		return ""
	}
	return n.Slots[0].Class
}

// barred reports whether the node takes no new work because of its health.
func (n *Node) barred() bool { return n.Health.Quarantined != 0 || n.Health.Probe.Number != 0 }

func (n *Node) lift(now messages.Time) {
	h := &n.Health
	h.Quarantined, h.Retry, h.Reason, h.Failures, h.Back = 0, 0, "", nil, now
	h.Probed, h.Passed = 0, 0
}

// resetHealth makes the next probe of the node due at once, because the node may have been repaired before its agent
// registered again. If a probe is running, its result will be ignored.
func (n *Node) resetHealth(now messages.Time) {
	h := &n.Health
	h.Probe, h.Probed = Probe{}, 0
	if h.Quarantined != 0 {
		h.Retry = now
	}
}
