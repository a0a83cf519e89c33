// Package nodeagent is the actor that runs tasks on a node.
//
// An [Agent] registers with the leader of its site's auctioneer, and follows the allocation vectors of the markets that
// it serves: each vector has the weights of a market's jobs. For each free slot, the agent chooses a job at random in
// proportion to the weights. It claims a task of that job, runs the task as a process, and reports its end. Package
// state holds the agent's knowledge and makes its decisions; it is pure. Package sampler chooses jobs, and package
// runner runs processes. This package connects them to messages, clocks and timers.
//
// # The duties of an agent
//
// An agent runs tasks only while it holds a lease. Each answer of the leader renews the lease. If no answer comes
// before the lease ends, the agent kills all its tasks; only then does the leader give them to other nodes. The time of
// a lease continues while the machine sleeps. If two agents register under one name, the later one is the node: the
// leader fences the earlier one, which stops its tasks.
//
// A suspended task keeps its memory, so a node bounds how many suspended tasks it keeps (Config.MostSuspended), and
// tells the leader the bound. If there would be more, the leader ends tasks, which run again later.
//
// # Files
//
// The agent fetches the inputs of a task from the site's depot before the task starts. An input is fetched once for all
// tasks that use it, and kept under its digest; the runner copies it into each working directory. When a task has ended
// well, the agent stores the files that match an output pattern in the depot, and then reports the end. A task whose
// outputs could not be stored has failed. For each stage with files the node keeps a manifest. From it, an agent that
// adopts a running task knows which outputs to store.
//
// # Output
//
// The agent answers the verb "logs" for tasks that ran here, also after a restart. The owner of the job and operators
// may ask. While the market of a job keeps the job's output back (hand_over: deadline), the owner is refused. To know
// this, the agent asks the leader with the verb "kept". If no leader answers, the agent gives the owner the output.
//
// # Streams
//
// With the verb "stream" the same accounts reach a running task. They can use its input and output (candor run,
// attach), run another command on its node (exec), connect to one of its ports (port), and send signals. A client asks
// for each piece of data, with positions in both directions, so no byte is lost if a connection breaks. The node keeps
// at most 256 KiB in each direction. The executor holds the streams, so they continue when the agent ends. If the
// client of a task has been away for Interactive.Linger, the task is ended.
package nodeagent
