package mechanism

import "github.com/candor-grid/candor/messages"

// Remembering is a Mechanism whose decisions depend on the view and on a memory of earlier views.
// The memory consists of notes. The auctioneer keeps the notes with the decisions, and gives them
// to the mechanism of a new leader, which then decides and prices as the old one would have.
type Remembering interface {
	Mechanism
	// Notes returns what the decisions since the last call of Saved changed in the memory: at
	// most limit notes, by ascending job. whole means that earlier notes are void. Without a
	// decision there are no notes. Until Saved, the same call gives the same notes.
	Notes(limit int) (notes []Note, whole bool)
	// Saved tells the mechanism that the notes returned last are in the book. more reports
	// whether there are further notes; ask for them at once.
	Saved() (more bool)
	// Recall restores the memory from the saved notes, before any other call. If the notes
	// were made with other parameters and cannot be read, all of them are ignored.
	//
	// The notes of the last decisions may be lost. To replace them, jobs lists in ascending
	// order all jobs that compete or must be settled, and all jobs that were present together
	// with one of these. past returns what became of such a job.
	Recall(notes []Note, jobs []messages.JobID, past func(messages.JobID) Past)
}

// Note is what is remembered about a job, or with Job 0 about the market.
type Note struct {
	Job     messages.JobID
	Numbers []int64 // the mechanism decides what they mean
}

// Past is what became of a job.
type Past struct {
	Bid   *Bid // nil: the job is forgotten
	Ended bool
	// For a job that has ended: when, how, and the slot time that it had.
	At       messages.Time
	State    messages.State
	Received messages.Duration
	// Completed is as in [End].
	Completed messages.Time
}
