// Package bids says what the jobs of a workload are worth and what they bid. The bids are drawn from a declared model,
// or read from a file.
//
// # Model
//
// A slot-second is worth v credits to a job's owner. So the whole job is worth V = v·width·length, and a second of
// delay costs v·width. By default v is bimodal, as in Shudler et al.: 80 % of the values are normal with mean 30 and
// deviation 15, and 20 % have mean 150. Values are redrawn until they are positive. If the model has a spread of users,
// all values of a user are multiplied by the user's factor, which is lognormal with mean 1. With `by: user`, each user
// draws the mode once.
//
// Honest owners bid v. With shading, the aggressive part of the jobs bids uniformly from (1−β)v to v. The other jobs do
// the same with another β.
//
// The deadline is the submission plus the length times (1 + slack), and at least Least seconds after the submission. By
// default the slack is exponential with mean 2, as in Gu et al. The declared length is the run time, or what the log's
// user asked for, or the run time times a lognormal factor.
//
// The budget is Budget times the cost of the job's slot-seconds at its bid. The default of Budget is ten, so that the
// budget limits nobody who waits.
//
// # Determinism
//
// Each job's numbers come from a random stream of its own. The seed and the job's number and line in the log determine
// this stream.
package bids
