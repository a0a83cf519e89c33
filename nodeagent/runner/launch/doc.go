// Package launch starts one process of a task: on a confined thread, as the task's user, with the limits and the rank
// that every task gets, and in the cell and the place of the task. It tells when the process has ended.
//
// A [Launch] is one start. A [Forge] has the threads on which starts are made, [Ends] waits for the ends, and [Forks]
// knows which children are being started or run.
//
// It knows no tasks, files of jobs or streams. A room is only a [Place] that a thread can enter.
package launch
