// Package shudler reproduces what S. Shudler, L. Amar, A. Barak and A. Mu'alem,
// "The effects of untruthful bids on user utilities and stability in computing
// markets", report of their market on a real log.
//
// # Model
//
// Every record of the log with a run time, 0 included, and a processor is a
// serial job; one with more processors becomes so many. The private value of a
// second is drawn from N(30, 15) for four jobs of five and from N(150, 15) for the
// others, anew until it is positive. A job is aggressive with a chance of one in
// ten; its bid is uniform between (1−β)·w and w, with β = 0.1 for those who are
// not. A seed fixes values, who is aggressive, and where in its range each bid
// lies, so that cells of a table differ by nothing else. Groups A, B and C are the
// thirds of the jobs by run time, ties by position.
//
// The designer's payoff is the revenue over the total weighted flow time. The
// users' is the mean utility of the aggressive jobs of a group. Both are
// normalised over the cells of both tables: the designer's by the largest; the
// users', which is negative, as the largest over it.
package shudler
