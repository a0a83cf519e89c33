package book

import "github.com/candor-grid/candor/messages"

// Limits of a book. They must be the same on every replica, because they decide what commands do.
const (
	MaxActive   = 2_000_000 // jobs that have not ended
	RetainEnded = 20_000    // ended jobs that are remembered, with their keys
	RetainWhole = 1_000     // ended jobs of this site whose records stay in the book
	MaxNodes    = 100_000
	// A task whose stage does not say how often it may be tried fails with the first attempt that its program
	// ended, or with the third that could not be started.
	defaultAttempts, defaultStarts = 1, 3
)

// Tests set lower values than RetainEnded and RetainWhole here.
var retainEnded, retainWhole = RetainEnded, RetainWhole

// Bounds on jobs that cross between sites.
const (
	MaxRemoteJobs = 100_000 // remote jobs that have not ended
	MaxVisits     = 250_000 // jobs of other sites in memory; the rest of the room is for this site's jobs
)

// clock is the latest time of all commands.
type clock struct{ now messages.Time }
