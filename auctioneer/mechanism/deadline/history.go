package deadline

import (
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
	gone    []int // by task: the unit by which it had left; 0: it is there
	last    int   // unit: the last deadline of them
	index   map[messages.JobID]int
	outcome *Outcome // of the tasks as they stand; nil: to be worked out
}

// record takes in the bids of a view and the slots of a unit.
func (h *history) record(m *Mechanism, view *mechanism.View, unit int) {
	if len(view.Jobs) == 0 && unit > h.last || len(h.tasks) >= m.config.History+len(view.Jobs) {
		*h = history{index: map[messages.JobID]int{}}
	}
	h.outcome = nil
	h.note(unit, m.slots)
	for _, job := range view.Jobs {
		if _, known := h.index[job.Job]; !known {
			h.add(job.Job, m.seats[job.Job].task)
		}
	}
}

// note keeps the slots of a unit; units that were skipped had as many as the
// one before them.
func (h *history) note(unit, slots int) {
	if len(h.slots) == 0 {
		h.first = unit
	}
	for k := len(h.slots); k <= min(unit-h.first, MostUnits); k++ {
		h.slots = append(h.slots, slots)
		if k > 0 && k < unit-h.first {
			h.slots[k] = h.slots[k-1]
		}
	}
}

// add keeps the tasks in the order of their jobs' numbers within an arrival,
// which is how ties are broken.
func (h *history) add(id messages.JobID, t Task) {
	h.index[id] = len(h.tasks)
	h.tasks, h.gone = append(h.tasks, t), append(h.gone, 0)
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
	return h.outcome.threshold(i)
}

// replay runs the mechanism on what is remembered.
func (h *history) replay(m *Mechanism) *Outcome {
	p := &Problem{Lambda: *m.config.Lambda, Rule: Monotone, Scale: m.config.Scale, Tasks: slices.Clone(h.tasks)}
	first, _ := p.span()
	for range h.first - first { // no slots are known of from before
		p.Capacities = append(p.Capacities, h.slots[0])
	}
	p.Capacities = append(p.Capacities, h.slots[max(0, first-h.first):]...)
	o, err := Run(p)
	if err != nil {
		return nil
	}
	return o
}

// left notes that a job was gone by a unit, and takes it to have been completed
// after so many units of work, until withdrawn says otherwise. One that never
// had any was withdrawn, or could no longer make its deadline; the latter is
// kept as if it had stayed: had another asked for less, it might have made it.
func (h *history) left(id messages.JobID, unit, work int, hopeless bool) {
	i, known := h.index[id]
	if !known || h.gone[i] != 0 {
		return
	}
	h.gone[i] = unit
	switch {
	case hopeless && work < h.tasks[i].Length:
	case work > 0:
		h.tasks[i].Work = min(work, h.tasks[i].Length)
	default:
		h.tasks[i].Until = unit
	}
	h.outcome = nil
}

// withdrawn notes that a job that has left was not completed.
func (h *history) withdrawn(id messages.JobID) {
	if i, known := h.index[id]; known && h.tasks[i].Work != 0 {
		h.tasks[i].Work, h.tasks[i].Until, h.outcome = 0, h.gone[i], nil
	}
}
