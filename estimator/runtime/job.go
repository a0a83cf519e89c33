package runtime

import (
	"math"

	"github.com/candor-grid/candor/messages"
)

// Job is what is known of a job, or of a stage's task, before it runs.
type Job struct {
	User    string
	Group   string  // what the user calls such jobs; or the queue they go to
	Command string  // what it runs
	Size    int64   // processors, or tasks
	Limit   float64 // the user's own bound on the run time, in seconds; 0: none
}

// Limits of what is taken.
const (
	Largest = 1e12 // seconds
	maxText = 4096 // bytes
)

// Check refuses a job with a field out of range.
func (j *Job) Check() error {
	if !(j.Limit >= 0 && j.Limit <= Largest) {
		return messages.Errorf(messages.Invalid, "limit: must be from 0 to %g seconds, is %g", Largest, j.Limit)
	}
	if len(j.User) > maxText || len(j.Group) > maxText || len(j.Command) > maxText {
		return messages.Errorf(messages.TooLarge, "user, group and command: must have at most %d bytes each", maxText)
	}
	return nil
}

func checkRuntimes(runtimes []float64) error {
	if len(runtimes) == 0 {
		return messages.Errorf(messages.Invalid, "runtimes: there are none; give at least one")
	}
	for i, x := range runtimes {
		if math.IsNaN(x) || x < 0 || x > Largest {
			return messages.Errorf(messages.Invalid, "runtimes[%d]: must be from 0 to %g, is %g", i, Largest, x)
		}
	}
	return nil
}

// key is what the jobs of one context have in common; what they need not is
// zero.
type key struct {
	Level                uint8
	User, Group, Command string
	Size                 int64
	Limit                float64
}

// level is a way of calling jobs similar.
type level struct {
	user, group, command, size, limit bool
	// ratio: run times are remembered as parts of the limit.
	ratio bool
	label string
}

// levels are all of them, the narrowest first.
var levels = [...]level{
	{user: true, group: true, command: true, size: true, limit: true, label: "runs of this command by this user, of this size and time limit"},
	{user: true, group: true, command: true, size: true, label: "runs of this command by this user, of this size"},
	{user: true, command: true, label: "runs of this command by this user"},
	{user: true, group: true, label: "runs of this name by this user"},
	{user: true, limit: true, label: "runs by this user with this time limit"},
	{user: true, size: true, label: "runs by this user of this size"},
	{user: true, label: "runs by this user"},
	{user: true, ratio: true, label: "what this user's runs took of their time limits"},
	{size: true, limit: true, label: "everybody's runs of this size and time limit"},
	{limit: true, label: "everybody's runs with this time limit"},
	{label: "everybody's runs"},
}

// key returns the job's context of a level; false if it has none, as a job
// without a limit has no part of that.
func (l *level) key(i int, j *Job) (key, bool) {
	k := key{Level: uint8(i)}
	if (l.limit || l.ratio) && j.Limit == 0 {
		return k, false
	}
	if l.user {
		k.User = j.User
	}
	if l.group {
		k.Group = j.Group
	}
	if l.command {
		k.Command = j.Command
	}
	if l.size {
		k.Size = j.Size
	}
	if l.limit {
		k.Limit = j.Limit
	}
	return k, true
}
