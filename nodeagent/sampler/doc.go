// Package sampler draws jobs at random in proportion to their weights. A node agent uses it to choose, from an
// allocation vector, the job of the next task. It is pure; the random number is an argument.
//
// # Model
//
// A [Sampler] holds pairs of a job and a weight. [Sampler.Sample] maps a number u, uniform in [0, 1), to job i with
// probability w_i / Σ w.
//
// A [Stride] holds the same pairs. It draws so that the slot time of each job is in proportion to its weight, but not
// the number of its tasks (after C. Waldspurger and W. Weihl, Stride scheduling, MIT, 1995). A job's pass is the slot
// time that it received, divided by its weight. Virtual time is the slot time that all jobs with a weight received
// together, divided by the sum of their weights. A job is ahead of its share by (pass − virtual time) times its weight,
// in slot time. A job is drawn in proportion to
//
//	w / τ · max(0, 1 − ahead / 10 τ̄)
//
// where w is its weight and τ is the mean length of its last 16 tasks here. τ̄ is the harmonic mean of all jobs' τ,
// weighted by w. Because a task may take long, ahead is measured at the middle of the job's next task. If all jobs are
// far ahead, the job that is least ahead is drawn.
//
//   - A job is charged for a task's usual length when it claims the task, and for more as soon as the task takes
//     longer. So a long task counts while it runs, and many slots that draw at the same time do not all draw the job
//     that is behind.
//   - A job without a weight is away. When it comes back it may be ahead, but it is never behind. A job whose claim got
//     no task has no tasks for this node, so it is not behind either. There is one exception: if its tasks take several
//     slots, the node may still be collecting slots for a task, so the job may stay behind by some tasks.
//   - A job whose weight changes is ahead by as much slot time as before.
//   - The memory for jobs that are away is bounded, and is lost when the agent ends.
//
// If all tasks have the same length, a Stride draws like a Sampler, with one difference: the chance of a job falls by a
// tenth for each task that the job is ahead, and rises by a tenth for each task that it is behind. A larger change, or
// one only for jobs that are ahead, would favour jobs with small shares on nodes that start only a few tasks of each
// job.
//
// There is a limit: if a job has fewer tasks than there are nodes, no node may see two of its tasks. Then its tasks
// start in proportion to its weight, whatever their length.
//
// # Cost
//
// A Stride draws in O(n), 16 µs with 1,000 jobs.
//
// With n jobs in a Sampler, a draw, a change of weight, a removal and the arrival of a job with the highest number so
// far cost O(log n) each, plus a scan of one group of at most 32 jobs. Jobs with lower numbers that arrive in one call
// are merged in one O(n) pass (some microseconds for thousands of jobs). A job takes 12 bytes, and half a byte of sums.
//
// # Rounding
//
// Jobs are sorted by number, in groups. A binary tree holds the sums of the groups, and an inner sum is always computed
// from its two children. So rounding errors do not add up over updates, however different the weights are: the error of
// a sum is at most log₂ n roundings of the sum. (A Fenwick tree changes its sums by differences. There the rounding
// error of a heavy job would stay after the job has left.) A draw never returns a job whose weight is zero.
//
// # Errors
//
// If a weight is negative, infinite or not a number, or if job numbers do not ascend, the call returns an error of kind
// Invalid and changes nothing.
package sampler
