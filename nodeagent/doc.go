// Package nodeagent is the actor that runs tasks on a node.
//
// An [Agent] registers with the leader of its site's auctioneer, follows the
// allocation vectors of the markets it serves, samples a job for each free
// slot in proportion to the weights, claims a task of it, runs the task as a
// process, and reports its end. What it knows and how it decides is in the
// pure package state, the sampling in sampler, the processes in runner; this
// package connects them to messages, clocks and timers.
//
// # The duties of an agent
//
// It runs a task only while it holds a lease: when no exchange with the leader
// was answered for that long, all its tasks are killed, before the leader
// gives them to others. The time of a lease goes on while the machine sleeps.
// Whoever holds the node's credentials can register under its name; the one
// who registers last is the node, the other is fenced and stops its tasks.
//
// A suspended task keeps its memory, so a node bounds how many suspended tasks it keeps
// (Config.MostSuspended). The agent tells the leader the bound when it registers; the
// leader has tasks beyond it ended and run again; see package market.
//
// # Files
//
// Inputs are fetched from the site's depot before a task starts, once for all tasks
// that want them, and kept by their digests; the runner copies them into each
// working directory. When a task has ended well, its files that match an output
// pattern are stored in the depot before the end is reported; a task whose outputs
// could not be stored has failed. A manifest of each stage with files is kept next to
// the tasks, so that an agent which adopts a running task stores its outputs too.
// Tasks without files cost nothing of this.
//
// # Output
//
// The agent answers the verb "logs" for tasks that ran here: to the account
// whose job it is and to operators, also after a restart. While the market of a job keeps
// its output (hand_over: deadline), its owner is refused: the agent asks the leader with
// the verb "kept", and does not refuse while no leader answers.
//
// # Streams
//
// With the verb "stream" the same accounts reach a running task: its input and output
// (candor run, attach), another command on its node, or one of its ports (exec, port), and signals. A client
// asks for each piece, with positions in both directions, so that a lost connection loses
// no byte, and the node keeps at most 256 KiB of each direction. The executor holds the
// streams: they outlive the agent. A task whose client has been away for
// Interactive.Linger is ended.
package nodeagent
