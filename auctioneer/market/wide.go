package market

import (
	"cmp"
	"slices"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
)

// Widest looks at all jobs of a claim. It returns the number of slots of the widest single task of these jobs, at least
// 1.
func (m *Market) Widest(c *book.Claim) int {
	width := 1
	for _, id := range c.Jobs {
		if e := m.number.get(id); e != nil {
			width = max(width, e.job.Alone)
		}
	}
	return width
}

// ordered reports whether a node may claim a task of a job. If the market directs claims, an allocation may be claimed
// only after a decision has given it the slots. The market checks this, and not the book: the book sees the number of
// slots in a claim, but the allocation may use more.
func (m *Market) ordered(b *book.Book, id messages.JobID, k int) bool {
	e, j := m.number.get(id), b.Job(id)
	if !m.manner.Directs || e == nil || j == nil || !e.job.Gang() {
		return true
	}
	left := m.most(id, k) - j.SlotsOf(m.classes[k])
	return slices.ContainsFunc(j.Spec.Stages, func(s job.Stage) bool { return s.Class == m.classes[k] && s.Slots() <= left })
}

// Brief reports whether the tasks of a claim's first job are known to end within [book.GatherFor]. This is known from
// their time limits, or from the tasks of the job that have ended.
func Brief(b *book.Book, c *book.Claim) bool {
	if len(c.Jobs) == 0 || b.Job(c.Jobs[0]) == nil {
		return true
	}
	j := b.Job(c.Jobs[0])
	for i := range j.Stages {
		of, s := &j.Spec.Stages[i], &j.Stages[i]
		limited := of.TimeLimit > 0 && of.TimeLimit <= book.GatherFor
		seen := s.Done > 0 && s.SlotTime <= book.GatherFor*messages.Duration(s.Done*of.Slots())
		if of.Class == c.Class && !limited && !seen {
			return false
		}
	}
	return true
}

// Fresh reports whether no task of the first job of a claim has started yet.
func Fresh(b *book.Book, c *book.Claim) bool {
	return len(c.Jobs) > 0 && b.Job(c.Jobs[0]) != nil && b.Job(c.Jobs[0]).Started == 0
}

// ReservesSlots reports whether the market orders the start of each task. From the order until the start, the market
// keeps slots free for the task, perhaps on several nodes.
func (m *Market) ReservesSlots() bool { return m.manner.Directs }

// HasRoomSoon reports whether a node should gather slots for a task. This is so if the node is expected to have `width`
// free slots within [book.GatherFor], or if nothing is known about this. The argument `ended` has tasks whose slots are
// not free in the book yet.
func HasRoomSoon(b *book.Book, now messages.Time, n *book.Node, class messages.Name, width int, ended []agentmsg.Finished) bool {
	in, known := roomIn(b, now, n, class, width, ended)
	return !known || in <= book.GatherFor
}

// roomIn returns how long after the time `at` a node is expected to have `width` slots free. `known` is false if the
// node's running tasks together do not have so many slots.
//
// A task that has already run for a time x is expected to run for the time x again, but not beyond its time limit. The
// reason is that run times differ by orders of magnitude: a task that has run for hours rarely ends within minutes.
// Slots of tasks that started after the time `at` count as free. The cost is O(n log n) for n claims.
func roomIn(b *book.Book, at messages.Time, n *book.Node, class messages.Name, width int, ended []agentmsg.Finished) (in messages.Duration, known bool) {
	type end struct {
		in    messages.Duration
		slots int
	}
	var ends []end
	for r, h := range n.Claims {
		if h.Class == class && (h.Halt == book.Goes || h.Halt == book.Gathers) {
			e := end{slots: max(h.Width, 1)}
			over := slices.ContainsFunc(ended, func(f agentmsg.Finished) bool { return f.Attempt == messages.Attempt{Task: r, Number: h.Attempt} })
			if j := b.Job(r.Job); j != nil && j.Active() && !h.Leaving && !over {
				e.in = max(at.Sub(j.Stages[r.Stage].Tasks[r.Index].Claimed), 0)
				if limit := j.Spec.Stages[r.Stage].TimeLimit; limit > 0 {
					e.in = min(e.in, limit-e.in)
				}
			}
			ends = append(ends, e)
		}
	}
	slices.SortFunc(ends, func(x, y end) int { return cmp.Compare(x.in, y.in) })
	lacks := width - n.Free(class)
	for i := 0; lacks > 0 && i < len(ends); i++ {
		lacks, in = lacks-ends[i].slots, ends[i].in
	}
	return in, lacks <= 0
}

// ending is how long a task may take to end after its time limit.
const ending = messages.Duration(30 * time.Second)

// A node may gather slots for a wide task. Lent returns for how long other tasks may use these slots: until the node is
// expected to have gathered enough. It is 0 if the node gathers no slots of the class, or will soon stop gathering
// them. It is negative if other tasks may not use the gathered slots.
//
// The length is computed from the run times that were expected when the gathering began. So it does not grow while
// short tasks use the slots.
func Lent(b *book.Book, now messages.Time, n *book.Node, class messages.Name) messages.Duration {
	i := slices.IndexFunc(n.Gatherings, func(g book.Gathering) bool { return g.Class == class })
	if i < 0 {
		return 0
	}
	g := &n.Gatherings[i]
	if j := b.Job(g.Job); j == nil || !j.Gathers(int(g.Stage)) {
		return 0
	}
	in, known := roomIn(b, g.Since, n, class, g.Width, nil)
	if left := g.Since.Add(min(in, book.GatherFor)).Sub(now) - ending; known && left > 0 {
		return left
	}
	return -1
}

func endsWithin(b *book.Book, id messages.JobID, class messages.Name, limit messages.Duration) bool {
	j := b.Job(id)
	return j != nil && slices.ContainsFunc(j.Spec.Stages, func(s job.Stage) bool {
		return s.Class == class && s.TimeLimit > 0 && s.TimeLimit <= limit
	})
}
