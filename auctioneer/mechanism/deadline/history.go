package deadline

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// history is what a live market remembers to price its jobs: every bid since
// there was last nobody with time left, and how many slots there were in each unit.
type history struct {
	first   int // unit of slots[0]
	slots   []int
	tasks   []Task
	ids     []messages.JobID // by task
	gone    []int            // by task: the unit by which it had left; 0: it is there
	met     []bool           // by task: in some unit of its time not all that competed had slots, or may not
	ranked  int              // tasks that were there for some decision; the rest are known from the book alone
	last    int              // unit: the last deadline of them
	index   map[messages.JobID]int
	failed  map[messages.JobID]bool // jobs that ended without being completed
	served  map[messages.JobID]bool // jobs that ended and were
	outcome *Outcome                // of the tasks as they stand; nil: to be worked out
	row     []int                   // by task: its place in the outcome
}

func newHistory() history {
	return history{index: map[messages.JobID]int{}, failed: map[messages.JobID]bool{}, served: map[messages.JobID]bool{}}
}

// linger is for how many units after the last deadline what is known is kept, to
// price what is settled late.
const linger = 8

// knows counts the jobs that are remembered.
func (h *history) knows(jobs []*mechanism.Job) (n int) {
	for _, job := range jobs {
		if _, known := h.index[job.Job]; known {
			n++
		}
	}
	return n
}

// restart forgets all but how many slots there were since the jobs of the view came.
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

// record takes in the bids of a view and the slots of a unit.
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

// skipped accounts for the units before a given one that were not decided, or of
// which the decision is lost with the leader that made it: tasks that were there
// then met each other if they were more than the slots.
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
	if len(there) > 1 && wanted > slots { // one alone meets nobody
		for _, i := range there {
			h.met[i] = true
		}
	}
}

// note keeps the slots of a unit. How many there were in units that were skipped nobody
// knows: they count as having had as many as the unit before them or the one after,
// whichever had more, so that no price is too high for what a lost leader knew.
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

// lastSlots is how many slots there were in the last unit that was decided; 0: none was.
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

// critical is the smallest value with which a job would have been completed,
// in credits, given all others; at most its own.
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

// replay runs the mechanism on what is remembered, which are some slots at least. The tasks are in the order of
// their jobs' numbers, which is how ties within an arrival are broken.
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
	for range h.first - first { // no slots are known of from before
		p.Capacities = append(p.Capacities, h.slots[0])
	}
	p.Capacities = append(p.Capacities, h.slots[min(max(0, first-h.first), len(h.slots)-1):]...)
	o, err := Run(p)
	if err != nil {
		return nil
	}
	return o
}

// left notes that a job was gone by a unit, and takes it to have been completed
// after so many units of work, unless withdrawn says otherwise, before or after.
// One that never had any was withdrawn, or could no longer make its deadline; the
// latter is kept as if it had stayed: had another asked for less, it might have
// made it. What is complete for prices is no longer hopeless.
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

// withdrawn notes that a job that has ended was not completed.
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

// unmet says whether nobody that competed in the time of a job was ever without
// a slot. Then any value would have been enough, whatever comes later.
func (h *history) unmet(id messages.JobID) bool {
	i, known := h.index[id]
	return known && !h.met[i]
}
