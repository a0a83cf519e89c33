// Package sampler draws jobs in proportion to their weights: it is how a node
// agent turns an allocation vector into the next job to work for. It is pure;
// the random number arrives as an argument.
//
// # Model
//
// A [Sampler] holds pairs of a job and a weight. [Sampler.Sample] maps a
// number u, uniform in [0, 1), to job i with probability w_i / Σ w.
//
// # Cost
//
// For n jobs, a change of weight, a removal and the arrival of a job with the
// highest number so far cost O(log n), a draw O(log n), in each case plus a
// scan of one group of at most 32 neighbours. Arrivals among older jobs are
// merged, all those of one call in one O(n) pass (some microseconds for
// thousands of jobs). 12 bytes are kept for each job, and half a byte of sums.
//
// # Rounding
//
// Jobs lie in ascending order, in groups; a binary tree of sums stands over
// the groups, and an inner sum is always computed anew from its two children.
// So no error builds up however many updates there were and however far apart
// the weights are: a sum is off by at most log₂ n roundings of itself. (A
// Fenwick tree updates its sums by differences; a heavy job that came and
// went would leave its rounding error behind.) A draw never ends on a job
// whose weight is zero.
//
// # Errors
//
// Weights that are negative, infinite or not a number, and job numbers that do
// not ascend, are refused as Invalid, and nothing is changed.
package sampler
