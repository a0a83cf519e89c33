// Package rigid simulates a machine with jobs that each need a fixed number of nodes at the same time. A policy decides
// when each job starts.
//
// # Model
//
// A job needs Width nodes for the time Runtime without interruption. The policy knows only its Estimate. Events at the
// same time are applied in this order: jobs end or outlive their estimates, then jobs arrive, then the policy decides
// once. A job of runtime 0 also needs its nodes: it ends at the instant at which it starts, and the policy then decides
// again. Jobs arrive in the order of submission, ties by index, and end in the order of their indices.
//
// When a job outlives its estimate, its expected total time is doubled, as often as needed.
//
// # Shapes and units
//
// Times are in any one unit, from −Largest to Largest. In a result, a slice with one number for each job has the order
// of the input. Flow is finish less submission. Bounded slowdown (BSD) is flow/max(runtime, 60), where 60 is a minute
// if the unit is a second. Makespan is the last finish less the first submission. Utilisation is the work done, divided
// by nodes times makespan (0 if the makespan is 0). The posted price is what one node costs during a unit of time.
//
// # The document
//
// The document of each mechanism that uses this package has {"nodes", "jobs": [{"submit", "runtime", "width",
// "estimate"?, "user"?, "weight"?, "budget"?}…], "price"?} and keys that only this mechanism has. The answer has
// "start", "finish", "flow", "bsd" by job, "makespan", "utilisation", "mean_flow", "mean_bsd", and with a price
// "payments" and "revenue". A job pays the price of what it used, at most its budget. Without an estimate, the runtime
// is the estimate. The weight is the weight of the user, and must be the same in all jobs of a user; without it, it is
// 1. Jobs without a user belong to the user "". Some of these keys have no effect in a mechanism; they are checked too.
//
// # Errors
//
// Numbers out of range, and jobs wider than the machine, are refused as Invalid. The error names the job and the field.
//
// # Cost
//
// O(n log n) time, plus the time of the policy, and O(n) memory.
package rigid
