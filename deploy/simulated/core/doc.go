// Package core runs a workload through a mechanism only: there are no messages, no actors, and no agents that learn of
// a decision with a delay. The outcome is the same as on a site whose messages take no time.
//
// # Model
//
// The machine has Nodes slots of one class. Some mechanisms have a function for whole traces, and this package uses it:
// highestbid.Run, deadline.Run, fifo, fairshare and backfill. The others run in a loop over events, decision by
// decision: batchqueue.Decide and Pay, reservation.Solve, Find and Orders, draws by proportional shares, and contract's
// menus over the deadline-aware scheduler.
//
// All events of the same time are applied together: first ends, then submissions. After them, the mechanism makes one
// decision. A job without run time is complete at its submission, for free.
//
// Under the baselines, batch queues and reservations, all slots of a parallel job are held together. The other
// mechanisms run serial tasks: a job of width n is n tasks with one bid, and it is complete with the last one.
//
// These are the conventions of each mechanism:
//
//   - highest-bid: each task is a bidder. Prices are in credits for a second.
//   - proportional: a free slot draws a job by the shares, as agents do. A job pays for the slot time that it had, by
//     the contention at that time. With settle: on-completion it pays its budget. With an slo it pays only if its
//     received share, over the time in which it had tasks to start, was at least the slo.
//   - deadline: time is in units. A unit is Slot, or else ten seconds, or a multiple of ten seconds if the study would
//     have more than a million units. Each task has its part of the job's value, and a length rounded up to whole
//     units. It competes from the first whole unit on. A job with too few whole units before its deadline is refused.
//     A task gets all the units that it declared, and ends with the last one.
//   - batch-queue: the front job is considered when its slots are free. The beliefs about a job are drawn from the
//     model of the bids, and later from considered jobs of users who have no job in the queue. A job ends after its
//     declared length. If jobs are split, here and under reservation, each task is a job of its own.
//   - reservation: jobs that are submitted in a period are sold at the start of the next one, in granules. A job that
//     is longer than its reservation is cut off.
//   - contract: a user takes the contract with the largest worth, by the user's own valuation, minus the price. The
//     user takes none if every contract is a loss.
//   - baselines: a job pays the posted price for its slot-seconds, but at most its budget. A site ends jobs whose
//     budgets are spent; this core lets them run.
//
// Budgets bind only under the baselines and under proportional.
//
// # Cost
//
// Most mechanisms take O(log n) for an event; for whole traces, see the doc of each. Four mechanisms take longer,
// because a decision is costly and there is about one decision for each job:
//
//   - batch-queue: two schedules of the queue, and random draws: 1,000 for each job of a short queue, 16 for each job
//     of a long one; at most 50,000, or 16 for each job that waits;
//   - contract: a menu of M contracts needs M answers of the scheduler. Each answer takes time in proportion to the
//     number of jobs that have not ended. One sort of these jobs decides who gets free slots;
//   - reservation: Search.Orders candidates, each with all bids of a period;
//   - proportional with an slo: a choice among all jobs with tasks to start.
//
// So a log takes seconds if queues are short, and minutes if thousands of jobs wait.
//
// # Determinism
package core
