// Package backfill serves jobs in the order in which they came, but lets a later
// one start on nodes that would stand idle, if by the estimates this delays
// nobody who holds a reservation.
//
// # Model
//
// Schedule: jobs of fixed width on one machine, with estimates of their
// runtimes, under the conventions of package rigid for events of an instant and
// for jobs that outlive their estimates: such a job is expected to take twice as
// long, in all, as often as needed.
//
// EASY: jobs start in order of arrival while they fit. The first that does not
// has a reservation: its shadow time is when enough nodes are expected to be free
// for it, and what is free then beyond its width is spare. Behind it, in order of
// arrival, a job starts now if it fits in what is free, and either is expected to
// end by the shadow time (the same instant will do) or fits in what is spare,
// which it then uses up.
//
// Conservative: every job is promised, when it arrives, the soonest window that
// the running jobs and the earlier promises leave. When a job ends before it was
// expected to, all waiting jobs are given new promises in the order of arrival,
// each placed anew among those of all the others. When one outlives its
// estimate, all promises are made anew behind it.
//
// The JSON document is that of package rigid and "variant".
//
// New makes the mechanism of a live market. Class by class, a job with work
// pending wants its width (or what is pending of it, if that is less) at once, or
// if that is at most 1 as many slots as it has tasks; it is taken to hold them for
// its declared length, for ever where it declared none. Running jobs hold theirs
// until they are expected to end, counted from when the job first started; for a
// second after that they are taken to be about to end, as that has to be told. What
// can start now is ordered by directives, and the weights are in proportion to
// the slots ordered; where nothing can, all weight is on the oldest job. Agents
// that follow weights alone thus behave as in package fifo. A market in which
// something waits asks to be woken when the next job will be taken to outlive its
// length. The price is posted.
//
// # Shapes and units
//
// Those of packages rigid and mechanism.
//
// # Guarantees
//
// With estimates that are not too short, EASY never starts the front job after
// a shadow time it was given, and the conservative variant never starts a job after
// the first time it was promised. No promise is made later because of a later
// arrival, or an early end. For work of width 1 both are first come, first served,
// and no node idles while any waits. Jobs of estimate 0 are outside of this: no
// window can be kept for them, and they hold their nodes for an instant that no
// plan counts.
//
// Model: as in package fifo, with the true length. A length that is declared too short can let a job
// start sooner, and no price forbids it; the job is not ended at that length. Measured with candor audit on the serial
// jobs of package fifo, where no window is needed: as there. On five days of the log at 2.5 times its load,
// with gangs on 100 slots (180 jobs of three draws), a false length gains 0.007 [−0.007, 0.022] of the value, one
// job 1.3; the same work on fewer slots for longer, or on more, gains 139 [−40, 317] times the value, 60 of 157 jobs.
//
// # Disclosure
//
// That of package posted.
//
// # Changes of a bid
//
// Those of package posted: a budget may be raised. The length stays: windows were promised to
// others by it, and a job that stretched it late would break them.
//
// # Errors
//
// Those of packages rigid and posted; a variant that is neither is Invalid.
//
// # Cost
//
// EASY: O(log n) an event and for each job started, as long as narrow jobs are
// not rare among the short ones; at worst O(jobs waiting). Conservative:
// O(jobs waiting) windows an early end, each at the cost of package profile; else
// O(log n). Live: O(n log n) for n jobs with work pending, in each class.
//
// # Source
//
// D. Lifka, The ANL/IBM SP scheduling system, 1995 (EASY); A. Mu'alem and D.
// Feitelson, Utilization, predictability, workloads, and user runtime estimates
// in scheduling the IBM SP2 with backfilling, 2001 (both variants). That an
// estimate doubles when it is outlived is ours.
package backfill
