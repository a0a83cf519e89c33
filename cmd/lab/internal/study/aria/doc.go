// Package aria schedules jobs with deadlines by earliest deadline first. It gives each job the fewest slots with which
// the job should be in time. Package abacus compares its pool of jobs with this scheduler.
//
// # Model
//
// A job has phases that run one after the other (map, then reduce). Each phase has a number of tasks on the slots of
// one class. Consider a phase of N tasks that take A on average and M at most. On S slots, it takes between N·A/S and
// (N−1)·A/S + M, in any order of its tasks. The time of a phase is estimated by the mean of these bounds, and the time
// of a job by the sum over its phases: Σ (N−1/2)·A/S + M/2.
//
// Let D be the time that is left, a = (N−1/2)·A for each phase, and C = Σ M/2. Lagrange's multipliers give the fewest
// slots of each phase p with which the estimate is at most D:
//
//	S_p = √a_p · Σ_q √a_q / (D − C)
//
// The numbers are rounded up, and then reduced again phase by phase as long as the estimate allows it. A phase gets at
// most as many slots as it has tasks and as its class has slots. A job that cannot be in time gets all slots that it
// can use.
//
// Schedule runs the tasks and does not preempt them. Whenever slots are free, it goes through the jobs by deadline
// (ties by submission, then index). Jobs whose deadline has passed come last. Each job starts tasks of its current
// phase until it has the fewest slots that it needs for its remaining work. The rule says what happens to slots that
// are then still free. Under Least they stay idle. Under Spare they go to jobs in the same order. Under Most every job
// takes all slots that it can use from the start.
//
// # Shapes and units
//
// All times are in the same unit, which may be any unit. Deadlines are instants. Slots are counted by class. The value
// of a job is earned if the job ends at its deadline or earlier. The profit is the sum of the earned values.
//
// # Guarantees
//
// A phase that runs alone on S slots stays within its bounds. For each phase, Fewest returns at most one slot more than
// the minimum. No slot runs two tasks at the same time. No phase begins before the previous phase of its job has ended.
//
// # Errors
//
// Errors are of kind Invalid and name the job, the phase and the field.
//
// # Cost
//
// O(jobs in the system) for each task that ends, and O(log) for each that starts.
//
// # Source
//
// A. Verma, L. Cherkasova, R. Campbell, ARIA: automatic resource inference and allocation for MapReduce environments,
// 2011, as described in Ding et al., sections 6 and 7.2 (figure 14). The rules Spare and Most are the algorithms
// MinEDF-WC and MaxEDF in the same authors' paper "Two sides of a coin", 2012. This package differs in three points. A
// phase has bounds as a whole; the first shuffle is not separate. Jobs that are already late do not go first. Spare
// slots are not taken back from a running task.
package aria
