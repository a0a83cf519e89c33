package auctioneer

import (
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/messages"
)

// news is what the book says has changed, copied out under its lock.
type news struct {
	jobs       []jobNews
	nodes      []nodeNews
	directives []directive
	effects    bool
}

// jobNews is how far a job of a market has come, or that it has left it.
type jobNews struct {
	id       messages.JobID
	market   messages.Name
	job      *book.Job // its immutable parts only
	left     bool
	blocked  bool // it waits for other jobs
	settle   *ending
	progress market.Progress
	gangs    []gathering
}

// ending is what a settlement rests on.
type ending struct {
	outcome  messages.State
	ended    messages.Time
	total    int
	done     int
	cost     messages.Credits
	slotTime messages.Duration
	left     messages.Credits // of the hold
	ordered  bool
	fixed    *book.Fixed
}

type nodeNews struct {
	node  uint32
	name  messages.Name
	slots []messages.ClassSlots
	idle  []int // as slots
}

type directive struct {
	node    messages.Name
	stop    []messages.Attempt
	held    []messages.Attempt
	version uint64
	markets []messages.Market // that it serves; nil: as it knows
}

// takeNews copies what changed out of the book.
func (l *leader) takeNews() news {
	l.replica.mu.Lock()
	defer l.replica.mu.Unlock()
	b := l.replica.book
	changes := b.TakeChanges()
	n := news{effects: changes.Effects}
	for id := range changes.Jobs {
		if j := b.Job(id); j != nil {
			n.jobs = append(n.jobs, l.jobNews(b, j))
		}
	}
	for i := range changes.Nodes {
		node := b.Nodes()[i]
		n.nodes = append(n.nodes, newsOf(i, node))
		told, known := l.told[i]
		fresh := l.reapplied && !known
		if len(node.Stop) > 0 || told != node.Version || fresh {
			l.told[i] = node.Version
			d := directive{node: node.Name, stop: slices.Clone(node.Stop), held: node.Halted(), version: node.Version}
			if fresh {
				d.markets = l.served(node.Name, node.Slots)
			}
			n.directives = append(n.directives, d)
		}
	}
	return n
}

func (l *leader) jobNews(b *book.Book, j *book.Job) jobNews {
	n := jobNews{id: j.ID, market: j.Spec.Market, job: j, left: !j.Active(), blocked: j.Blocked > 0}
	if !j.Active() {
		if j.State == messages.Settling && !j.Settled {
			n.settle = l.endingOf(b, j)
		}
		return n
	}
	t := l.market(n.market)
	if t == nil {
		return n
	}
	p := market.Progress{Started: j.Started, Pending: make([]int, len(t.Config.Classes)), Running: make([]int, len(t.Config.Classes))}
	if j.Paid > 0 {
		p.Budget = j.Held - j.Paid
	}
	for i := range j.Stages {
		s := &j.Stages[i]
		p.Done += s.Done
		k := t.Class(j.Spec.Stages[i].Class)
		if k < 0 {
			continue
		}
		p.Pending[k] += j.Claimable(i)
		p.Running[k] += s.Running - s.Suspended - s.Leaving
		if s.Suspended > 0 {
			if p.Suspended == nil {
				p.Suspended = make([]int, len(t.Config.Classes))
			}
			p.Suspended[k] += s.Suspended
		}
		if s.Gathered != 0 {
			n.gangs = append(n.gangs, gathering{gang{j.ID, uint32(i)}, s.Gathered})
		}
	}
	if o := j.Order; o != nil {
		p.Ordered, p.OrderedAt = make([]int, len(t.Config.Classes)), o.At
		if k := t.Class(o.Class); k >= 0 {
			p.Ordered[k] = o.Slots
		}
	}
	n.progress = p
	return n
}

func (l *leader) endingOf(b *book.Book, j *book.Job) *ending {
	total, _, done := j.Count()
	e := &ending{outcome: j.Outcome, ended: j.Ended, total: total, done: done, left: j.Held - j.Paid, ordered: j.Order != nil, fixed: j.Fixed}
	e.cost, e.slotTime = b.Used(j, j.Ended)
	return e
}

func newsOf(i uint32, node *book.Node) nodeNews {
	n := nodeNews{node: i, name: node.Name}
	if !node.Up {
		return n
	}
	n.slots = node.Slots
	if node.Drain != 0 { // what it has left is all it is good for
		n.slots = slices.Clone(node.Slots)
		for k := range n.slots {
			n.slots[k].Slots = min(n.slots[k].Slots, node.Used[k])
		}
	}
	for _, s := range n.slots {
		n.idle = append(n.idle, node.Idle(s.Class))
	}
	return n
}
