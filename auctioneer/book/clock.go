package book

import "github.com/candor-grid/candor/messages"

// clock is the latest time of all commands.
type clock struct{ now messages.Time }

// Now is the latest time of any command.
func (c *clock) Now() messages.Time { return c.now }
