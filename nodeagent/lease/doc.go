// Package lease has the files by which a node tells each running task until when the task is
// the current attempt, and the question that a task asks of its file.
//
// The leader gives a task to another node only when the node's lease has ended, or when the
// agent has said that the attempt ended. So an attempt is the current one as long as the
// lease lasts and nobody told the node to stop the attempt. A file names the one attempt that
// runs and has the end of the lease, by the machine's clock since it was started; whoever
// stops the attempt, or sees its end, blanks the file. An agent that is frozen does not renew
// the lease, and the answer becomes no by itself, also where nobody is left to end the task.
//
// The node's user owns the file, and only the user as whom the task runs may read it. A task
// that runs as the node's user can forge its own job's files, as it sees no others.
package lease
