package desk

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/heap"
)

// closing has jobs that change at a certain time although no command changes them. The desk must look at each job again
// at the job's time. Some of these jobs have only nodes with maintenance windows, and their tasks can start only until
// this time. Others have budgets that must be checked at this time.
type closing struct {
	at   map[messages.JobID]messages.Time
	heap []closes // some entries may be out of date; the field `at` has the valid times
}

type closes struct {
	at  messages.Time
	job messages.JobID
}

var soonest = heap.Order[closes]{Before: func(a, b closes) bool { return a.at < b.at }}

// set sets the time at which the leader looks at a job again; 0 means never.
func (c *closing) set(id messages.JobID, at messages.Time) {
	switch {
	case at == 0:
		delete(c.at, id)
	case c.at[id] != at:
		c.at[id] = at
		soonest.Push(&c.heap, closes{at, id})
	}
	if len(c.heap) > 1000+2*len(c.at) { // most entries are out of date
		c.heap = nil
		for id, at := range c.at {
			soonest.Push(&c.heap, closes{at, id})
		}
	}
}

// due removes the jobs whose time has come, and returns them.
func (c *closing) due(now messages.Time) (ids []messages.JobID) {
	for len(c.heap) > 0 && c.heap[0].at <= now {
		if e := soonest.Pop(&c.heap); c.at[e.job] == e.at {
			delete(c.at, e.job)
			ids = append(ids, e.job)
		}
	}
	return ids
}

// next returns the earliest time at which the leader may have to look at a job again, or 0 if there is none. The time
// can be out of date: the job may have got another time meanwhile.
func (c *closing) next() messages.Time {
	if len(c.heap) == 0 {
		return 0
	}
	return c.heap[0].at
}
