package desk

import (
	"fmt"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
)

// holds extend the holds of living jobs, so that the bank does not free them. Each
// quarter of HoldFor the holds that are older than this are extended. The first time is
// when the desk begins, because the last leader may have been late. If the bank does
// not answer, it is asked again soon.
type holds struct {
	*core
	next   messages.Duration
	busy   bool
	failed error
}

func (h *holds) step() {
	switch {
	case h.HoldFor == 0 || h.busy:
	case h.now.Mono >= h.next:
		h.extend()
	default:
		h.wakeIn(h.next - h.now.Mono)
	}
}

// extend extends the holds of all jobs.
func (h *holds) extend() {
	var list []messages.Transfer
	h.book.Read(func(b *book.Book) {
		for j := range b.Jobs {
			if hold := j.HoldID(); !j.Settled && hold != "" && h.now.Wall.Sub(j.Submitted) > h.HoldFor/4 {
				list = append(list, Extension(hold, j.ID, h.until(), "the job has not ended"))
			}
		}
	})
	h.busy, h.failed = true, nil
	h.extendAll(list)
}

// extendAll extends some holds after others: the bank has more to do than that.
func (h *holds) extendAll(list []messages.Transfer) {
	if len(list) == 0 {
		h.done()
		return
	}
	some := list[:min(len(list), transfersAtOnce)]
	h.transferEach(some, false, func(results []messages.TransferResult, err error) {
		if err != nil {
			h.failed = err
		}
		for i, r := range results {
			if r.Error != nil {
				h.tell(NotExtended{some[i].Job, r.Error})
			}
		}
		h.extendAll(list[len(some):])
	})
}

// done plans the next time.
func (h *holds) done() {
	const soon = messages.Duration(1e9)
	wait := h.HoldFor / 4
	if h.failed != nil {
		h.tell(Waiting{"the extension of holds", h.failed})
		wait = min(wait, max(wait/16, soon))
	}
	h.busy, h.next = false, h.now.Mono+wait
	h.wakeIn(wait)
}

// Extension moves a hold's end to a time, under an identifier of its own.
func Extension(hold string, job messages.JobID, until messages.Time, why string) messages.Transfer {
	return messages.Transfer{
		ID: fmt.Sprintf("%s/until/%d", hold, until), Kind: messages.Extend, Pending: hold, Expires: until, Job: job, Reason: why,
	}
}
