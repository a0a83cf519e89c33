// Package launch starts one process of a task, and tells when the process has ended. A confined thread starts the
// process, as the task's user, with the limits and priorities that every task gets, and in the cell and the place of
// the task.
//
// A [Launch] is one start. A [Forge] has the threads on which starts are made, [Ends] waits for the ends, and [Forks]
// knows which children are being started or run.
//
// The package does not deal with tasks as a whole, with the files of jobs, or with streams.
package launch
