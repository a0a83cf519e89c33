// Package lease writes and reads the files that tell each running task how long it is the current attempt. The node
// writes them, and tasks read them (candor task alive).
//
// The leader gives a task to another node only after the node's lease has ended, or after the agent has reported the
// end of the attempt. So an attempt is current while the lease lasts and nobody has told the node to stop it. A file
// names the one attempt that runs and the end of its lease, in the machine's time since boot. When the runner stops the
// attempt or sees its end, it removes both from the file. If the agent hangs, the lease in the file ends by itself.
//
// The node's user owns the file. Each task runs as some user, and only this user may read the task's file. A task that
// runs as the node's user can forge only the files of its own job.
package lease
