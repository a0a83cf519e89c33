package desk

import "github.com/candor-grid/candor/messages"

// A job is shut if licences or bounds allowed none of its tasks when it was last checked. When an owner's use of
// licences or slots changes, shutAtOnce of its shut jobs compete again.
const shutAtOnce = 64

// owned has those jobs of one owner that compete for licences, or for a limited number of running tasks. Example: an
// account runs 8 tasks, its limit, and 10,000 more jobs wait. If all of them competed for each free slot, each end of a
// task would cost the leader 0.2 s. So only the first shutAtOnce compete, in turns: a job that does not fit goes to the
// back.
type owned struct {
	open   map[messages.JobID]bool // jobs whose tasks could be claimed when they were last checked
	shut   []messages.JobID        // the other jobs, in the order of their turns
	queued map[messages.JobID]bool // the jobs in shut
}

// set stores whether tasks of a job could be claimed when the job was last checked.
func (o *owned) set(id messages.JobID, open bool) {
	if open {
		o.open[id] = true
		return
	}
	delete(o.open, id)
	if !o.queued[id] {
		o.shut, o.queued[id] = append(o.shut, id), true
	}
}

// o.open has the jobs whose tasks could be claimed when they were last checked, and o.shut has the others. look calls
// `add` for all jobs in o.open, and for the first shutAtOnce jobs in o.shut. It moves these jobs of o.shut to the end
// of the list, so that others come next time. Jobs that are missing in `limited` do not compete any more, and look
// drops them.
func (o *owned) look(limited map[messages.JobID]int, add func(messages.JobID)) {
	for id := range o.open {
		if _, is := limited[id]; is {
			add(id)
		} else {
			delete(o.open, id)
		}
	}
	for range min(len(o.shut), shutAtOnce) {
		id := o.shut[0]
		o.shut = o.shut[1:]
		if _, is := limited[id]; !is || o.open[id] {
			delete(o.queued, id)
			continue
		}
		o.shut = append(o.shut, id)
		add(id)
	}
}
