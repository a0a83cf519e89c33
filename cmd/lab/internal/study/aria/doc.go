// Package aria schedules jobs with deadlines by earliest deadline first, giving
// each the fewest slots with which it should be in time: the scheduler that the
// SLO pool of package proportional is compared with.
//
// # Model
//
// A job is phases one after the other (map, then reduce), each a number of tasks
// on the slots of one class. Of N tasks that take A on average and M at most, on
// S slots whatever their order, a phase takes between N·A/S and (N−1)·A/S + M. A
// job's completion is estimated by the mean of the bounds, added up over its
// phases: Σ (N−1/2)·A/S + M/2.
//
// The fewest slots that bring the estimate down to the time that is left, D, are
// by Lagrange's multipliers, with a = (N−1/2)·A of each phase and C = Σ M/2,
//
//	S_p = √a_p · Σ_q √a_q / (D − C)
//
// rounded up, and then down again phase by phase where the estimate allows it; at
// most the tasks of the phase and the slots of its class. A job that cannot be in
// time is given all it can use.
//
// Schedule runs the tasks, which are not preempted. Whenever slots are free, the
// jobs are looked at by deadline (ties by submission, then index), those whose
// deadline has passed after all others; each starts tasks of its current phase up
// to the fewest slots that it needs for what is left of it. The rule says what
// comes of slots that are then still free: under Least they stay idle, under
// Spare they are given out by deadline too, under Most every job takes all it can
// use from the start.
//
// # Shapes and units
//
// Times are in any one unit, deadlines are instants. Slots are by class. The
// value of a job is earned if it finishes by its deadline, the same instant
// included; the profit is the sum.
//
// # Guarantees
//
// A phase alone on S slots keeps within its bounds. Fewest needs at most one
// slot a phase more than the least that there is. No slot runs two tasks, no
// phase begins before the one before it has ended.
//
// # Errors
//
// Invalid, naming the job, the phase and the field.
//
// # Cost
//
// O(jobs in the system) for each task that ends, and O(log) for each that starts.
//
// # Source
//
// A. Verma, L. Cherkasova, R. Campbell, ARIA: automatic resource inference and
// allocation for MapReduce environments, 2011, as described in Ding et al.,
// sections 6 and 7.2 (figure 14); the rules Spare and Most are MinEDF-WC and
// MaxEDF of their Two sides of a coin, 2012. We differ: a phase is bounded as a
// whole, without telling the first shuffle apart; jobs that are late already do
// not go first; spare slots are not taken back from a task that runs.
package aria
