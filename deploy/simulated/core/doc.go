// Package core runs a workload through a mechanism and nothing else: no
// messages, no actors, no agents that take time to hear of a decision. The outcome
// is the outcome of a site whose messages take no time.
//
// # Model
//
// The machine has Nodes slots of one class. Where the mechanism has a function
// for whole traces, that is what runs: highestbid.Run, deadline.Run, fifo,
// fairshare and backfill. The others run in a loop over events, decision by
// decision: batchqueue.Decide and Pay, reservation.Solve, Find and Orders, draws
// by proportional shares, contract's menus over the deadline-aware scheduler.
//
// All events of an instant apply together, ends first, then submissions; one
// decision follows. A job of no run time takes nothing: it is complete as it is
// submitted, for free, except under the baselines, where it waits its turn.
//
// Parallel jobs: the baselines, batch queues and reservations hold all slots of a
// job together. The others run serial tasks, a job of width n being n of them
// with one bid; it is complete with the last.
//
// Conventions of each mechanism:
//
//   - highest-bid: each task is a bidder. Prices are in credits for a second.
//   - proportional: slots draw jobs by their shares when they come free, as agents
//     do. A job pays for what it had, by the contention in its slot time; with
//     settle: on-completion its budget, and with an slo that only if the share that
//     it received, of the time it had tasks to start, was as much.
//   - deadline: time is in units (Slot, else ten seconds, or as many times
//     that as keep a study below a million units); each task's value is its part of the
//     job's, its length rounded up to whole units; it competes from the first
//     whole unit on. A job that has too few whole units to its deadline is refused.
//     A task has all the units that it declared, and is done with the last.
//   - batch-queue: the front job is considered when its slots are free. What is
//     believed about a job is drawn from the model of the bids, and later from the
//     considered jobs of users who have none in the queue. A job ends at the length
//     that it declared. Where jobs are split, here and under reservation, each task is a
//     job of its own.
//   - reservation: what comes in a period is sold at the start of the next, in
//     granules; a job that outlives its reservation is cut off.
//   - contract: a user takes the contract worth most to it, by its own valuation,
//     less the price; nothing on the menu at a loss.
//   - baselines: a job pays the posted price of its slot-seconds, at most its
//     budget. A site ends jobs whose budgets are spent; this core lets them run.
//
// Budgets bind under the baselines and under proportional only.
//
// # Cost
//
// Most mechanisms take O(log n) for an event; for a whole trace, see the doc of each.
// Four mechanisms take longer, because a decision is costly and there is about one
// decision for each job:
//
//   - batch-queue: two schedules of the queue, and random draws: 1,000 for each job of a
//     short queue, 16 for each job of a long one; at most 50,000, or 16 for each job
//     that waits;
//   - contract: a menu of M contracts is M answers of the scheduler underneath, each
//     about as long as the list of jobs that have not ended; who gets free slots is
//     one sort of that list;
//   - reservation: Search.Orders candidates, each of all bids of a period;
//   - proportional with an slo: a choice of the pool among all jobs with tasks to
//     start.
//
// So a log takes seconds where queues are short, and minutes where thousands of
// jobs wait.
//
// # Determinism
//
// The same problem gives the same outcome, to the bit.
package core
