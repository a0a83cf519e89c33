package book

import "github.com/candor-grid/candor/messages"

// Limits of a book. They are the same on every replica, as they decide what a
// command does.
const (
	MaxActive      = 2_000_000 // jobs that have not ended
	RetainEnded    = 20_000    // ended jobs that are remembered, with their keys
	RetainWhole    = 1_000     // ended jobs of this site whose records stay in the book
	MaxNodes       = 100_000
	DefaultAttempt = 3 // attempts of a task, where its stage does not say
)

// retainEnded is RetainEnded, and retainWhole RetainWhole, but for tests.
var retainEnded, retainWhole = RetainEnded, RetainWhole

// Bounds on jobs that cross between sites.
const (
	MaxRemoteJobs = 100_000 // that other sites run and that have not ended
	MaxVisits     = 250_000 // of other sites that are remembered: the rest is for this site's own
)

// clock is the latest time of all commands.
type clock struct{ now messages.Time }
