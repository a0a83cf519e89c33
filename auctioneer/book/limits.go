package book

import "github.com/candor-grid/candor/messages"

// These are the limits of a book. They must be the same on every replica, because the results of commands depend on
// them.
const (
	MaxActive   = 2_000_000 // jobs that have not ended
	RetainEnded = 20_000    // ended jobs that are remembered, with their keys
	RetainWhole = 1_000     // ended jobs of this site whose records stay in the book
	MaxNodes    = 100_000
	// A stage may set how often a task is tried. Otherwise, these defaults apply: a task fails with its first failed
	// attempt, or when it could not be started for the third time.
	defaultAttempts, defaultStarts = 1, 3
)

// These variables have the values of RetainEnded and RetainWhole. Tests set them to smaller values.
var retainEnded, retainWhole = RetainEnded, RetainWhole

// These are the bounds on the number of jobs that cross between sites.
const (
	MaxRemoteJobs = 100_000 // remote jobs that have not ended
	MaxVisits     = 250_000 // jobs of other sites in memory; the rest of MaxActive is for this site's jobs
)

type clock struct{ now messages.Time }
