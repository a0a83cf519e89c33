// Package backfill serves jobs in the order of arrival, but lets a later job start on nodes that would be idle. A job
// with a reservation must not be delayed, if the estimates of run times hold.
//
// # Model
//
// Schedule: jobs of fixed width on one machine, with estimates of their runtimes, with the rules of package rigid for
// events at the same time. When a job outlives its estimate, the estimate is doubled, as often as needed.
//
// EASY: jobs start in the order of arrival while they fit. The first job that does not fit has a reservation. Its
// shadow time is when enough nodes are expected to be free for it. The nodes that it will not need at that time are
// spare. A later job, in the order of arrival, starts now if it fits into the free nodes, and either is expected to end
// at the shadow time or earlier, or fits into the spare nodes. In the second case it uses up spare nodes.
//
// Conservative: every job is promised a window when it arrives, the earliest that running jobs and earlier promises
// leave. When a job ends earlier than expected, all waiting jobs get new promises, in the order of arrival; each job is
// placed again while all other jobs keep their promises. When a job outlives its estimate, all promises are dropped and
// made anew.
//
// The JSON document is the document of package rigid with the additional key "variant".
//
// New makes the mechanism of a live market. It decides class by class. A job with pending tasks asks for as many slots
// as its width, or as its pending tasks if these are fewer. If its width is at most 1, it asks for as many slots as it
// has tasks. It is expected to hold them for its declared length. A job without a declared length is expected to hold
// them for ever. A running job holds its slots until its expected end, counted from its first start. In the second
// after its expected end, the job is expected to end at any moment, because reports take time. Directives order the
// starts that are possible now. The weights are in proportion to the slots in these orders. If nothing can start, the
// oldest job has all the weight. So agents that ignore directives behave as in package fifo. If a job waits, the market
// asks to be woken when the next running job outlives its length. The price is posted.
//
// # Shapes and units
//
// See packages rigid and mechanism.
//
// # Guarantees
//
// If estimates are not too short, EASY never starts the front job after a shadow time that it had, and the conservative
// variant never starts a job after the first time that it promised. Later arrivals and early ends never make a promise
// later. For work of width 1 both variants are first come, first served, and no node is idle while a job waits. This
// does not hold for jobs with an estimate of 0, which no plan contains.
//
// Honesty is defined as in package fifo; a bid also declares the job's length. A declared length that is too short can
// let a job start earlier; no price prevents this, and the job is not ended at that length. On the serial jobs of
// package fifo, candor audit measures the same as for fifo, because these jobs need no windows. The audit also ran five
// days of the log at 2.5 times its load, with gangs on 100 slots (180 jobs of three draws). There a false length gains
// 0.007 [−0.007, 0.022] of the value on average, and one job gains 1.3. Declaring the same work on fewer slots for
// longer, or the same work on more slots, gains 139 [−40, 317] times the value on average; 60 of 157 jobs gain.
//
// A task of several slots is planned like a job of that width, on slots of any nodes, and may start later than planned,
// because a node must first gather them. So neither guarantee holds for such a task. Measured on 75 jobs of several
// slots, drawn as in package fifo: declaring the same work on fewer or more slots loses.
//
// # Disclosure
//
// As in package posted.
//
// # Changes of a bid
//
// As in package posted: a budget may be raised. The length cannot change, because windows promised to other jobs depend
// on it.
//
// # Errors
//
// As in packages rigid and posted; an unknown variant is Invalid.
//
// # Cost
//
// EASY: O(log n) for each event and each job started, if many short jobs are also narrow; at worst O(waiting jobs).
// Conservative: O(waiting jobs) windows for each early end, each at the cost of package profile; otherwise O(log n).
// Live: O(n log n) for n jobs with work pending, in each class.
//
// # Source
//
// D. Lifka, The ANL/IBM SP scheduling system, 1995 (EASY); A. Mu'alem and D. Feitelson, Utilization, predictability,
// workloads, and user runtime estimates in scheduling the IBM SP2 with backfilling, 2001 (both variants). Doubling an
// estimate that a job has outlived is our addition.
package backfill
