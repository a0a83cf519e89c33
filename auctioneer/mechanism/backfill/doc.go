// Package backfill serves jobs in the order of arrival, but lets a later job start on nodes that would
// be idle. By the estimates of run times, this must not delay a job that has a reservation.
//
// # Model
//
// Schedule: jobs of fixed width on one machine, with estimates of their
// runtimes, under the conventions of package rigid for events of an instant and
// for jobs that outlive their estimates: such a job is expected to take twice as
// long, in all, as often as needed.
//
// EASY: jobs start in the order of arrival while they fit. The first job that does not fit has a
// reservation. Its shadow time is when enough nodes are expected to be free for it. Nodes that are
// free at that time beyond its width are spare. A later job, in the order of arrival, starts now if
// it fits into the free nodes, and either is expected to end by the shadow time (at the latest in
// the same instant) or fits into the spare nodes. In the second case it uses up spare nodes.
//
// Conservative: every job is promised a window when it arrives, the earliest that running jobs and
// earlier promises leave. When a job ends earlier than expected, all waiting jobs get new promises, in
// the order of arrival; each is placed again while all others keep their promises. When a job
// outlives its estimate, all promises are made again after it.
//
// The JSON document is the document of package rigid with the additional key "variant".
//
// New makes the mechanism of a live market. It decides class by class. A job with work pending wants
// its width at once, or the pending part of it if that is less. If its width is at most 1, it wants as
// many slots as it has tasks. It is expected to hold them for its declared length, or without one for
// ever. A running job holds its slots until its expected end, counted from its first start. For one
// second after that it is still expected to end at any moment, because its end takes time to be
// reported. Directives order what can start now. The weights are in proportion to the ordered slots,
// or if nothing can start, all on the oldest job. So agents that follow only weights behave as in
// package fifo. If a job waits, the market asks to be woken when the next running job outlives its
// length. The price is posted.
//
// # Shapes and units
//
// See packages rigid and mechanism.
//
// # Guarantees
//
// If estimates are not too short, EASY never starts the front job after a shadow time that it had, and
// the conservative variant never starts a job after the first time that it promised. Later arrivals
// and early ends never make a promise later. For work of width 1 both variants are first come, first
// served, and no node is idle while a job waits. This does not hold for jobs with an estimate of 0: no
// window can be kept for them, and they hold their nodes for an instant that no plan counts.
//
// The model of honesty is the one of package fifo, with the true length. A declared length that is too
// short can let a job start earlier; no price prevents this, and the job is not ended at that length.
// Measured with candor audit on the serial jobs of package fifo, which need no windows, the result is
// the same as there. On five days of the log at 2.5 times its load,
// with gangs on 100 slots (180 jobs of three draws), a false length gains 0.007 [−0.007, 0.022] of the value, one
// job 1.3; the same work on fewer slots for longer, or on more, gains 139 [−40, 317] times the value, 60 of 157 jobs.
//
// # Disclosure
//
// As in package posted.
//
// # Changes of a bid
//
// As in package posted: a budget may be raised. The length cannot change, because windows promised to
// other jobs depend on it.
//
// # Errors
//
// As in packages rigid and posted; an unknown variant is Invalid.
//
// # Cost
//
// EASY: O(log n) for each event and each job started, if many short jobs are also narrow; at worst
// O(waiting jobs). Conservative: O(waiting jobs) windows for each early end, each at the cost of
// package profile; otherwise O(log n). Live: O(n log n) for n jobs with work pending, in each class.
//
// # Source
//
// D. Lifka, The ANL/IBM SP scheduling system, 1995 (EASY); A. Mu'alem and D.
// Feitelson, Utilization, predictability, workloads, and user runtime estimates
// in scheduling the IBM SP2 with backfilling, 2001 (both variants). Doubling an estimate that a job
// has outlived is our addition.
package backfill
