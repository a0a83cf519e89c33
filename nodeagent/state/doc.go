// Package state holds a node agent's knowledge, and makes its decisions. It knows the agent's slots, its unfinished
// attempts, the latest vectors, the lease and the current exchange: a request in which the agent reports ended tasks
// and claims new ones. It is pure: time and random numbers are arguments, and it returns the agent's next steps as
// [Actions].
//
// # Use
//
// Only one goroutine at a time may call a [State]. The caller tells it what happened ([State.Registered],
// [State.Answered], [State.Failed], [State.Vector], [State.Ended], …), then calls [State.Act] and carries out the
// returned actions. It calls Act again at [State.Wake] at the latest. All times are from one clock. This clock never
// goes back, and continues while the machine sleeps. It may count from any point in time.
//
// # Guarantees
//
//   - At most one request to the leader is under way. An exchange keeps its number and its content until
//     it is answered; only the time at which it is sent changes.
//   - The lease counts from the time at which the answered exchange was first sent. This is the earliest
//     time at which the leader can have renewed it.
//   - If the lease has passed, or the leader says Fenced, all tasks are killed without grace. When they have
//     ended, the node registers under a new session. Ends that were not reported by then are reported in the new
//     session. The leader knows which attempts are still valid, and accepts only their ends.
//   - An attempt is started at most once. Its end is reported under every session until an exchange with
//     it is answered.
//   - A slot that becomes free while work is pending claims in the exchange that reports the end of its
//     task. An idle slot whose class has no pending work sends nothing.
//
// # Looking ahead
//
// A slot that becomes free would be idle until the next exchange is answered. If tasks are so short that this matters,
// the agent claims the next tasks in advance. It keeps as many as the slots need during an exchange and until the next
// one, by the measured times of tasks and exchanges; the bound is [agent.MaxAhead] for each slot. It draws the job of
// each such task by the weights, as for a free slot. A slot that becomes free starts the next of these tasks at once.
// In its next request, the agent reports the end of the one task, the start of the other and their times. So the leader
// charges each task for its own part of the slot's time.
//
// If the runner accepts waiting tasks ([State.SetFeeds]), the agent passes these tasks to the runner, in their order.
// The runner starts the next task as soon as a task with a slot has ended, and then tells the agent both events and
// their times. Before the agent gives a task back to the leader, it asks the runner for the task; a task that has
// started keeps the slot. If a decision gave the slot to another task meanwhile, the started task is killed, and
// reported as stopped.
//
// Tasks without a slot are given back at once when the weights of their class change, when the leader suspends or
// resumes a task, and when there is no executor. They are given back at the latest [AheadWithin] after they were
// granted. A job that left, or that came back unchanged, does not count as a change of weights. If tasks waited too
// long, the agent keeps fewer tasks of the class in advance. If no task started meanwhile, it keeps none until its
// tasks are short again. The leader counts a task without a slot as pending, so the task costs nothing. Only
// proportional markets grant tasks in advance: the other markets need to know what runs at each moment.
//
// # Waking idle slots
//
// When a vector says that P tasks are pending in a class and I slots of the site are idle, each idle slot here claims
// with probability min(1, (P + 2√P + 3) / I). So P + 2√P + 3 claims are expected. The number is P, plus two standard
// deviations so that too few claims are unlikely, plus three for cases with few tasks. If work stays unclaimed, the
// leader publishes a vector again.
//
// A slot that becomes free later claims if that vector had more work than idle slots. Otherwise it waits for the next
// vector, as the idle slots do. A market that directs chooses the job for each free slot itself, after it knows that
// the slot is free. In such a market, a slot that becomes free always claims, but for no particular job. If the claim
// gets nothing, the slot claims once more while the vector has work.
//
// If several markets allocate a class, a slot draws its market in proportion to the markets' pending tasks, and then
// the job from that market's vector. In a proportional market the weights are shares of slot time: each draw takes into
// account the slot time that jobs received on this node, so the length of their tasks does not matter
// ([sampler.Stride]). Under other mechanisms weights say which job is next, and are used unchanged.
package state
