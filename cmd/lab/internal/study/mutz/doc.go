// Package mutz reproduces the figures of A. Mutz, "Eliciting Honest Behavior on Computational Grids", 2008: figures 4.1
// to 4.5 for a batch queue, 6.1 to 6.7 for a batch queue with jobs of any width, and 5.5 to 5.14 and 7.1 to 7.11 for a
// reservation system. They show how much users gain by false declarations, and how long decisions and payments take.
// They also show how far the sum of payments is from zero, and how much a deeper search improves the schedules.
//
// # Model
//
// Each study compares Candor's own mechanism with the thesis' way: expectations that are estimated separately at each
// place (anew); a table whose cells hold lists of bids, computed again without each bid (table); random orders, drawn
// again for each payment (anewSearch); and a search of all orders (brute force).
//
// A payoff is what an outcome is really worth to a participant, minus its payment. Dots of a figure that belong
// together, one for each declaration, have the same competitors. The gain of a lie is the mean of the differences
// between such dots. The best of many lies can look good by luck. So the best lie is chosen with one half of the dots,
// and its gain is measured with the other half.
//
// The thesis uses uniform distributions, and gives their ranges only for figures 5.5 to 5.7. The other ranges are our
// choice: constants that are named on the pages. With these ranges, the bids of the thesis' participants are neither
// the highest nor the lowest.
//
// Times are processor times on the machine of the study. Everything else depends only on the seed.
package mutz
