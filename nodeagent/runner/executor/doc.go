// Package executor runs a node's tasks in a separate process, the executor. The executor outlives the agent: if the
// agent ends, crashes or is replaced by a newer version, the next agent finds the tasks again.
//
// # One executor for a node
//
// The agent starts the executor with its own binary, and talks to it over a socket in the state directory. An executor
// for each task would cost every task another process and an exec of some milliseconds. One executor for the node costs
// a task only a message.
//
// # What it promises
//
//   - An attempt is started once, however often the agent asks.
//   - A task can follow another one: it waits in the executor, and starts on the slot of a task of its class when all
//     processes of that task have ended. Before this, the agent can withdraw the waiting task. If the agent disconnects
//     or the lease ends, waiting tasks never start.
//   - The executor reports the end of a task until the agent confirms it, also to the next agent.
//   - The executor has a lease of its own. With each renewal the agent says how long tasks may run. When that time is
//     over, the executor kills every task, with or without an agent. So no task still runs when the leader gives it
//     to another node, even if the agent is dead.
//   - If an executor is killed, its processes go on. The next executor first ends them: it finds them by their cells
//     or by the handles of package session. The agent reports these tasks as stopped.
//   - An executor without an agent and without tasks ends after a while. If no agent comes within ten minutes after
//     the last task has ended, it writes the ends to a file and ends. The executor of the next agent reads the file
//     and reports them.
//   - An agent that starts waits 10 s for the first message of an executor that it finds, and a minute if it started
//     the executor. It does not kill a silent executor, because only that executor knows which tasks run; the error
//     names its process.
//   - If a connected executor does not answer for 10 s, the log names its process and says what helps, and the node
//     claims no tasks until it answers.
//   - If the build or the configuration of the executor differs from the agent's, the agent ends it when it has no
//     tasks, and starts a new one. Tasks that come meanwhile wait for the new executor.
//   - On SIGTERM an executor kills its tasks, writes their ends to a file for the next executor, and ends.
//
// # Wire
//
// A frame is a length of four bytes, big endian, and a msgpack array. A frame that an agent sends twice has no second
// effect. Only the newest connection is used; a new connection closes the one before. While many tasks wait in the
// executor, it collects the ends of tasks of one job for up to 5 ms, and sends them together.
package executor
