// Package profile keeps the number of free nodes of a machine at each future time, and finds the earliest window for
// a job. Schedulers use it to make plans.
//
// # Model
//
// The number of free nodes is a step function of time. A job takes n nodes
// during [start, start+length), so that another may begin at the instant it
// ends. Soonest(t, length, n) is the smallest start ≥ t such that n nodes are
// free during all of [start, start+length); that is t itself or a time at which
// nodes come free.
//
// # Shapes and units
//
// Times are doubles in any unit, from −∞ to +∞; a window ends at the rounded
// sum of its start and length, both in searches and in changes, so a window that was found free is free. Integers up
// to 2^53 (285 years in microseconds) are exact. A length that vanishes in the rounded sum takes nothing. There are at
// most 2^31−1 nodes.
//
// # Guarantees
//
// Answers are exact. A profile allocates memory only when it becomes larger than ever before. The cost of Reset does
// not depend on its size, and Copy is a single copy of memory.
//
// # Errors
//
// None: an empty interval changes nothing, and a window that does not exist is at +Inf. Times in searches must not be
// NaN, nor lie before a forgotten time.
//
// # Cost
//
// With s breakpoints, Insert, Remove and Free cost O(log s), amortised: breakpoints at which nothing changes any more are
// removed in bulk. Soonest costs O(log s), and as much again for each gap that is wide enough but too short. Gaps that
// were too small once are skipped for jobs that are as wide and long, to within half an octave, until nodes are given
// back.
//
// # Source
//
// Windows as in Mutz, chapters 6 and 7, and in backfilling. The tree is a B-tree
// with the least and most free nodes of each child, and additions to a whole child
// left at its entry.
package profile
