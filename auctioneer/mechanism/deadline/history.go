package deadline

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// history is what a live market remembers to compute payments: the number of slots in each unit of time, and every bid
// since the market was last empty.
type history struct {
	first int // the unit of slots[0]
	slots []int
	tasks []Task
	ids   []messages.JobID // by task: the number of its job
	gone  []int            // by task: the first unit after the task left the market; 0 while it is there
	// by task: whether some competing task had no slot in one of its units; true if this is not known
	met     []bool
	ranked  int // number of tasks that were in a decision; later tasks are known only from the job book
	last    int // the unit of the latest deadline
	index   map[messages.JobID]int
	failed  map[messages.JobID]bool // jobs that ended and were not completed
	served  map[messages.JobID]bool // jobs that ended and were completed
	outcome *Outcome                // outcome of the present tasks; nil means not computed yet
	row     []int                   // by task: its position in the outcome
}

func newHistory() history {
	return history{index: map[messages.JobID]int{}, failed: map[messages.JobID]bool{}, served: map[messages.JobID]bool{}}
}

// linger is the number of units of time for which the history of a job is kept after the job's last deadline. The
// history is needed longer than the job runs, because the job may be settled late.
const linger = 8

// knows returns how many of the given jobs the history has.
func (h *history) knows(jobs []*mechanism.Job) (n int) {
	for _, job := range jobs {
		if _, known := h.index[job.Job]; known {
			n++
		}
	}
	return n
}

// restart forgets the history, except the numbers of slots from the arrival of the view's first job on.
func (h *history) restart(m *Mechanism, view *mechanism.View, unit int) {
	from := unit
	for _, job := range view.Jobs {
		from = min(from, m.seats[job.Job].task.Arrival)
	}
	past := *h
	*h = newHistory()
	if skip := from - past.first; len(past.slots) > 0 {
		skip = min(max(0, skip), len(past.slots)-1)
		h.first, h.slots = past.first+skip, slices.Clone(past.slots[skip:])
	}
	m.forget()
}

func (h *history) record(m *Mechanism, view *mechanism.View, unit int) {
	if unit > h.last+linger && h.knows(view.Jobs) == 0 || len(h.tasks) >= mostHistory+len(view.Jobs) {
		h.restart(m, view, unit)
	}
	h.outcome = nil
	for _, job := range view.Jobs {
		if _, known := h.index[job.Job]; !known {
			h.add(job.Job, m.seats[job.Job].task)
		}
	}
	h.skipped(unit, m.ranking.slots)
	for _, job := range view.Jobs {
		s, i := m.seats[job.Job], h.index[job.Job]
		s.met = s.met || h.met[i]
		h.met[i] = s.met
	}
	h.note(unit, m.ranking.slots)
	h.ranked = len(h.tasks)
}

// skipped adds the units of time before `until` that the history lacks. Either no decision was made in such a unit, or
// its decision was lost when the leader failed. If the tasks of such a unit wanted more slots than there were, skipped
// assumes that all these tasks competed with each other.
func (h *history) skipped(until, slots int) {
	from := until
	if n := len(h.slots); n > 0 {
		from, slots = min(until, h.first+n), min(slots, h.lastSlots())
	}
	for _, t := range h.tasks[h.ranked:] {
		from = min(from, t.Arrival)
	}
	if from >= until {
		return
	}
	var there []int
	wanted := 0
	for i, t := range h.tasks {
		if t.Arrival < until && t.Deadline >= from && (h.gone[i] == 0 || h.gone[i] > from) {
			there, wanted = append(there, i), wanted+t.slots()
		}
	}
	if len(there) > 1 && wanted > slots { // a single task has no competitor
		for _, i := range there {
			h.met[i] = true
		}
	}
}

// note records the number of slots in a unit of time. Some units before this one may have no number yet. For each of
// them, note assumes the larger of the numbers before and after the gap. This number may be too large. But if each task
// has one slot, more slots never mean a higher price, so nobody pays too much.
func (h *history) note(unit, slots int) {
	if len(h.slots) == 0 {
		h.first = unit
	}
	skipped := max(slots, h.lastSlots())
	for k := len(h.slots); k <= min(unit-h.first, MostUnits); k++ {
		if k < unit-h.first {
			h.slots = append(h.slots, skipped)
		} else {
			h.slots = append(h.slots, slots)
		}
	}
}

// lastSlots returns the number of slots in the last decided unit, or 0.
func (h *history) lastSlots() int {
	if len(h.slots) == 0 {
		return 0
	}
	return h.slots[len(h.slots)-1]
}

func (h *history) add(id messages.JobID, t Task) {
	h.index[id] = len(h.tasks)
	h.tasks, h.ids, h.gone, h.met = append(h.tasks, t), append(h.ids, id), append(h.gone, 0), append(h.met, false)
	h.last = max(h.last, t.Deadline)
}

// critical returns the smallest value, in credits, with which a job would have been completed if all other bids stayed
// unchanged. The result is at most the job's own value.
func (h *history) critical(m *Mechanism, id messages.JobID) float64 {
	i, known := h.index[id]
	if !known {
		return 0
	}
	if h.outcome == nil {
		h.outcome = h.replay(m)
	}
	if h.outcome == nil {
		return 0
	}
	return h.outcome.threshold(h.row[i])
}

// replay runs the mechanism on the tasks and slots in the history. The history must have the slots of at least one
// unit. Of tasks with equal arrivals, the task with the lower job number is first.
func (h *history) replay(m *Mechanism) *Outcome {
	p := &Problem{Lambda: *m.config.Lambda, Rule: Monotone, Scale: m.config.Scale, Tasks: make([]Task, len(h.tasks))}
	order := make([]int, len(h.tasks))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(h.ids[a], h.ids[b]) })
	h.row = make([]int, len(order))
	for k, i := range order {
		p.Tasks[k], h.row[i] = h.tasks[i], k
	}
	first, _ := p.span()
	for range h.first - first { // the numbers of slots in these earlier units are not known
		p.Capacities = append(p.Capacities, h.slots[0])
	}
	p.Capacities = append(p.Capacities, h.slots[min(max(0, first-h.first), len(h.slots)-1):]...)
	o, err := Run(p)
	if err != nil {
		return nil
	}
	return o
}

// The method left records that a job left the market before a unit of time, after it had run for the given number of
// units. What the job counts as depends on its run:
//
//   - A job that ran counts as completed, unless the method withdrawn is called for it.
//   - A hopeless job could no longer meet its deadline. It counts as if it had stayed: with fewer competitors it
//     might have met its deadline. A job that the price already counts as complete is not hopeless.
//   - Any other job counts as withdrawn.
func (h *history) left(id messages.JobID, unit, work int, hopeless bool) {
	i, known := h.index[id]
	if !known || h.gone[i] != 0 {
		return
	}
	h.gone[i] = unit
	switch {
	case hopeless && work < h.tasks[i].Length && !h.served[id]:
	case work > 0 && !h.failed[id]:
		h.tasks[i].Work = min(work, h.tasks[i].Length)
	default:
		h.tasks[i].Until = unit
	}
	h.outcome = nil
}

// withdrawn records that a job has ended without being completed.
func (h *history) withdrawn(id messages.JobID) {
	i, known := h.index[id]
	if !known {
		return
	}
	h.failed[id] = true
	if h.tasks[i].Work != 0 {
		h.tasks[i].Work, h.tasks[i].Until, h.outcome = 0, h.gone[i], nil
	}
}

// unmet reports whether a job met no competition: in every unit of its time, all competing jobs had slots. Then any
// value would have been enough for the job. All units of its time are over, so later jobs cannot change this.
func (h *history) unmet(id messages.JobID) bool {
	i, known := h.index[id]
	return known && !h.met[i]
}
