// Package lease has the file by which an agent tells the tasks of its node until when they
// are the current attempts, and the question that a task asks of the file.
//
// The leader gives a task to another node only when the node's lease has ended, or when the
// agent has said that the attempt ended. So an attempt is the current one as long as the
// lease lasts and nobody told the agent to stop the attempt. The file has the end of the
// lease, by the machine's clock since it was started, and the attempts that are to stop
// and have not ended. An agent that is frozen does not renew the file, and the answer
// becomes no by itself, also where nobody is left to end the task.
//
// The site's user owns the file, in a directory where no task can write. A task that runs as
// that user itself can forge the file, as it can do all that the site can.
package lease
