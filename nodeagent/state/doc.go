// Package state is what a node agent knows and how it decides: its slots, the
// attempts it has in hand, the vectors it was sent, the one exchange under way
// and the lease it runs on. It is pure: time and random numbers arrive as
// arguments; what is to be done leaves as [Actions].
//
// # Use
//
// One caller at a time: tell the [State] what happened ([State.Registered],
// [State.Answered], [State.Failed], [State.Vector], [State.Ended], …), then
// call [State.Act] and carry out what it returns, and call Act again at
// [State.Wake] at the latest. Times are of a clock that never goes back and
// counts sleep of the machine, with any zero.
//
// # Guarantees
//
//   - At most one request to the leader is under way. An exchange keeps its
//     number and its content, but for when it is sent, until it is answered.
//   - The lease counts from when the answered exchange was first sent, the
//     earliest moment at which the leader can have renewed it.
//   - When the lease has passed, or the leader says Fenced, every task is
//     killed, without grace, and the node registers under a new session once
//     they have ended. What was not reported by then is reported there, and
//     the leader, which knows the attempts that are still valid, takes its
//     pick.
//   - An attempt is started at most once, and its end is reported under every
//     session until an exchange with it is answered.
//   - A slot that becomes free while there is work claims in the exchange that
//     reports the end of its task. An idle slot whose class has no work pending sends nothing.
//
// # Looking ahead
//
// A slot that becomes free would be idle until the next exchange is answered. Where
// tasks are so short that this matters, the agent has the next tasks at hand: as
// many as the slots take while an exchange is under way, by the measured times of tasks
// and of exchanges, and for as long as ends are gathered before the next exchange, at most
// [messages.MaxAhead] for each slot. It claims them as it claims for a free slot, each of a
// job drawn by the weights. A slot begins the next of them at once; the leader hears of that,
// and of what has ended, when it is time to claim again. It hears when
// the slot went from one task to the next, and divides the slot's time by that.
//
// A runner that can ([State.SetFeeds]) has the tasks at hand too, in their order, and begins the next
// as soon as one that has a slot has ended; the agent hears of both together, and since when. What
// is given back is asked back there, and is given back when the runner says that the task has not
// begun. One that had begun has the slot; where a decision gave the slot to another
// task meanwhile, it is killed, and the leader hears that it was stopped.
//
// What has no slot yet is given back at once when the weights of its class change (a job that
// left, or came back as it was, changes no other's share of the rest), when
// the leader suspends or resumes a task, when there is no executor, and at the latest
// [AheadWithin] after it was granted. Then the class has fewer at hand, or none if no task
// began meanwhile, until its tasks turn out to be short again. The leader counts such a
// task as pending: no mechanism sees it run, it costs nothing, and given back it is as if
// it was never claimed, but for its number. Only proportional markets grant tasks ahead:
// the others look at what runs at each moment.
//
// # Waking idle slots
//
// When a vector says that P tasks are pending in a class and I slots of the
// site are idle, each idle slot here claims with probability
// min(1, (P + 2√P + 3) / I). So all of them together expect P + 2√P + 3
// claims: P, two standard deviations so that the chance to fall short is
// small, and three so that few tasks are no exception. The leader publishes
// again should work stay unclaimed.
//
// A slot that becomes free later claims if the idle ones had not enough slots
// for the work of that vector; otherwise it waits for the next, as they do.
// The vectors of a market that directs have work for idle slots alone, and the
// market decides about a slot once it knows that the slot is free. There a slot
// that becomes free claims anyway, for no job: the leader knows who is next in line. While
// the vector has work the slot claims once more if that comes to nothing.
//
// A slot of a class that several markets allocate draws its market in
// proportion to the tasks pending there, then the job from that market's
// vector. In a proportional market the weights are shares of slot time: each draw
// makes up for what jobs received on this node, whatever the length of their tasks
// ([sampler.Stride]). Under other mechanisms weights say who is next, and are drawn by as they are.
package state
