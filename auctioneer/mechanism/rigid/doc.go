// Package rigid simulates a machine with jobs that each need a fixed number of nodes at the same time. A policy decides
// which jobs start when. The mechanisms fifo, fairshare and backfill share it.
//
// # Model
//
// A job needs Width nodes for Runtime without interruption; the policy knows only its Estimate. Events of an instant apply
// in this order: jobs end or outlive their estimates, jobs arrive, then the policy decides once. A job of runtime 0 also
// needs its nodes: it ends at the instant it starts, and the policy then decides again. Jobs arrive in the order of
// submission, ties by index, and end in the order of their indices.
//
// When a job outlives its estimate, its expected total time is doubled, as often as needed.
//
// # Shapes and units
//
// Times are in any one unit, from −Largest to Largest (BSD's minute is 60 of
// them); jobs, schedules and measures are by index in the input. Flow is finish
// less submission, bounded slowdown (BSD) flow/max(runtime, 60), makespan the
// last finish less the first submission, utilisation the work done over nodes
// times makespan (0 where the makespan is 0). The posted price is for a node
// during a unit of time.
//
// # The document
//
// The baselines read {"nodes", "jobs": [{"submit", "runtime", "width",
// "estimate"?, "user"?, "weight"?, "budget"?}…], "price"?} and keys of their
// own; they print "start", "finish", "flow", "bsd" by job, "makespan",
// "utilisation", "mean_flow", "mean_bsd", and with a price "payments" and
// "revenue": a job pays the price of what it used, at most its budget. The
// estimate is the runtime where none is given; the weight is the user's, 1 where
// none is given, and must be the same on all jobs of a user; jobs without a user
// are the user "". Keys that a mechanism does not use are checked and have no effect, so the same document works for all
// of them.
//
// # Errors
//
// Numbers out of range and jobs wider than the machine are Invalid, naming the
// job and the field.
//
// # Cost
//
// O(n log n) and what the policy takes; memory O(n).
package rigid
