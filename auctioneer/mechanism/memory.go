package mechanism

import "github.com/candor-grid/candor/messages"

// Remembering is a Mechanism that goes by more than the view: by what it saw
// before. Its memory is made of notes, which the auctioneer keeps with what was
// decided and hands to the mechanism that takes over; with them, that one decides
// and prices as this one would have.
type Remembering interface {
	Mechanism
	// Notes are what the decisions since the last call of Saved changed in its
	// memory, at most limit of them, by ascending job. Whole: all that was kept
	// before is forgotten. Without a decision there are none. The same call gives
	// the same notes until Saved.
	Notes(limit int) (notes []Note, whole bool)
	// Saved says that what Notes returned last is safe; more says that there are
	// others, to be asked for at once.
	Saved() (more bool)
	// Recall takes over the notes that were kept, before anything else is asked.
	// Notes that it cannot read, as of other parameters, it ignores as a whole. The
	// last decisions before may not have been kept: jobs are all that compete or are
	// to be settled, and those that were there with one of these, ascending, so that
	// it can take from past what no note says.
	Recall(notes []Note, jobs []messages.JobID, past func(messages.JobID) Past)
}

// Note is what is remembered of a job, or with Job 0 of the market.
type Note struct {
	Job     messages.JobID
	Numbers []int64 // their meaning is the mechanism's
}

// Past is what became of a job.
type Past struct {
	Bid   *Bid // nil: the job is forgotten
	Ended bool
	// Of a job that has ended: when, how, and the slot time that it had.
	At        messages.Time
	Completed bool
	Received  messages.Duration
}
