// Package boottime is a clock that continues while the machine sleeps and that nobody sets, with
// timers that use it. Timers of package time stop while the machine sleeps: after it wakes, tasks
// would run on although their lease has ended at the leader.
package boottime
