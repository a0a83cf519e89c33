// Package roaming is the pure part of jobs that another site runs: what can
// travel, what a site expects a job to cost and when to be complete, and which of
// several offers is best.
//
// # Model
//
// An offer is a completion time and a price. Where a market sells contracts, they
// are what it agrees to. In other markets they are expectations: the completion
// is that of the estimator, at the median, with its spread; the price follows
// from the market's rule and what a slot costs there now, as [Expect] says for
// each mechanism, and is never above the budget.
//
// The best offer is the one with the largest surplus: what completion then is
// worth to the job, by its own valuation, less the price. A job without a
// valuation goes where it is complete first within its budget.
//
// # Shapes and units
//
// Times are instants in microseconds, prices integers in microcredits, values
// floats in credits, as the valuations that they come from. Nothing is decided
// by map order or a clock: the instant is an argument.
//
// # Cost
//
// Choosing is O(n) in the offers, expecting O(s) in the stages of the job.
package roaming
