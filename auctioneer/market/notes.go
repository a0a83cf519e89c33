package market

import (
	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// mostNotes bounds the notes of one decision, so that its command stays small.
const mostNotes = 4000

// remember adds to a decision what the mechanism is to remember of it.
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

// Kept says that the last decision is in the book.
func (m *Market) Kept() {
	if mech, ok := m.mech.(mechanism.Remembering); ok && mech.Kept() {
		m.stale = true // the rest of its notes goes with the next decision
	}
}

// Recall lets the mechanism remember what it, or that of an earlier leader, has
// seen.
func (m *Market) Recall(b *book.Book) {
	mech, ok := m.mech.(mechanism.Remembering)
	if !ok {
		return
	}
	var notes []mechanism.Note
	for _, n := range b.Notes(m.Config.Name) {
		notes = append(notes, mechanism.Note{Job: n.Job, Numbers: n.Numbers})
	}
	mech.Recall(notes, func(id messages.JobID) (mechanism.Past, bool) { return past(b, id) })
}

// past is how a job ended; one that is forgotten did so long ago.
func past(b *book.Book, id messages.JobID) (mechanism.Past, bool) {
	j := b.Job(id)
	switch {
	case j == nil:
		return mechanism.Past{}, true
	case j.Active():
		return mechanism.Past{}, false
	}
	return mechanism.Past{At: j.Ended, Completed: j.Outcome == messages.Completed}, true
}
