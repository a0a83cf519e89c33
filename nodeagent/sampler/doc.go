// Package sampler draws jobs in proportion to their weights: it is how a node
// agent turns an allocation vector into the next job to work for. It is pure;
// the random number arrives as an argument.
//
// # Model
//
// A [Sampler] holds pairs of a job and a weight. [Sampler.Sample] maps a
// number u, uniform in [0, 1), to job i with probability w_i / Σ w.
//
// A [Stride] holds the same pairs, and draws so that jobs receive slot time, and not starts of
// tasks, in proportion to their weights (after C. Waldspurger and W. Weihl, Stride scheduling,
// MIT, 1995). A job's pass is the slot time that it received for its weight. Virtual time is the slot time
// for each unit of weight that all jobs with a weight received together. What the pass is beyond
// virtual time, times the weight, is the slot time that the job is ahead of its share. A job is drawn
// in proportion to
//
//	w / τ · max(0, 1 − ahead / 10 τ̄)
//
// where τ is the mean length of its last 16 tasks here, and τ̄ the harmonic mean of these, by
// weight. As a task may take long, ahead is what the job will be ahead in the middle of its next
// task. If all jobs are far ahead, the one that is least ahead goes.
//
//   - A job is charged for a task's usual length when it claims the task, and for more as soon as
//     the task takes longer. So a long task counts while it runs, and many slots that draw
//     at once do not all draw the job that is behind.
//   - A job without a weight is away. When it comes back it may be ahead, and is never behind. A
//     job whose claim came to nothing has no tasks for this node, and is not behind either. If its
//     tasks take several slots, the node may gather them: it may stay behind by some tasks.
//   - A job whose weight changes is ahead by as much slot time as before.
//   - What is remembered of jobs that are away is bounded, and is lost with the agent.
//
// With tasks of one length the draws are like the draws of a Sampler, except for a pull towards the shares:
// by a tenth for each task that a job is ahead or behind. A stronger pull, or one only on the
// jobs ahead, would favour jobs of small shares on nodes that start only some tasks of each job.
//
// What falls short: a job of fewer tasks than there are nodes starts by its weight, whatever the
// length of its tasks, since no node sees two of them.
//
// # Cost
//
// A Stride draws in O(n), 16 µs with 1,000 jobs.
//
// For n jobs, a change of weight, a removal and the arrival of a job with the
// highest number so far cost O(log n), a draw O(log n), in each case plus a
// scan of one group of at most 32 neighbours. Arrivals among older jobs are
// merged, all arrivals of one call in one O(n) pass (some microseconds for
// thousands of jobs). 12 bytes are kept for each job, and half a byte of sums.
//
// # Rounding
//
// Jobs lie in ascending order, in groups; a binary tree of sums stands over
// the groups, and an inner sum is always computed anew from its two children.
// So no error builds up however many updates there were and however far apart
// the weights are: a sum is off by at most log₂ n roundings of itself. (A
// Fenwick tree updates its sums by differences; a heavy job that came and
// went would leave its rounding error behind.) A draw never ends on a job
// whose weight is zero.
//
// # Errors
//
// Weights that are negative, infinite or not a number, and job numbers that do
// not ascend, are refused as Invalid, and nothing is changed.
package sampler
