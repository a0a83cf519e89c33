package desk

import (
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/messages"
)

// settlements computes what ended jobs owe, and proposes each amount until the book has it. It computes an amount only
// once, because a job's shares are removed when they are read.
type settlements struct {
	*core
	dues    market.Dues
	pending map[messages.JobID]bool // jobs whose settlement is computed, or waits for its time
	again   []messages.JobID        // jobs whose settlement must be computed again
	waiting []unsettled
}

// unsettled is a settlement that is not committed yet, with the time of the next proposal.
type unsettled struct {
	settle *book.Settle
	anew   bool // the book refused the settlement: compute it again
	fails  int
	at     messages.Duration
}

// withAgain adds to a list of jobs the jobs whose settlement must begin again. The given list must be in ascending
// order, and the result is in ascending order too.
func (s *settlements) withAgain(jobs []messages.JobID) []messages.JobID {
	if len(s.again) == 0 {
		return jobs
	}
	jobs = append(jobs, s.again...)
	s.again = nil
	slices.Sort(jobs)
	return slices.Compact(jobs)
}

// begin settles an ended job. It returns false, and does nothing, if the settlement of this job has already begun.
func (s *settlements) begin(b *book.Book, j *book.Job, m *traded) bool {
	if s.pending[j.ID] {
		return false
	}
	s.pending[j.ID] = true
	s.ended()
	if m == nil {
		s.commit(unsettled{settle: &book.Settle{Job: j.ID, Reason: "its market is closed"}})
	} else if settle := s.dues.Settle(s.now.Wall, m.Settlement(s.now.Wall, b, j)); settle != nil {
		s.commit(unsettled{settle: settle})
	}
	return true
}

// step proposes the settlement of each ended job whose price is known. It proposes again the settlements that were not
// committed.
func (s *settlements) step() {
	for _, settle := range s.dues.Due(s.now.Wall) {
		s.commit(unsettled{settle: settle})
	}
	s.wakeAt(s.dues.Next())
	waiting := s.waiting
	s.waiting = nil
	for _, u := range waiting {
		switch {
		case u.at > s.now.Mono:
			s.waiting = append(s.waiting, u)
			s.wakeIn(u.at - s.now.Mono)
		case u.anew:
			delete(s.pending, u.settle.Job)
			s.again = append(s.again, u.settle.Job)
			s.wakeIn(0)
		default:
			s.commit(u)
		}
	}
}

func (s *settlements) commit(u unsettled) {
	s.proposeWithin(s.patience(), &book.Command{Settle: u.settle}, func(_ any, err error) {
		if err == nil {
			return
		}
		u.fails++
		u.anew, u.at = refused(err), s.retryAt(u.fails)
		s.waiting = append(s.waiting, u)
		s.tell(Unsettled{u.settle.Job, err})
	})
}
