package book

import (
	"maps"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Cargo are the items of a move that is sealed. Each leader makes the same list anew.
type Cargo struct {
	jobs []messages.JobID // those that others wait for come before these
	rest []Item           // after them

	last   messages.JobID // that was looked at
	listed map[messages.JobID]bool
	whole  bool
}

// lookAtOnce is how many jobs are looked at, or dropped, at a time: there may be a million.
const lookAtOnce = 4 << 10

// Look lists some more of what goes over, and says whether that is all.
func (c *Cargo) Look(b *Book) (whole bool) {
	if c.listed == nil {
		c.listed = map[messages.JobID]bool{}
	}
	ids := b.Listed("")
	at, _ := slices.BinarySearch(ids, c.last+1)
	for _, c.last = range ids[at:min(len(ids), at+lookAtOnce)] {
		c.add(b, c.last)
	}
	if c.whole = c.whole || at+lookAtOnce >= len(ids) && c.close(b); c.whole {
		c.listed = nil
	}
	return c.whole
}

// add lists a job that goes over, after those that it waits for.
func (c *Cargo) add(b *Book, id messages.JobID) {
	j := b.Job(id)
	if c.listed[id] || j == nil || !j.Active() || !b.moving.Has(j.Spec.Market) {
		return
	}
	c.listed[id] = true
	for _, before := range slices.Concat(j.Spec.AfterJobs, j.Spec.AfterOK) {
		c.add(b, before)
	}
	c.jobs = append(c.jobs, id)
}

// close lists what is no job that goes on.
func (c *Cargo) close(b *Book) bool {
	for i := range b.moving.Markets {
		name := b.moving.Markets[i].Name
		if t := b.tariffs[name]; t != nil {
			c.rest = append(c.rest, Item{Tariffs: &tariffImage{name, t, b.spells[name]}})
		}
		var some *MarketNotes
		size := cargoBytes
		for _, n := range b.Notes(name) {
			if size >= cargoBytes {
				some, size = &MarketNotes{Market: name}, 0
				c.rest = append(c.rest, Item{Notes: some})
			}
			some.Notes, size = append(some.Notes, n), size+numberBytes*(2+len(n.Numbers))
		}
	}
	for _, id := range b.jobs.ended {
		p := b.jobs.past[id]
		if j := b.Job(id); j != nil {
			p = j.brief()
		}
		if p != nil && b.moving.Has(p.Market) {
			c.rest = append(c.rest, Item{Past: p})
		}
	}
	for i := range b.endedAway {
		if b.moving.Has(b.endedAway[i].Market) {
			c.rest = append(c.rest, Item{Past: &b.endedAway[i]})
		}
	}
	return true
}

// Last are up to lookAtOnce of the jobs that go on, before those that are gone: no job is
// forgotten before those that wait for it.
func (c *Cargo) Last(gone int) []messages.JobID {
	end := len(c.jobs) - gone
	return c.jobs[max(0, end-lookAtOnce):end]
}

const (
	// About cargoBytes go over with one command, and at most mostCarried of one job with the
	// names of its nodes: a log takes commands of 1 MiB.
	cargoBytes  = 1 << 18
	mostCarried = 7 << 17
	numberBytes = 9   // of a number, at most
	pastBytes   = 512 // of what is known of an ended job, about
)

// TooLarge returns the first job of a move that has begun and does not fit one command,
// nil if all do.
func (b *Book) TooLarge(m *Moving) (first *Job) {
	b.byID.all(false, func(j *Job) bool {
		if !j.Active() || !m.Has(j.Spec.Market) || first != nil && first.ID < j.ID {
			return true
		}
		nodes := map[uint32]bool{}
		if data, err := b.carried(j, nodes); err != nil || len(data)+b.nameBytes(nodes) > mostCarried {
			first = j
		}
		return true
	})
	return first
}

// carried is the record of a job, whose nodes are added to others.
func (b *Book) carried(j *Job, nodes map[uint32]bool) ([]byte, error) {
	j.nodes(func(at *uint32) { nodes[*at] = true })
	return Ended{Job: j}.Encode()
}

// nameBytes is about how many bytes the names of nodes have.
func (b *Book) nameBytes(nodes map[uint32]bool) (size int) {
	for at := range nodes {
		if int(at) < len(b.inOrder) {
			size += len(b.inOrder[at].Name) + 2*numberBytes
		}
	}
	return size
}

// Size is the number of all items, and Jobs that of the jobs among them.
func (c *Cargo) Size() int { return len(c.jobs) + len(c.rest) }

// Jobs is how many of the items are jobs that go on.
func (c *Cargo) Jobs() int { return len(c.jobs) }

// Next makes the command for the items after some. If one of them is forgotten here already, the
// target has all, and is only asked to say so.
func (c *Cargo) Next(b *Book, after int) (*TakeOver, error) {
	t := &TakeOver{Move: b.moving.ID, Markets: b.moving.Names(), After: after, Now: b.now, LastEffect: b.effects.last}
	nodes := map[uint32]bool{}
	for size := 0; after < c.Size() && size < cargoBytes; after++ {
		if after >= len(c.jobs) {
			item := c.rest[after-len(c.jobs)]
			if size += pastBytes; item.Notes != nil {
				for _, n := range item.Notes.Notes {
					size += numberBytes * (2 + len(n.Numbers))
				}
			}
			t.Items = append(t.Items, item)
			continue
		}
		j := b.Job(c.jobs[after])
		if j == nil {
			t.Items = nil
			return t, nil
		}
		with := maps.Clone(nodes)
		data, err := b.carried(j, with)
		if err != nil {
			return nil, err
		}
		if len(t.Items) > 0 && size+len(data)+b.nameBytes(with) > 2*cargoBytes {
			break
		}
		nodes = with
		size += len(data)
		t.Items = append(t.Items, Item{Job: data})
	}
	for _, at := range slices.Sorted(maps.Keys(nodes)) {
		if int(at) < len(b.inOrder) {
			t.Nodes = append(t.Nodes, NodeName{at, b.inOrder[at].Name})
		}
	}
	t.Last = after == c.Size()
	return t, nil
}

// nodes calls f with each position of a node of which a job speaks.
func (j *Job) nodes(f func(*uint32)) {
	for i := range j.Stages {
		for k := range j.Stages[i].Tasks {
			f(&j.Stages[i].Tasks[k].Node)
		}
	}
	for i := range j.Kept {
		f(&j.Kept[i].Node)
	}
	for _, d := range j.Doubts {
		for i := range d.Nodes {
			f(&d.Nodes[i])
		}
	}
}
