package runtime

import (
	"math"

	"github.com/candor-grid/candor/messages"
)

// Job describes a job, or a task of a stage, before it runs.
type Job struct {
	User    string
	Group   string  // the user's name for such jobs, or their queue
	Command string  // the program that it runs
	Size    int64   // number of processors, or of tasks
	Limit   float64 // the user's own limit of the run time, in seconds; 0 means no limit
}

// Values above these limits are not accepted.
const (
	Largest = 1e12 // largest time in seconds
	maxText = 4096 // largest length of a text in bytes
)

// Check returns an error if a field is out of range.
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

// A key identifies a set of similar jobs. It has the properties that these jobs have in common. A property is zero if
// the jobs may differ in it.
type key struct {
	Level                uint8
	User, Group, Command string
	Size                 int64
	Limit                float64
}

// level is one definition of "similar jobs".
type level struct {
	user, group, command, size, limit bool
	// If ratio is true, run times are stored as fractions of the limit.
	ratio bool
	label string
}

// levels has all levels. At each level, past runs count as similar to a job if they agree with it in certain
// properties. The first level asks for the most properties, so it has the fewest runs.
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

// A level is one definition of similar jobs, and a key identifies the jobs that are similar to job j at this level. key
// returns false if there is no such key, for example because the level needs a limit that the job lacks.
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
