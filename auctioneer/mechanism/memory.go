package mechanism

import "github.com/candor-grid/candor/messages"

// Remembering is a Mechanism whose decisions depend on more than the view: on a
// memory of what it saw before. The memory is made of notes, which the auctioneer
// keeps with the decisions and hands to the mechanism that takes over; with the
// notes, the new mechanism decides and prices as the old one would have.
type Remembering interface {
	Mechanism
	// Notes are what the decisions since the last call of Saved changed in the
	// memory: at most limit notes, by ascending job. Whole: earlier notes are void.
	// Without a decision there are no notes. The same call gives the same notes until
	// Saved.
	Notes(limit int) (notes []Note, whole bool)
	// Saved says that the notes returned last are in the book; more says that there
	// are further notes, to be asked for at once.
	Saved() (more bool)
	// Recall takes over the saved notes, before any other call. Notes of other
	// parameters, which the mechanism cannot read, are ignored as a whole. The notes
	// of the last decisions may be lost: jobs are, ascending, all jobs that compete or
	// are to be settled and all that were present together with one of these; past
	// tells of each what no note says.
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
	At       messages.Time
	State    messages.State
	Received messages.Duration
	// Completed is as in End.
	Completed messages.Time
}
