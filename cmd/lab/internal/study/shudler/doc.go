// Package shudler reproduces what S. Shudler, L. Amar, A. Barak and A. Mu'alem, "The effects of
// untruthful bids on user utilities and stability in computing markets", report of their market on
// a real log.
//
// # Model
//
// Every record of the log with a run time (0 included) and one processor is a serial job. A record
// with n processors becomes n jobs. The private value of a second is drawn from N(30, 15) for four
// jobs of five and from N(150, 15) for the others, again until it is positive. A job is aggressive
// with probability one in ten. Its bid is uniform between (1−β)·w and w; jobs that are not
// aggressive have β = 0.1. A seed fixes the values, which jobs are aggressive, and where in its
// range each bid lies, so that the cells of a table differ by nothing else. Groups A, B and C are
// the thirds of the jobs by run time, ties by position.
//
// The designer's payoff is the revenue over the total weighted flow time. The users' payoff is the
// mean utility of the aggressive jobs of a group. Both are normalised over the cells of both
// tables: the designer's by the largest; the users', which is negative, as the largest over it.
package shudler
