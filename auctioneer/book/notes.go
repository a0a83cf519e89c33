package book

import (
	"cmp"
	"maps"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Limits on what a market's mechanism has the book remember.
const (
	MaxNotes       = 500_000 // of a market; others are let go
	MaxNoteNumbers = 1 << 16
)

// Note is what a market's mechanism remembers of a job, or with Job 0 of the
// market. The book keeps it for the mechanism of the next leader, and knows no
// meaning of it.
type Note struct {
	Job     messages.JobID
	Numbers []int64
}

// noteImage is the notes of a market, by job.
type noteImage struct {
	Market messages.Name
	Notes  []Note
}

// note keeps notes instead of those of the same jobs, or with forget instead of
// all of the market.
func (b *Book) note(market messages.Name, notes []Note, forget bool) {
	kept := b.notes[market]
	if kept == nil || forget {
		kept = map[messages.JobID][]int64{}
	}
	for _, n := range notes {
		if _, known := kept[n.Job]; (known || len(kept) < MaxNotes) && len(n.Numbers) <= MaxNoteNumbers {
			kept[n.Job] = n.Numbers
		}
	}
	b.notes[market] = kept
	if len(kept) == 0 {
		delete(b.notes, market)
	}
}

// Notes are those kept for a market, by ascending job. Their numbers must not be
// changed.
func (b *Book) Notes(market messages.Name) []Note {
	kept := b.notes[market]
	out := make([]Note, 0, len(kept))
	for job, numbers := range kept {
		out = append(out, Note{job, numbers})
	}
	slices.SortFunc(out, func(x, y Note) int { return cmp.Compare(x.Job, y.Job) })
	return out
}

func (b *Book) noteImages() (out []noteImage) {
	for _, market := range slices.Sorted(maps.Keys(b.notes)) {
		out = append(out, noteImage{market, b.Notes(market)})
	}
	return out
}

func (b *Book) renote(images []noteImage) {
	for _, im := range images {
		b.note(im.Market, im.Notes, true)
	}
}
