// Package boottime has a clock that goes on while the machine sleeps and that nobody can set. It also has timers that
// use this clock. Timers of package time stop while the machine sleeps. With such timers, tasks would go on after a
// sleep although the leader has ended their lease meanwhile.
package boottime
