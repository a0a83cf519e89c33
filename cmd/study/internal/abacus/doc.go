// Package abacus reproduces what J. Ding, Z. Zhang, R. T. B. Ma and Y. Yang,
// "Auction-based cloud service differentiation with service level objectives",
// report of their auction by itself: the example of figures 2 to 4, and how
// many rounds and how long it takes, figures 6 to 8.
//
// The times of figure 8 are measured where the study runs; all else is a function
// of the seed.
package abacus
