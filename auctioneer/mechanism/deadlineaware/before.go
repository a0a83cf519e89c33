package deadlineaware

import "slices"

// The search keeps states, so that later answers can begin with them. mostKept limits their memory: the number of kept
// states, multiplied by the number of slots, is at most mostKept.
const mostKept = 1 << 22

// before computes the order and the slots of the jobs before a given job. A layer is a place in the order, with the job
// that has this place. Layers are numbered from the last place of the order. If k layers come after the given job, the
// layers from k on are ordered again without the given job's work. This "peeling" takes one job after another,
// beginning with the last place of the order. After a few steps it reaches the same state as for some larger k. So the
// answers for different k share most of their order.
type before struct {
	*planner
	layers []layer
	place  []int32    // by job: the number of its layer
	links  []link     // by number of a layer
	states []*machine // by number of a layer: the slots when this layer and all later ones have their tasks, or nil if not kept
	kept   int        // number of slots in states
}

// link is one step of the peeling of layers. Before a step, the layers before a certain number are fixed already, and
// those from this number on are left.
type link struct {
	jobs []int32 // the jobs that this step fixes, the last first; nil means not computed yet
	next int     // after the step, the layers from this number on are left
}

func newBefore(q *planner, layers []layer) *before {
	b := &before{planner: q, layers: layers, place: make([]int32, len(q.items)),
		links: make([]link, len(layers)), states: make([]*machine, len(layers)+1)}
	for k, l := range layers {
		b.place[l.job] = int32(k)
	}
	empty := newMachine(q.Problem)
	for _, j := range q.idle {
		empty.place(int(j), &q.Jobs[j])
	}
	b.states[len(layers)] = empty
	return b
}

// Layers are jobs whose positions are fixed. machine returns a copy of the machine's slots after the layers from number
// k on have got their slots.
func (b *before) machine(k int) *machine {
	if k < len(b.layers) && b.links[k].jobs == nil {
		b.peelFrom(k)
	}
	var path []int
	for ; b.states[k] == nil; k = b.links[k].next {
		path = append(path, k)
	}
	m, since := b.states[k].clone(), 0
	for _, k := range slices.Backward(path) {
		for _, j := range slices.Backward(b.links[k].jobs) {
			m.place(int(j), &b.Jobs[j])
			since += min(b.Jobs[j].Tasks, b.Slots)
		}
		// The state of the machine after this layer is copied and kept only if at least b.Slots tasks were placed since
		// the last copy. To place them again would then take at least as long as to copy.
		if since >= b.Slots && b.kept < mostKept {
			b.states[k], since = m.clone(), 0
			b.kept += b.Slots
		}
	}
	return m
}

// peelFrom computes the links of the layers, beginning with layer number k. A link is one step of the peeling: the jobs
// whose places it fixes, and the number of the next layer. peelFrom stops when it reaches a link that is already known.
func (b *before) peelFrom(k int) {
	member := make([]bool, len(b.items))
	for _, l := range b.layers[k:] {
		member[l.job] = true
	}
	p := b.newPeeling(b.pick(b.byTop, member, true), 0)
	for k < len(b.layers) && b.links[k].jobs == nil {
		b.links[k] = b.link(p, k)
		k = b.links[k].next
	}
}

// In link, p gives the next job of its order at each call, and each layer has one job. link takes jobs from p until
// they are exactly the jobs of the layers k, k+1, …, in any order. It returns these jobs and the number of the layer
// after them.
func (b *before) link(p *peeling, k int) link {
	var l link
	for l.next != k+len(l.jobs) || l.jobs == nil {
		job := p.next().job
		l.jobs = append(l.jobs, job)
		l.next = max(l.next, int(b.place[job])+1)
	}
	return l
}
