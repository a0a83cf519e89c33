// Package boottime has a clock that goes on while the machine sleeps and that nobody can set, and timers that use this
// clock. Timers of package time stop while the machine sleeps. With them, tasks would go on after a sleep although the
// leader has ended their lease meanwhile.
package boottime
