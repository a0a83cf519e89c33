package market

import (
	"cmp"
	"math"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// mostNotes is the maximum number of notes (stored states of jobs) that one decision may change.
const mostNotes = 4000

// remember puts the mechanism's notes into the decision `d`, so that a later leader has them. If `d` is nil and there
// are notes, it makes a new decision for them.
func (m *Market) remember(d *book.Decide) *book.Decide {
	mech, ok := m.mech.(mechanism.Remembering)
	if !ok {
		return d
	}
	notes, whole := mech.Notes(mostNotes)
	if len(notes) == 0 && !whole {
		return d
	}
	if d == nil {
		d = &book.Decide{Market: m.Config.Name}
	}
	d.Forget = whole
	for _, n := range notes {
		d.Notes = append(d.Notes, book.Note{Job: n.Job, Numbers: n.Numbers})
	}
	return d
}

// Committed is called when the last decision is in the book.
func (m *Market) Committed() {
	if mech, ok := m.mech.(mechanism.Remembering); ok && mech.Saved() {
		m.stale = true // the remaining notes go with the next decision
	}
}

// Recall restores the mechanism's memory from its committed notes, and from the state of the jobs in the book.
func (m *Market) Recall(b *book.Book) {
	mech, ok := m.mech.(mechanism.Remembering)
	if !ok {
		return
	}
	var notes []mechanism.Note
	for _, n := range b.Notes(m.Config.Name) {
		notes = append(notes, mechanism.Note{Job: n.Job, Numbers: n.Numbers})
	}
	mech.Recall(notes, rivals(b, m.Config.Name), func(id messages.JobID) mechanism.Past { return m.past(b, id) })
}

// past returns the outcome of a job. A job that the book forgot counts as ended long ago.
func (m *Market) past(b *book.Book, id messages.JobID) mechanism.Past {
	j := b.Job(id)
	if j == nil {
		return mechanism.Past{Ended: true}
	}
	p := mechanism.Past{Bid: m.BidOf(j), Ended: !j.Active(), At: j.Ended, State: j.Outcome, Completed: j.Completion().At}
	if p.Ended {
		_, p.Received = b.Used(j, j.Ended)
	}
	return p
}

// rivals returns, in ascending order, the jobs that can matter to a market's present decisions. It first takes all jobs
// that compete or wait for their settlement. Then it goes through the settled jobs, the latest end first. It takes a
// settled job if the job ended after at least one of the jobs that it has taken so far was submitted. At the first
// other job, it stops.
func rivals(b *book.Book, market messages.Name) (out []messages.JobID) {
	var settled []*book.Job
	since := messages.Time(math.MaxInt64)
	add := func(j *book.Job) {
		out, since = append(out, j.ID), min(since, j.Submitted)
	}
	for j := range b.Jobs {
		switch {
		case j.Spec.Market != market || j.Blocked > 0:
		case j.Settled:
			settled = append(settled, j)
		default:
			add(j)
		}
	}
	slices.SortFunc(settled, func(x, y *book.Job) int { return cmp.Compare(y.Ended, x.Ended) })
	for _, j := range settled {
		if j.Ended < since {
			break
		}
		add(j)
	}
	slices.Sort(out)
	return out
}
