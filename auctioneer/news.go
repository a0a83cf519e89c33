package auctioneer

import (
	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/messages"
)

// news is what the book says has changed, copied out under its lock.
type news struct {
	jobs       []jobNews
	nodes      []market.NodeSlots
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
	settle   *market.Ending
	progress market.Progress
	gangs    []market.Gathering
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
	l.travel.note(b, changes.Jobs)
	for id := range changes.Jobs {
		if j := b.Job(id); j != nil {
			n.jobs = append(n.jobs, l.jobNews(b, j))
		}
	}
	for i := range changes.Nodes {
		node := b.Nodes()[i]
		n.nodes = append(n.nodes, market.SlotsOf(i, node))
		told, known := l.told[i]
		fresh := l.reapplied && !known
		if len(node.Stop) > 0 || told != node.Version || fresh {
			l.told[i] = node.Version
			d := directive{node: node.Name, stop: stops(node.Stop), held: node.Halted(), version: node.Version}
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
			n.settle = market.EndingOf(b, j)
		}
		return n
	}
	t := l.market(n.market)
	if t == nil {
		return n
	}
	n.progress = t.ProgressOf(j)
	n.gangs = t.GatheringOf(j)
	return n
}
