// Package boottime is a clock that goes on while the machine sleeps and that
// nobody sets, with timers that count by it. The timers of package time stand
// still meanwhile: a lease that they watch would be over at the leader, and its
// tasks would run on after the machine wakes.
package boottime
