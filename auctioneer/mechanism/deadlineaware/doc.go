// Package deadlineaware schedules jobs whose owners say what completion is worth
// to them at each time, when it is uncertain how much work the jobs are: first
// so that the job that is worst off gets as much as possible, then the next,
// and so on. It is the scheduler under package contract, which asks it what
// would become of a job that declared another valuation.
//
// # Model
//
// Demand. All that is known of a job's run times is a sample. RobustQuantile
// and RobustMean return the largest quantile or mean that any distribution has
// whose Kullback-Leibler divergence D(p‖empirical) is at most δ: none of them
// invents a run time that was not seen, all may see the long ones more often.
// The worst distribution for "at most x" takes the same part of every sample up
// to x, which leaves the divergence of a coin, Lowest; the worst for the mean
// tilts the samples by e^{sx}, which leaves a number s, the dual variable.
//
// Plan. Jobs with demands D_i get C slots in an order. When the slots together
// have done the work W of a job and all before it, at t = W/C, it is planned to
// be complete but for the spill that tasks cannot be cut: at its target
// t + ⌈n/C⌉·r − D/C for n tasks of length r = D/n. New finds the order that
// maximises the lowest utility v_i(elapsed + target), then the second lowest, and
// so on, by peeling off bottlenecks:
//
//   - Give up the fewest jobs, so that all others can get a utility that is told
//     from nothing. Those given up come after all others, the least work first.
//   - Of those that remain somebody is complete when all their work is done, at
//     t. It is the job that has its best utility at t all the same, since that
//     costs nobody anything; else the one with the most utility at t. Fix it
//     there, and go on with the rest.
//
// Slots. In that order each task goes to the slot that is free first.
//
// Conventions. Utilities within Resolution of nothing or of a job's best count
// as that: without it a job that is a day late would hold up all others to be
// an hour less late, for a gain that no money can pay. Jobs without work come
// first. Of jobs with equal utility the one with more work goes later, then the
// later in the input.
//
// The document that `candor solve contract` takes as deadline_aware of its schedule; keys
// with ? may be left out:
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
// Times are in seconds from now, and Elapsed is added before a valuation is
// looked up; demand is in slot-seconds, utility in credits, divergence in nats.
// Any other unit of time does as well if it is used throughout.
//
// # Guarantees
//
// The lowest utility (those within the resolution of nothing counted as 0) is
// as high as any order of the jobs makes it, and as few jobs as possible are
// given up. If none has to be, and valuations fall strictly from
// their best to nothing (sigmoidal, linear decay), and no two are equal just
// when one must be fixed, no order is lexicographically better. The argument:
// let j have the most utility at t of the jobs left, and k be last instead.
// Moving j to the end brings k and all between forward; now both k and j have
// more than k had, and nobody else has less. With hard deadlines it is
// guaranteed that the least valued job served is the dearest possible; which
// others are served then is by Moore's rule. On plateaus in the middle of a custom
// valuation a job is treated as if it fell there: who should wait on a plateau
// is a problem of late jobs with two due dates each, which is NP-hard.
//
// The outcome does not depend on the order of the input but for ties. One more
// job does not raise the lowest utility of the others. A target is exact if
// those before the job free the slots together; completion exceeds it by at
// most r·(1−1/C) less the spill, if tasks take what is planned. Robust demand is
// the empirical one at δ = 0, never falls as δ grows and never exceeds the largest
// sample.
//
// CompletionTimes and Hypotheses say what New would say, to the last bit. As
// long as a job is not fixed, who is fixed among the others does not depend on
// its valuation, only on its work: they are peeled once, and each surrogate is
// placed where it first would have been chosen. Who comes before it is peeled
// anew without its work; as soon as that has fixed the same jobs as the first
// peeling up to some layer, it goes on as it would from there for another
// surrogate, so that orders, and the slots at certain layers, are shared. Where
// jobs must be given up, this is done for each set of jobs served that occurs.
//
// # Changes of a bid
//
// It runs no live market: the jobs of a document are as they are. Their targets are worked out
// together, so that a valuation changed late would take from those that were planned with.
//
// # Errors
//
// Numbers that are negative, not finite or out of range, a job with demand but
// without tasks, no samples, and an unknown job are refused as Invalid, and more
// than a limit as TooLarge, naming the job and the field. RobustMean is
// within 1e-9 of the samples' range. Work is rounded to 2⁻⁵⁰ of all work, so that its
// sums are exact and deadlines do not hang on the order of summing; they may be
// missed by 2⁻⁴⁰ of the time since submission.
//
// # Cost
//
// For N jobs: O(N log N) to choose who is served, times log N if somebody is
// not; O(N²) comparisons to peel, with about N·√N valuations looked up; O(k log C)
// for a job of k tasks on the slots, O(C log C) for more than C. M surrogates take
// O(N) each beside what is shared. `lab bench auction` shows what that comes to.
//
// # Source
//
// Z. Huang, B. Balasubramanian, M. Wang, T. Lan, M. Chiang, D. H. K. Tsang, "RUSH:
// A robust scheduler to manage uncertain completion-times in shared clouds", for
// the aims and the three parts; it is the black box X_i(t) in section II of Huang,
// Weinberg, Zheng, Joe-Wong, Chiang, "Discovering valuations and enforcing
// truthfulness in a deadline-aware scheduler". We differ as follows.
//
//   - RUSH bisects on the utility level, checks the deadlines v⁻¹(level) by
//     cumulative demand in their order, fixes the bottleneck, and goes on. Fixing
//     the last first (Lawler, 1973, for the largest cost) comes to the same
//     levels without bisection; a test bisects.
//   - That jobs which cannot be worth anything must not hold up others, and which
//     these are, is ours: by J. M. Moore's rule (1968) for the fewest late jobs,
//     on the jobs above the highest best utility that still serves as many.
//   - A target includes the spill. Without it a job of one long task would be
//     thought to run on all slots at once.
//   - The quantile of n tasks is taken as n times that of one, as if they were
//     slow together; for tasks that are slow independently give samples of the
//     whole demand, or use the mean.
package deadlineaware
