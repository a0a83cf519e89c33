// Package profile keeps how many nodes of a machine are free at each time to
// come, and finds the soonest window for a job: schedules are drawn up with it
// again and again.
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
// sum of its start and length, in questions and changes alike, so that what was
// found free is free. Integers up to 2^53 (microseconds of 285 years) are exact.
// A length that is lost in that sum takes nothing. Nodes are up to 2^31−1.
//
// # Guarantees
//
// Answers are exact. Nothing is allocated once the profile has been as large
// as it gets; Reset costs the same however large it was, and Copy is one copy of
// memory.
//
// # Errors
//
// None: what is not an interval changes nothing, and a window that does not
// exist is at +Inf. Times given to a question must not be NaN, nor lie before
// what was forgotten.
//
// # Cost
//
// With s breakpoints, Insert, Remove and Free cost O(log s), amortised over the
// removals, after which breakpoints at which nothing changes any more are dropped
// in bulk. Soonest costs O(log s) and as much again for each gap it passes over
// that is wide enough but too short; what has been passed over once is not looked
// at again for jobs as wide and long, to within half an octave, until nodes are
// given back.
//
// # Source
//
// Windows as in Mutz, chapters 6 and 7, and in backfilling. The tree is a B-tree
// with the least and most free nodes of each child, and additions to a whole child
// left at its entry.
package profile
