// Package book is the job book: the auctioneer's replicated state. It knows
// every job with its stages and tasks, every node with its claims, and the
// effects that are still to happen outside, and it changes only by applying a
// [Command].
//
// The book is deterministic and counts in integers: no clock, no random
// number, no I/O; the time of a command is what its proposer wrote, never
// going back. A book decides nothing that needs a float or a preference: the
// leader decides (which jobs a node may take work from, what a job is
// charged), and the book checks the outcome against what it knows, carries it
// out or refuses it, alike on every replica.
//
// # What it guarantees
//
//   - A task has at most one valid claim, by one attempt of one node's session;
//     attempt numbers of a task only rise, and a word about any but the latest
//     changes nothing but the slot that it frees.
//   - A node never has more slots of a class in use than it has; a task of several slots has all of
//     them on one node, before it starts.
//   - A repeated submission, exchange, settlement or effect changes nothing and
//     has the first one's result.
//   - A task that fails ends its job, or where its stage says so only itself; no task of a
//     stage starts that waits for a stage with a failed task.
//   - A job on hold gets no tasks; what an operator put on hold only an operator releases.
//   - A job is settled once, for no more than its hold.
//   - A job that another site runs has one number, one key and one authorisation; a
//     word about it that does not fit its phase changes nothing, and its last state
//     stays. A job of another site is one job here, whoever repeats its submission.
//   - The tasks of a gang start together, in the command that claims the last of
//     them; when one is lost, all that run are stopped and claimed anew.
//   - What jobs pay one another sums to zero, and is covered by their holds. A charge for the time of a
//     node that is found out later is given back.
//   - What a job's slots cost is the exact integral of the tariffs committed, and
//     does not depend on how time is cut. Where a slot goes from task to task between two
//     exchanges of its node, the agent says when; each task pays for the time it had, and
//     all of them together for the time of the slot, whatever the agent says.
//   - A task that a node claims ahead, before it has a slot for it, costs nothing; given
//     back it is as if it was never claimed, but for its number.
//
// # Parts
//
// A [Book] is the sum of its parts, each with its own state and the few other parts
// that it needs: jobs and the dependencies between them; nodes, their claims (with
// gangs and suspension), their health and the exchanges with their agents; meters,
// effects and endings, for money; markets and quotes; remote and visiting jobs; join
// tokens; the index of all jobs by key and account; and what a local observer watches.
//
// Files use only files below them, which a test holds. From the bottom up: lists and the table
// of jobs; records (stage.go, job.go, node.go, tariffs.go); commands (command.go); one file for each
// part; the book with what readers ask of it (read.go) and how it carries out commands (apply.go);
// its image.
//
// # Ended jobs
//
// Of 20,000 ended jobs the book remembers that they were: a repeated submission gets the
// answer of the first, and a job may wait for one of them. Whole records stay of the last
// 1,000, of jobs that effects speak of or nodes still run tasks of, and of visiting jobs. The
// others are handed over ([Book.Archive]) for the replica's archive. Which were handed over
// follows from the rest of the state, so that an image with all records becomes the same
// state. Together this takes 7 MB.
//
// # Attempts
//
// A task has 48 bytes: its latest attempt, with its reason, processor time, peak memory
// and the time for which it was suspended. Earlier attempts, and how nodes explained the end
// of an attempt, are kept for at most 64 failed attempts of a job: the
// first ones of each stage, in equal parts, with at most 200 bytes of text each and 4 KiB
// of different texts together. [Job.Omitted] counts the earlier attempts that are not kept;
// what they wrote is still on their nodes. A million finished tasks take 60 MB.
//
// # Cost
//
// Applying a command is O(1) for each task it touches, but for Lost and
// Register, which are O(k log k) in the k claims of the node. New tariffs are O(1), but
// some changes of a market's tariffs are O(n) in the n jobs of the market that have begun: each
// 1,024th, or each 32nd where the price depends on a job's length or is capped by its bid.
//
// No command costs more where there are more jobs, nodes, accounts, effects, quotes or tokens, and a
// test holds that for each kind; Requeue without tasks, and the end of a job that has running tasks, look at
// each task of the job once. A removed node keeps its place, because tasks name nodes by their places.
// No command looks at it; it takes 600 bytes.
//
// A job that has not begun takes 420 bytes: the book keeps the bytes that an image has for it. Each
// reader decodes a [Job] from them; the first command that changes the job replaces the bytes by the
// [Job]. Capture takes references to jobs, in chunks of 256: 0.5 ms for a million. A job, or a
// chunk, that changes after that is copied first, once for each image: some microseconds, and
// 48 bytes for each of its tasks. Nodes, effects, notes, and jobs
// that run elsewhere or are in the archive, are copied at once.
package book
