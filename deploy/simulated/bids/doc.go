// Package bids says what the jobs of a workload are worth and what they bid:
// drawn from a declared model, or read from a file.
//
// # Model
//
// A slot-second is worth v credits to a job's owner: the job V = v·width·length
// in all, a second of its delay v·width. By default v is bimodal, as in
// Shudler et al.: 80 % normal with mean 30 and deviation 15, 20 % with mean 150,
// redrawn until positive. A user's jobs are then multiplied by a factor of the
// user's own, lognormal with mean 1, where a spread is given; with `by: user` the
// mode is drawn once for a user.
//
// Honest owners bid v. With shading, a part of the jobs, the aggressive ones,
// bid uniformly from (1−β)v to v, and the others likewise with a β of their own.
//
// The deadline is the submission plus the length times 1 plus the slack, which
// is exponential with mean 2 by default, as in Gu et al., at least Least
// seconds after the submission. The length declared is the run time, or what the
// log's user asked for, or a factor of the run time, lognormal.
//
// The budget is Budget times what all of the job's slot-seconds cost at the
// bid, and by default ten times that: enough that it binds nobody who waits.
//
// # Determinism
//
// Each job's numbers come from a stream of its own, from the seed and the job's
// number and line in the log: leaving out other jobs does not change them.
package bids
