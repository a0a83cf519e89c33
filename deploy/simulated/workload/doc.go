// Package workload makes the jobs of a study from a log in the Standard Workload Format. It decides which records
// count, when they are submitted, and how many slots they need.
//
// # What a record becomes
//
// A record whose submission, run time or number of processors is unknown (−1) cannot be run. It is left out and
// counted. A record is wrong if it has a time before the log's beginning, a width or a length beyond the limits, or a
// width larger than the machine. A wrong record is an error that names its line. With SkipBad it is left out and
// counted instead. A record with a run time of 0 becomes a job that ends as it starts.
//
// There are three ways to treat a parallel job. It is kept as a gang, whose processors are held together from start to
// end. Or it is split into as many serial tasks as it has processors: each task runs when it gets a slot, and the job
// ends with its last task. Or it is left out.
//
// Jobs are sorted by submission, ties by their order in the file. Users and groups are numbered in the order in which
// they first occur.
//
// # Shapes and units
//
// Times are in seconds from the log's beginning. If Load is X ≠ 1, the times between submissions are divided by X, and
// rounded to the millisecond. Lengths stay unchanged, so X times as much work arrives in a unit of time.
//
// # Cost
//
// O(n log n) time, and about a hundred bytes for each job.
package workload
