package deadlineaware

import "slices"

// mostKept bounds the states of slots that are kept, in slots.
const mostKept = 1 << 22

// before computes the order and the slots of the jobs before the job in question. If k layers come
// after that job, the jobs before it are the layers from k on, peeled again without its work. After a
// few steps such a peeling reaches the same state as the peeling for some later number of layers. So
// the answers for different k share most of their order.
type before struct {
	*planner
	layers []layer
	place  []int32    // by job: its number among the layers
	links  []link     // by number
	states []*machine // by number: the slots after the layers from there on; nil: not kept
	kept   int        // slots in states
}

// link is one step in peeling the layers from some number on.
type link struct {
	jobs []int32 // the jobs that this step fixes, from the last; nil: not known
	next int     // after the step, the layers from this number on are left
}

func newBefore(q *planner, layers []layer) *before {
	b := &before{planner: q, layers: layers, place: make([]int32, len(q.items)),
		links: make([]link, len(layers)), states: make([]*machine, len(layers)+1)}
	for k, l := range layers {
		b.place[l.job] = int32(k)
	}
	empty := newMachine(q.Slots)
	for _, j := range q.idle {
		empty.place(int(j), &q.Jobs[j])
	}
	b.states[len(layers)] = empty
	return b
}

// machine returns a copy of the slots after the layers from number k on.
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
		// Keeping a state costs no more than computing it from the last kept one.
		if since >= b.Slots && b.kept < mostKept {
			b.states[k], since = m.clone(), 0
			b.kept += b.Slots
		}
	}
	return m
}

// peelFrom finds the links from number k on, up to those already known.
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

// link peels until the jobs fixed since number k are the same as a number of the next layers.
func (b *before) link(p *peeling, k int) link {
	var l link
	for l.next != k+len(l.jobs) || l.jobs == nil {
		job := p.next().job
		l.jobs = append(l.jobs, job)
		l.next = max(l.next, int(b.place[job])+1)
	}
	return l
}
