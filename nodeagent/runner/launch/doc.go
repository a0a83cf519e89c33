// Package launch starts one process of a task, and tells when the process has ended. The process is started by a
// confined thread. It runs as the task's user, in the cell and the place of the task, with the limits and priorities
// that every task gets.
//
// A [Launch] is one start. A [Forge] has the threads on which starts are made, [Ends] waits until processes end, and
// [Forks] knows which child processes are being started and which are running.
//
// The package does not deal with tasks as a whole, with the files of jobs, or with streams.
package launch
