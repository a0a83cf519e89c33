// Package deadlineaware schedules jobs whose owners say what completion at each time is worth to them. The amount of
// work of the jobs is uncertain. The schedule maximises the utility of the job that is worst off, then of the next, and
// so on.
//
// # Model
//
// Demand. A job's run times are known only from a sample. RobustQuantile and RobustMean return the largest quantile or
// mean of any distribution whose Kullback-Leibler divergence D(p‖empirical) is at most δ. Such distributions have only
// run times that were seen, but long ones may be more frequent. The worst distribution for a quantile x multiplies the
// probabilities of all samples up to x by the same factor, so its divergence is the same as for a coin (Lowest). The
// worst distribution for the mean weights the samples by e^{sx}, so only the number s must be found.
//
// Plan. Jobs with demands D_i get C slots in an order. Let W be the work of a job and all jobs before it. The slots
// together have done this work at t = W/C. Because tasks cannot be divided, the job completes a little later, at its
// target t + ⌈n/C⌉·r − D/C for n tasks of length r = D/n. The difference, target − t, is called spill. New finds the
// order that maximises the lowest utility v_i(elapsed + target), then the second lowest, and so on, by fixing the last
// job first:
//
//   - Give up as few jobs as possible, so that all other jobs can have some utility. Jobs that are given up come after
//     all others, the job with the least work first.
//   - One of the remaining jobs completes when all their work is done, at t. If a job has its best utility even at t,
//     choose it, because that costs no other job anything. Otherwise choose the job with the most utility at t. Fix it
//     as the last, and continue with the others.
//
// Slots. In this order of jobs, each task goes to the slot that becomes free first. Closings take slots away for a
// time: a task runs on such a slot only before or after the closing. Closings do not change the plan and the targets.
//
// Conventions: a utility within Resolution of 0 counts as 0, and a utility within Resolution of a job's best counts as
// its best. Without this rule, a job that is a day late could delay all other jobs so that it is an hour less late,
// although it gains less than a microcredit. Jobs without work come first. Among jobs with equal utility, the job with
// more work comes later. If the work is equal too, the jobs stay in the order of the input.
//
// `candor solve contract` takes this document as deadline_aware in its schedule. Keys with ? may be left out:
//
//	slots         how many there are
//	delta?        δ (0)
//	quantile?     plan with this quantile of the demand (0.9), or
//	mean?         true: with the mean
//	resolution?   in credits (1e-6)
//	jobs          tasks? (1), elapsed? (0), valuation: as in package messages,
//	              and samples of either runtime (of a task; the demand is tasks
//	              times as much) or demand (of all the job's tasks together)
//
// # Shapes and units
//
// Times are in seconds from now, and Elapsed is added before a valuation is looked up; demand is in slot-seconds,
// utility in credits, divergence in nats. Any other unit of time works also if it is used everywhere.
//
// # Guarantees
//
// No order of the jobs has a higher lowest utility (utilities within the resolution of 0 count as 0), and no order
// gives up fewer jobs. If no job must be given up, valuations fall strictly from their best to 0 (sigmoidal, linear
// decay), and no two utilities are equal when a job is fixed, then no order is lexicographically better. Proof: let j
// have the most utility at t among the remaining jobs, and let another job k be last in another order. Move j to the
// end of this order. Then k and all jobs in between are earlier. Now k and j both have more utility than k had, and no
// other job has less. With hard deadlines, the least valuable served job is as valuable as possible; Moore's rule
// decides which other jobs are served. A custom valuation can stay constant for some time before it falls further. The
// scheduler treats this time as if the valuation fell, because the exact problem (late jobs with two due dates each) is
// NP-hard.
//
// Except for ties, the result does not depend on the order of the input. An additional job does not raise the lowest
// utility of the others. A target is exact if the jobs before free all slots at the same time. If tasks take their
// planned time, completion exceeds the target by at most r·(1−1/C) less the spill. Robust demand is the empirical
// demand at δ = 0. It never falls as δ grows, and never exceeds the largest sample.
//
// CompletionTimes and Hypotheses give exactly the results of New, to the last bit. As long as a job is not fixed, the
// choice among the other jobs depends on its work, but not on its valuation. So the others are fixed ("peeled") once,
// from the last job, and each surrogate is placed where it would first have been chosen. The jobs before it are peeled
// again without its work. When this peeling has fixed the same jobs as the first peeling up to some layer, it continues
// in the same way for all surrogates. So surrogates share orders, and the slots at certain layers. If jobs must be
// given up, this is done for each set of served jobs that occurs.
//
// # Changes of a bid
//
// The package runs no live market, so bids do not change. Targets of jobs are computed together; a late change of a
// valuation would delay other jobs.
//
// # Errors
//
// Invalid is returned, with the job and the field, for numbers that are negative, not finite or out of range, a job
// with demand but without tasks, no samples, and an unknown job. TooLarge is returned for a number above a limit.
// RobustMean is exact to 1e-9 of the samples' range. Work is rounded to 2⁻⁵⁰ of all work, so that sums are exact and
// deadlines do not depend on the order of summing. A deadline may be missed by 2⁻⁴⁰ of the time since submission.
//
// # Cost
//
// For N jobs: O(N log N) to choose the jobs that are served, times log N if some are not; O(N²) comparisons to peel,
// with about N·√N valuations computed; O(k log C) to give slots to a job of k tasks, O(C log C) if it has more than C.
// Each surrogate takes O(N) in addition to the shared work. `lab bench auction` measures these costs.
//
// # Source
//
// Z. Huang, B. Balasubramanian, M. Wang, T. Lan, M. Chiang, D. H. K. Tsang, "RUSH: A robust scheduler to manage
// uncertain completion-times in shared clouds", for the aims and the three parts (demand, plan, slots). This scheduler
// is used as a black box, X_i(t), in section II of Huang, Weinberg, Zheng, Joe-Wong, Chiang, "Discovering valuations
// and enforcing truthfulness in a deadline-aware scheduler". We differ as follows.
//
//   - RUSH bisects on the utility level, checks the deadlines v⁻¹(level) by cumulative demand in their order, fixes the
//     bottleneck, and continues. Fixing the last job first (Lawler, 1973, for the largest cost) gives the same levels
//     without bisection; a test compares with bisection.
//   - Our addition: jobs that can have no utility must not delay others. J. M. Moore's rule (1968) for the fewest late
//     jobs chooses which jobs are served. It considers only jobs whose best utility is not below a threshold: the
//     highest threshold with which as many jobs can be served.
//   - A target includes the spill. Without it, the plan would run a job of one long task on all slots at once.
//   - The quantile of n tasks is n times the quantile of one task, as if all tasks were slow at the same time. If tasks
//     are slow independently, give samples of the whole demand, or use the mean.
package deadlineaware
