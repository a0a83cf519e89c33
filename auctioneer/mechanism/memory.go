package mechanism

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// Remembering is a Mechanism whose decisions depend on the view and on notes about earlier views. The auctioneer saves
// the notes with the decisions. It gives the notes to the mechanism of a new leader. This mechanism must then decide
// and price in the same way as the mechanism of the old leader.
type Remembering interface {
	Mechanism
	// Notes returns what the decisions have changed since the last call of Saved. It returns at most as many notes as
	// `limit` says, in ascending order of jobs. If `whole` is true, the notes replace all earlier notes. If Notes is
	// called again before Saved, it returns the same notes.
	Notes(limit int) (notes []Note, whole bool)
	// Saved tells the mechanism that its last notes have been saved in the job book. It returns true if the mechanism
	// has further notes, which the caller must fetch at once.
	Saved() (more bool)
	// Recall restores what the mechanism remembers from the saved notes. It is called before any other method. It
	// ignores notes that were made with other parameters.
	//
	// The notes of the last decisions may be lost. So Recall also gets jobs from which it can compute these notes
	// again. The argument `jobs` lists, in ascending order, the jobs that compete or must be settled, and all jobs that
	// were present at the same time as one of them. For each job of this list, the function `past` returns the bid, and
	// the end if the job has ended.
	Recall(notes []Note, jobs []messages.JobID, past func(messages.JobID) Past)
}

// Note is a part of what a mechanism remembers. It is about one job, or about the market if Job is 0.
type Note struct {
	Job     messages.JobID
	Numbers []int64 // only the mechanism knows what they mean
}

// Past is the bid of a job, and how the job ended.
type Past struct {
	Bid   *Bid // nil if the job is forgotten
	Ended bool
	// At, State and Received are set only for a job that has ended. Received is the slot time that it had.
	At       messages.Time
	State    job.State
	Received messages.Duration
	// Completed is the completion time from which the job's price is computed, as in [End].
	Completed messages.Time
}
