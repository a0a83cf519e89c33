// Package book is the job book: the auctioneer's replicated state. It has every job with its stages and tasks, every
// node with its claims, and the effects that must still happen outside. Only a [Command] changes it.
//
// The book is deterministic and counts in integers. It has no clock, no random numbers and no I/O. The time of a
// command is the time that its proposer wrote, and it never decreases. The leader makes each decision that needs a
// float or a preference, such as which jobs a node may take work from. The book checks the decision and carries it out
// or refuses it.
//
// # What it guarantees
//
//   - A task has at most one valid claim: one attempt in one session of one node. The attempt
//     numbers of a task only rise. A message about an earlier attempt only frees that attempt's slot.
//   - A node never uses more slots of a class than it has. A task of several slots gets all of them
//     on one node before it starts.
//   - A repeated submission, exchange, settlement or effect changes nothing, and gets the first
//     answer again.
//   - A task that fails ends its job, unless its stage allows failed tasks. If a stage has a failed
//     task, no task starts in the stages that wait for it.
//   - A job on hold gets no tasks. If an operator put it on hold, only an operator releases it.
//   - A job is settled once, for at most its hold.
//   - A job that another site runs has one number, one key and one authorisation. A message that
//     does not fit the job's phase changes nothing, and a final state stays. A job of another site is
//     one job here, even if its submission is repeated.
//   - The tasks of a gang start together, in the command that claims the last of them. If one is
//     lost, all running tasks of the gang are stopped and claimed again.
//   - Payments between jobs sum to zero, and the holds of the payers cover them. If a node is found
//     to be faulty later, the charge for its time is given back.
//   - The cost of a job's slots is the exact integral of the committed tariffs over time. It does not
//     depend on how the time is divided. If a slot changes from task to task between two exchanges of
//     its node, the agent says when. Each task pays for the time that it had the slot. The sum is the
//     time of the slot, whatever the agent says.
//   - A task that a node claims ahead, before it has a slot for it, costs nothing. If the node gives such a task back, the task
//     is as before, except that its attempt number is used up.
//
// # Parts
//
// A [Book] consists of parts. Each part has its own state, and a pointer to each other part that it needs. There are
// parts for
//
//   - jobs, and the dependencies between them;
//   - nodes, their maintenance windows, their claims (with gangs and suspension), their health, and the exchanges
//     with agents;
//   - money: meters, effects and endings;
//   - markets and quotes;
//   - remote and visiting jobs;
//   - join tokens;
//   - the index of all jobs by key and account;
//   - the changes that a local observer wants to know.
//
// The files have an order. A file uses only files before it in this order; a test checks this. The order is: lists and
// the table of jobs; records (stage.go, job.go, node.go, tariffs.go); commands (command.go); one file for each part;
// the book, with its methods for readers (read.go) and for commands (apply.go); its image.
//
// # Ended jobs
//
// The book remembers 20,000 ended jobs: a repeated submission gets the first answer, and a job may wait for one of
// them. It keeps the complete records of some of them: of the last 1,000, of jobs to which an effect refers, of jobs
// that still have tasks on nodes, and of visiting jobs. The complete records of the other ended jobs go to the
// replica's archive ([Book.Archive]). Which records stay does not depend on earlier choices, so replicas that start
// from different images agree. All ended jobs together take 7 MB.
//
// # Attempts
//
// A task has 48 bytes: its latest attempt, with its reason, processor time, peak memory and the time for which it was
// suspended. Earlier attempts, and the texts with which nodes explain how attempts ended, are kept for at most 64
// failed attempts of a job: the first ones of each stage, with an equal part for each stage. Each text has at most 200
// bytes, and the different texts of a job have at most 4 KiB together. [Job.Omitted] is the number of earlier attempts
// that are not kept; their output is still on their nodes. A million finished tasks take 60 MB.
//
// # Cost
//
// Applying a command costs O(1) for each task that it changes. The exceptions are Lost and Register, which cost O(k log
// k) for the k claims of the node. New tariffs cost O(1). But some changes of a market's tariffs cost O(n) for the n
// jobs of the market that have begun: each 1,024th change, or each 32nd if the price depends on a job's length or is
// capped by its bid.
//
// The cost of a command does not grow with the number of jobs, nodes, accounts, effects, quotes or tokens; a test
// checks this for each kind. A removed node keeps its position and 600 bytes, because tasks name nodes by their
// positions.
//
// A job that has not begun takes 420 bytes: the book keeps the job's bytes in the encoding of an image. Each reader
// decodes a [Job] from them. The first command that changes the job replaces the bytes by the [Job]. Capture copies
// pointers to jobs, in chunks of 256: 0.5 ms for a million jobs. A job or chunk that changes later is copied first,
// once for each image. A copy takes some microseconds, and 48 bytes for each task. Nodes, effects, notes, and jobs that
// run elsewhere or are in the archive, are copied at once.
package book
