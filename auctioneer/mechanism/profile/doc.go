// Package profile keeps the number of free nodes of a machine at each future time, and finds the earliest window for a
// job.
//
// # Model
//
// The number of free nodes is a step function of time. A job takes n nodes during [start, start+length), so another job
// may begin at the instant at which it ends. Soonest(t, length, n) is the smallest start ≥ t such that n nodes are free
// during all of [start, start+length). The start is t, or a time at which nodes become free.
//
// # Shapes and units
//
// Times are float64 in any unit, from −∞ to +∞. A window ends at the rounded sum of its start and length, both in
// searches and in changes, so a window that was found free is free. Integers up to 2^53 (285 years in microseconds) are
// exact. If a length is too small to change the rounded sum, the job takes nothing. There are at most 2^31−1 nodes.
//
// # Guarantees
//
// Answers are exact. A profile allocates memory only when it becomes larger than ever before. The cost of Reset does
// not depend on its size, and Copy is a single copy of memory.
//
// # Errors
//
// There are none. An empty interval changes nothing, and a window that does not exist is at +Inf. Times in searches
// must not be NaN, and must not be before a forgotten time.
//
// # Cost
//
// With s breakpoints, Insert and Free cost O(log s), amortised: breakpoints at which nothing changes any more are
// removed many at a time. Soonest costs O(log s), and O(log s) for each gap that is wide enough but too short. A gap
// that was too small once is skipped for all jobs that are at least as wide and as long (up to rounding), until nodes
// are given back.
//
// # Source
//
// Windows are as in Mutz, chapters 6 and 7, and in backfilling. The tree is a B-tree. Each entry has the least and the
// most free nodes of its child. An addition to a whole child is stored at the child's entry.
package profile
