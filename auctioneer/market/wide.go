package market

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
)

// Widest returns the number of slots of the widest single task among the jobs of a claim; 1: no job has a task of
// several slots.
func (m *Market) Widest(c *book.Claim) int {
	width := 1
	for _, id := range c.Jobs {
		if e := m.number.get(id); e != nil {
			width = max(width, e.job.Alone)
		}
	}
	return width
}

// Brief reports whether the tasks of the first job of a claim are known to end within [book.GatherFor], by their time
// limits or by the tasks that have ended.
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

// HasRoomSoon reports whether a node can be expected to have free slots for a task of width slots within
// [book.GatherFor], so that it is worth gathering slots for the task. ended are tasks that have ended and whose slots
// are not free in the book yet.
//
// How long a task will still run is not known. It is expected to run for as long again as it has run until now, but not
// beyond its time limit: run times of tasks differ by orders of magnitude, and a task that has run for hours rarely ends
// within minutes. The cost is O(n log n) for a node with n claims.
func HasRoomSoon(b *book.Book, now messages.Time, n *book.Node, class messages.Name, width int, ended []agentmsg.Finished) bool {
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
				e.in = now.Sub(j.Stages[r.Stage].Tasks[r.Index].Claimed)
				if limit := j.Spec.Stages[r.Stage].TimeLimit; limit > 0 {
					e.in = min(e.in, limit-e.in)
				}
			}
			ends = append(ends, e)
		}
	}
	slices.SortFunc(ends, func(x, y end) int { return cmp.Compare(x.in, y.in) })
	lacks := width - n.Free(class)
	for _, e := range ends {
		if lacks -= e.slots; lacks <= 0 {
			return e.in <= book.GatherFor
		}
	}
	return true
}
