// Package mutz reproduces the figures of A. Mutz, "Eliciting Honest Behavior on
// Computational Grids", 2008: what users of a batch queue (figures 4.1 to 4.5, and
// 6.1 to 6.7 for jobs of any width) and of a reservation system (figures 5.5 to
// 5.14, and 7.1 to 7.11) get by what they declare, how long decisions and payments
// take, how far payments are from a sum of zero, and what a deeper search brings.
//
// # Model
//
// Each study runs Candor's own mechanism and the thesis' way of working out the
// same thing, side by side: expectations estimated anew wherever they occur
// (anew), a table whose cells hold lists of bids, filled again without each bid
// (table), random orders drawn anew without each bid (anewSearch), and all orders
// (brute force).
//
// A payoff is what an outcome is worth to a participant as it truly is, less its
// payment. Dots of a figure that belong together, one for each declaration, are
// of the same competitors; what is gained by a lie is the mean of the differences
// between such dots. The best of many lies looks good by luck: it is chosen on one
// half of the dots and measured on the other.
//
// The thesis has uniform distributions, and gives their ranges for figures 5.5 to
// 5.7 only. Ours are constants here, named on the pages, and chosen so that its
// participants are somewhere in the middle.
//
// Times are processor time, measured where the study runs; all else is a function
// of the seed.
package mutz
