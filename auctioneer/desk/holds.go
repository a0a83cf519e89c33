package desk

import (
	"fmt"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
)

// holds keep the bank from freeing the holds of jobs that live: each quarter of
// HoldFor those of jobs that are older than that are extended, the first time as soon
// as the desk begins, as the last leader may have been about to. Where the bank did
// not answer it is asked again soon.
type holds struct {
	*core
	next   messages.Duration
	open   int // requests that are not answered
	failed error
}

func (h *holds) step() {
	switch {
	case h.HoldFor == 0 || h.open > 0:
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
	h.open, h.failed = 1, nil
	for some := range slices.Chunk(list, transfersAtOnce) {
		h.open++
		h.transferEach(some, false, func(results []messages.TransferResult, err error) {
			if err != nil {
				h.failed = err
			}
			for i, r := range results {
				if r.Error != nil {
					h.tell(NotExtended{some[i].Job, r.Error})
				}
			}
			h.answered()
		})
	}
	h.answered()
}

// answered plans the next time once all of this one is answered.
func (h *holds) answered() {
	if h.open--; h.open > 0 {
		return
	}
	const soon = messages.Duration(1e9)
	wait := h.HoldFor / 4
	if h.failed != nil {
		h.tell(Waiting{"the extension of holds", h.failed})
		wait = min(wait, max(wait/16, soon))
	}
	h.next = h.now.Mono + wait
	h.wakeIn(wait)
}

// Extension moves a hold's end to a time, under an identifier of its own.
func Extension(hold string, job messages.JobID, until messages.Time, why string) messages.Transfer {
	return messages.Transfer{
		ID: fmt.Sprintf("%s/until/%d", hold, until), Kind: messages.Extend, Pending: hold, Expires: until, Job: job, Reason: why,
	}
}
