// Package workload makes the jobs of a study from a log in the Standard
// Workload Format: which records count, when they are submitted, and how many
// slots they need.
//
// # What a record becomes
//
// A record whose submission, run time or number of processors is unknown (-1)
// can be run by nobody: it is left out and counted. One that contradicts
// itself (a time before the log's beginning, a width or a length beyond the
// limits, wider than the machine) is an error that names its line, or with
// SkipBad left out and counted too. Nothing is left out silently: Skipped says
// how many and why. A run time of 0 is a job that ends as it starts.
//
// Parallel jobs are kept as gangs, whose processors are held together from
// start to end; or split into as many serial tasks, which run whenever they get
// a slot, the job being over with the last; or left out.
//
// Jobs are sorted by submission, ties by their order in the file. Users and
// groups are numbered in the order in which they first occur.
//
// # Shapes and units
//
// Times are in seconds from the log's beginning. Load X ≠ 1 divides the times
// between submissions by X, rounded to the millisecond, and leaves lengths as
// they are, so that X times the work comes in a unit of time.
//
// # Cost
//
// O(n log n) time, about a hundred bytes a job.
package workload
