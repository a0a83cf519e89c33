package deadlineaware

import "slices"

// mostKept limits the memory of kept states, from which later answers continue: the number of kept states, multiplied
// by the number of slots, is at most mostKept.
const mostKept = 1 << 22

// In the final order, each job has a place. A layer is such a place together with its job. Layer 0 is the last place.
// Suppose that one job is removed, and that k layers come after it. Then the layers from k on may get another order,
// because the work of this job is missing. before computes this other order, and the slots that the tasks then get. It
// fixes one layer after another, beginning with the last place. After a few steps, it often reaches the same state as
// for a removed job with a larger k. So the answers for different jobs share most of their order.
type before struct {
	*planner
	layers []layer
	place  []int32    // by job: the number of its layer
	links  []link     // by number of a layer: the step that begins at this layer
	states []*machine // by number of a layer: the slots after this layer and all layers with larger numbers got their tasks; nil if not kept
	kept   int        // number of slots in states
}

// link is one step of fixing layers. At its beginning, the layers with smaller numbers are already fixed. The step
// fixes the next layers, in the order of their numbers.
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

// machine returns a copy of the slots with the tasks of layer k and of all layers with larger numbers.
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
		// This copy of the machine's state is kept only if at least b.Slots tasks were placed since the last copy. With
		// so many tasks, it takes at least as long to place them again as to copy the state.
		if since >= b.Slots && b.kept < mostKept {
			b.states[k], since = m.clone(), 0
			b.kept += b.Slots
		}
	}
	return m
}

// peelFrom computes the links of the layers from number k on. Each link is one step of the peeling. A link has the jobs
// whose places this step fixes, and the number of the layer at which the next step begins. peelFrom stops when it
// reaches a link that is already known.
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

// link computes one step of the peeling, which begins at layer k. It takes jobs from p, one after another. It stops as
// soon as the taken jobs are exactly the jobs of the layers from k up to some layer. It returns these jobs, and the
// number of the layer after these layers.
func (b *before) link(p *peeling, k int) link {
	var l link
	for l.next != k+len(l.jobs) || l.jobs == nil {
		job := p.next().job
		l.jobs = append(l.jobs, job)
		l.next = max(l.next, int(b.place[job])+1)
	}
	return l
}
