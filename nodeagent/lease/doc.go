// Package lease has the files by which a node tells each running task until when the task is the
// current attempt, and the question that a task asks of its file.
//
// The leader gives a task to another node only after the node's lease has ended, or after the agent
// has reported the end of the attempt. So an attempt is current while the lease lasts and nobody
// has told the node to stop it. A file names the one attempt that runs and the end of its lease, in
// the machine's time since boot. Whoever stops the attempt, or sees its end, blanks the file. An
// agent that hangs does not renew the lease, so the answer becomes no even if nobody is left to end
// the task.
//
// The node's user owns the file, and only the user as whom the task runs may read it. A task that
// runs as the node's user can forge only files of its own job: it sees no others.
package lease
