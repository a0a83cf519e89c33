// Package shudler reproduces the results of S. Shudler, L. Amar, A. Barak and A. Mu'alem, "The effects of untruthful
// bids on user utilities and stability in computing markets", about their market on a real log.
//
// # Model
//
// Every record of the log with a run time (0 included) and one processor is a serial job. A record with n processors
// becomes n jobs. The private value of a second is drawn from N(30, 15) for four jobs of five, and from N(150, 15) for
// the other jobs. It is drawn again until it is positive. A job is aggressive with probability one in ten. Its bid is
// uniform between (1−β)·w and w; jobs that are not aggressive have β = 0.1. A seed fixes the values, which jobs are
// aggressive, and where in its range each bid lies. So the cells of a table differ only in the price, the algorithm and
// β. Groups A, B and C are the thirds of the jobs by run time. Jobs with the same run time are in the order of the log.
//
// The designer's payoff is the revenue over the total weighted flow time. The users' payoff is the mean utility of the
// aggressive jobs of a group. Both are normalised over the cells of both tables, so that the best cell is 1. The
// designer's payoff is divided by the largest one. The users' payoffs are negative, so the largest one is divided by
// each of them.
package shudler
