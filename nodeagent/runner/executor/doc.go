// Package executor runs a node's tasks in a process of their own, which outlives
// the agent: an agent that ends, crashes or is replaced by a newer one finds its
// tasks again.
//
// # One executor for a node
//
// The agent starts one with its own binary, over a socket in the state directory.
// One for each task would cost a process and an exec of some milliseconds for
// every task; one for a node costs a message, far less than the fork.
//
// # What it promises
//
//   - A task begins once, however often the agent asks: an attempt has one life here.
//   - A task that is to follow begins when one of its class that had a slot has ended with all that
//     was left of it, if it was not withdrawn before. It is its agent's alone: when the agent is gone, or
//     the lease is over, it never begins.
//   - How a task ended is told until the agent has confirmed it, also to the next agent.
//   - It has its own lease: the agent says with each renewal how long tasks may run,
//     and when that time is over every task is killed, whether there is an agent or
//     not. So a task never runs on when the leader has given it away, even if the
//     agent is dead.
//   - An executor that is killed leaves processes behind; the next one ends them
//     before it does anything else, by their cells or by the handles that package
//     runner keeps, and the agent reports them as stopped.
//   - Without an agent and without tasks it ends by itself after a while. Where no agent
//     comes back for ten minutes after the last task has ended, it writes the ends into a
//     file and ends; the executor of the next agent reads the file, and tells them.
//   - An agent that starts waits 10 s for a word of an executor that it finds, and a minute for one of an
//     executor that it began. A silent one is left alone and named: only it knows which tasks run.
//   - Of a connected executor that answers nothing for 10 s the log says which process it is and what helps, and the
//     node takes no tasks until it answers.
//   - An agent that has another build or another configuration than the executor ends it when no task runs in it, and
//     starts a new one. Tasks that are to start meanwhile wait for the new one.
//   - On SIGTERM it kills its tasks, leaves their ends in that file, and ends.
//
// # Wire
//
// Frames of a length in four bytes, big endian, and a msgpack array, as everywhere.
// What an agent sends twice changes nothing. The newest connection counts; the one
// before is closed. Ends of tasks that others of their job follow wait up to 5 ms for more of them
// while many follow.
package executor
