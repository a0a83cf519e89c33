package desk

import (
	"maps"
	"slices"
	"strings"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// followAtOnce is how many jobs are read before the book may change again. A new leader reads all jobs, maybe a
// million.
const followAtOnce = 4096

// follow updates the markets from the book. It reports whether the book has new effects, and whether its notifications
// have changed.
func (d *Desk) follow() (effects, notices bool) {
	var rest []messages.JobID
	d.book.Changes(func(b *book.Book, touched book.Changes) {
		effects, notices = touched.Effects, touched.Notices
		d.errands.federation.Changed(b, touched.Jobs)
		if b.MarketsVersion() != d.Version {
			d.reconfigure(b)
			touched.Bounds, touched.Nodes = true, nil
			for i := range b.Nodes() {
				touched.Nodes = append(touched.Nodes, uint32(i))
			}
		}
		opened := false
		for _, i := range touched.Nodes {
			opened = d.opens(i, b.Nodes()[i]) || opened
			d.trading.slots.Set(i, b.Nodes()[i])
			d.nodes.changed(b, i, b.Nodes()[i])
			for _, m := range d.trading.markets {
				m.Visit(b, i)
			}
		}
		windows := len(touched.Nodes) > 0 && d.trading.setSlots()
		switch {
		case touched.Bounds || windows:
			touched.Jobs = slices.Collect(b.Listed("").All())
		case touched.Licenses || len(touched.Owners) > 0:
			touched.Jobs = d.withLimited(b, &touched)
		}
		touched.Jobs = with(touched.Jobs, d.closing.due(d.now.Wall))
		if opened {
			touched.Jobs = with(touched.Jobs, slices.Collect(maps.Keys(d.choosy)))
		}
		rest = d.followSome(b, d.settlements.withAgain(touched.Jobs))
	})
	for len(rest) > 0 {
		d.book.Read(func(b *book.Book) { rest = d.followSome(b, rest) })
	}
	d.wakeAt(d.closing.next())
	return effects, notices
}

// followSome updates what the desk knows about the first followAtOnce jobs of a list. It returns the other jobs.
func (d *Desk) followSome(b *book.Book, ids []messages.JobID) (rest []messages.JobID) {
	n := min(len(ids), followAtOnce)
	for _, id := range ids[:n] {
		delete(d.limited, id)
		delete(d.choosy, id)
		if j := b.Glance(id, &d.spare); j != nil {
			d.followJob(b, j)
		}
	}
	return ids[n:]
}

// A job is limited if licences and bounds allow fewer of its tasks to run than it could run. withLimited adds to the
// touched jobs those limited jobs whose allowed number of tasks has changed. If the free licences have changed, it
// checks all limited jobs. Otherwise it checks only the jobs of the accounts and projects whose use has changed.
func (d *Desk) withLimited(b *book.Book, touched *book.Changes) []messages.JobID {
	var more []messages.JobID
	add := func(id messages.JobID) {
		if j := b.Glance(id, &d.spare); j != nil && claimable(b, j) != d.limited[id] {
			more = append(more, id)
		}
	}
	if touched.Licenses {
		for id := range d.limited {
			add(id)
		}
	} else {
		for _, o := range touched.Owners {
			if of := d.owned[o]; of != nil {
				of.look(d.limited, add)
				if len(of.open)+len(of.shut) == 0 {
					delete(d.owned, o)
				}
			}
		}
	}
	return with(touched.Jobs, more)
}

// with returns the jobs of both lists, sorted, without duplicates.
func with(ids, more []messages.JobID) []messages.JobID {
	all := slices.Concat(ids, more)
	slices.Sort(all)
	return slices.Compact(all)
}

// opens reports whether a node has begun to take tasks, has stopped to take tasks, or has registered again. With a new
// registration it may have new labels and slots. After such a change, the desk checks the jobs that name nodes again.
func (d *Desk) opens(i uint32, n *book.Node) bool {
	is := taking{n.Session, n.FreeUntil(d.now.Wall)}
	if !n.Up || n.Drain != 0 || n.Health.Quarantined != 0 {
		is = taking{}
	}
	was := d.takes[i]
	d.takes[i] = is
	return is != was
}

// Shut reports whether, when the desk last read the job, licences or a bound kept all its tasks from being claimed.
func (d *Desk) Shut(id messages.JobID) bool {
	n, limited := d.limited[id]
	return limited && n == 0
}

// claimable returns the number of tasks of a job that could be claimed now.
func claimable(b *book.Book, j *book.Job) (n int) {
	for i := range j.Stages {
		n += b.Claimable(j, i)
	}
	return n
}

// followJob tells a job's market about its progress. If the job has ended, its settlement begins.
func (d *Desk) followJob(b *book.Book, j *book.Job) {
	m := d.trading.market(j.Spec.Market)
	if b.Limited(j) {
		n := claimable(b, j)
		d.limited[j.ID] = n
		for _, o := range j.Owners() {
			if d.owned[o] == nil {
				o.Market, o.Name = strings.Clone(o.Market), strings.Clone(o.Name) // the strings may be in memory that is reused for the next job
				d.owned[o] = &owned{open: map[messages.JobID]bool{}, queued: map[messages.JobID]bool{}}
			}
			d.owned[o].set(j.ID, n > 0)
		}
	}
	if j.Active() && slices.ContainsFunc(j.Spec.Stages, func(s job.Stage) bool { return s.NamesNodes() }) {
		d.choosy[j.ID] = true
	}
	if m != nil {
		d.trading.gangs.Put(m.Market, j)
	}
	if !j.Active() {
		d.closing.set(j.ID, 0)
	}
	settling := j.State == job.Settling && !j.Settled
	if !settling {
		delete(d.settlements.pending, j.ID)
	}
	switch {
	case settling && d.settlements.begin(b, j, m):
	case m == nil:
	case j.Blocked > 0 && m.Job(j.ID) == nil:
	case !j.Active() || j.Away() || j.Blocked > 0: // an active job can get new conditions for its start
		m.Remove(d.now.Wall, j.ID)
	default:
		if m.Plans() && m.Job(j.ID) == nil {
			d.lessons.newcomers = true
		}
		p := m.ProgressOf(b, j, max(d.now.Wall, b.Now()))
		d.closing.set(j.ID, messages.Earlier(p.Closes, d.warnings.look(b, j, &m.Config)))
		m.Put(d.now.Wall, func() *mechanism.Bid { return m.BidOf(j) }, j.ID, p)
		m.Completed(j.ID, func() (messages.Credits, messages.Duration) { return b.Used(j, d.now.Wall) })
	}
}
