package book

import "github.com/candor-grid/candor/messages"

// clock is the latest time of all commands.
type clock struct{ now messages.Time }
