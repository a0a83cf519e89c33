package desk

import (
	"fmt"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// The bank frees a hold that is not extended in time. holds extends the holds of jobs that have not ended. In every
// quarter of the time HoldFor, it makes a pass over all jobs. In a pass, it extends each hold whose last extension is
// more than a quarter of HoldFor ago. When this replica becomes leader, a pass begins at once, because the last leader
// may have been late. A pass also begins at once when the clock was set ahead. If the bank does not answer, the request
// is soon repeated.
type holds struct {
	*core
	next   messages.Duration
	late   messages.Time // the holds must be extended before this wall time, whatever the monotonic clock says
	busy   bool
	failed error
	last   messages.JobID // the last job that this pass has read
}

// clockEvery is the longest time between two readings of the wall clock. Readings are repeated because somebody may set
// the clock.
const clockEvery = messages.Duration(60e9)

func (h *holds) step() {
	switch {
	case h.HoldFor == 0 || h.busy:
	case h.now.Mono >= h.next, h.now.Wall >= h.late:
		h.extend()
	default:
		h.wakeIn(min(h.next-h.now.Mono, clockEvery))
	}
}

// extend begins to extend the holds of all jobs.
func (h *holds) extend() {
	h.busy, h.failed, h.last = true, nil, 0
	h.extendSome()
}

// extendSome extends some of the holds, and then the next ones, until all are extended. There may be a million holds,
// too many for one request.
func (h *holds) extendSome() {
	some := h.some()
	if len(some) == 0 {
		h.done()
		return
	}
	h.transferEach(some, false, func(results []money.TransferResult, err error) {
		if err != nil {
			h.failed = err
		}
		for i, r := range results {
			if r.Error != nil {
				h.tell(NotExtended{some[i].Job, r.Error})
			}
		}
		h.extendSome()
	})
}

// The method `some` returns the next transfers that extend holds, at most transfersAtOnce. It goes through the jobs by
// number. Each call continues after the job at which the last call stopped. A call also stops at the first job whose
// hold is too new to be extended. Jobs with larger numbers were submitted later, so their holds are too new as well.
func (h *holds) some() (list []money.Transfer) {
	h.book.Read(func(b *book.Book) {
		for h.last = range b.Listed("").Above(h.last) {
			j := b.Job(h.last)
			switch {
			case j == nil:
			case h.now.Wall.Sub(j.Submitted) <= h.HoldFor/4:
				return
			case !j.Settled && j.HoldID() != "":
				list = append(list, Extension(j.HoldID(), j.ID, h.until(), "the job has not ended"))
			}
			if len(list) == transfersAtOnce {
				return
			}
		}
	})
	return list
}

func (h *holds) done() {
	const soon = messages.Duration(1e9)
	wait := h.HoldFor / 4
	if h.failed != nil {
		h.tell(Waiting{"the extension of holds", h.failed})
		wait = min(wait, max(wait/16, soon))
	}
	h.busy, h.next, h.late = false, h.now.Mono+wait, h.now.Wall.Add(h.HoldFor/2)
	h.wakeIn(min(wait, clockEvery))
}

// Extension returns the transfer that moves the end of a hold. For each new end, the transfer has a new identifier.
func Extension(hold string, job messages.JobID, until messages.Time, why string) money.Transfer {
	return money.Transfer{
		ID: fmt.Sprintf("%s/until/%d", hold, until), Kind: money.Extend, Pending: hold, Expires: until, Job: job, Reason: why,
	}
}
