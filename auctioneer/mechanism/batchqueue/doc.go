// Package batchqueue runs a queue first come, first served, but discards a job
// that is worth less than what its run costs those who wait behind it. Jobs pay
// and receive what they can be expected to cost others by what they announce, so
// that honesty pays, and the payments sum to zero.
//
// # Model
//
// The front job is worth v and takes r; each other job l loses d_l for a unit of
// time that it is delayed. The front job runs if
//
//	v ≥ Σ_l d_l·delay_l
//
// and is discarded else. On a machine that each job takes whole, delay_l is the
// front job's r. With jobs of any width it is the difference between two
// schedules, in which the jobs are put in queue order into their soonest windows:
// with the front job and without it. It is negative where a job gains by that.
//
// U_l is what the decision is worth to l: v for the front job and −d_l·delay_l
// for another if the front job runs, else 0. G_j = E[Σ_{l≠j} U_l], with j's type
// as announced and the others' drawn from what is believed about them, is the
// expected externality of j. Of I jobs, i pays the mean of the others' G_j less
// G_i; if that is negative it receives.
//
// Decide decides, Pay works out payments. In mode Priority, values and costs of
// delay are drawn and lengths and widths are as announced; in mode Full whole
// types are drawn, and the schedules differ from draw to draw. NewMechanism makes the
// mechanism of a live market, which considers the front job when it could start.
// What it believes of the jobs is, in this order, what Believe says of earlier ones,
// if that is 20 types or more; Market.PriorJobs; that they are like those present.
//
// Conventions where nothing is said. A job of length 0 takes nothing and delays
// nobody; in a schedule it needs its nodes free at an instant. A job alone pays
// nothing, an empty queue decides nothing. Value and threshold are equal if they
// are so to 1e-12 of the threshold: a tie of decimals is a tie.
//
// # Shapes and units
//
// Slices are by position in the queue, the front job first. Money and time are in
// any one unit each, d in money for a unit of time, all numbers from 0 to
// Largest. Times begin at the decision. On a live market money is in credits and
// time in seconds; payments are rounded once, half to even, to the microcredit.
//
// # Guarantees
//
// Payments sum to zero exactly, for any number of draws: each G_j is estimated
// once and occurs with weights that cancel, and Balance and Microcredits take
// care that rounding leaves nothing over, at the first job's expense: less than
// one unit for each job.
//
// With exact expectations, and everybody else honest, nobody gains by
// announcing another v or d: what i's announcement changes of its payoff is
// E[Σ_l U_l] given it, with i's own U as it truly is, and the decision is the one
// that maximises Σ_l U_l. For jobs of any width that is so as well, given how
// delays are estimated: that all jobs in the queue will run. It does not extend
// to lengths and widths, and truth is no dominant strategy. Nor is taking part
// always worth it: budget balance, efficiency and individual rationality do not
// go together, and a job can pay more than it gains.
//
// With draws this holds up to their error. A live market limits payments to
// budgets; then those last in the queue receive less, and the sum stays zero.
//
// # Disclosure
//
//	what another account may learn                                      before the decision on a job          after it
//	names, values, costs of delay, lengths, widths, budgets, the price  no                                    no
//	how many jobs there are, slots and idle slots                       yes                                   yes
//	how many slots are taken, from when until when                      no                                    yes, not by whom
//	what its run costs the others, to the front job's owner             unless one other account alone waits  the same
//	who paid it and whom it paid, to the owner                          no                                    yes
//
// Owners see all of their own jobs, operators all. Honesty is best in expectation
// over what is believed of others: who knew what they announced could do better by a
// lie.
//
// # Changes of a bid
//
// No term of a bid may change: each payment is made of what was announced before the
// decision, and who could announce anew would answer what the queue has told since. A job
// that was not considered yet can be cancelled, and submitted again at the end of the queue.
//
// # Errors
//
// A number that is negative, not finite or above Largest, a job wider than the
// machine, probabilities that do not sum to one within 1e-9: refused as Invalid,
// naming the job and the field. An exact expectation that takes more than MaxSteps
// is refused as TooLarge.
//
// # Cost
//
// Deciding takes two schedules, O(n) for a whole machine. Payments take O(1) for
// each job and draw in mode Priority and on a whole machine: what others lose in
// total is known, and j's part is put in its place. In mode Full with widths they
// take n pairs of schedules for each draw, half of each shared, kept as lists if
// they are short; draws are shared among the processors, and what they come to
// does not depend on how many there are.
//
// Draws are spread as a Latin hypercube, in at least 16 batches whose means give
// the standard errors; how much that saves depends on how nearly payoffs add up:
// a variance from 13 times smaller than that of independent draws (a front job
// that nearly always runs) to a fifth smaller (one that is a toss-up). Antithetic
// pairs did no better than independent draws in the one and worse in the other.
//
// An exact expectation does not go through all profiles where what the others
// lose is a sum of independent terms: it adds up the distribution of the sum, in
// which equal sums are one, leaving out each job in turn by halving. Where terms
// are multiples of a unit that is polynomial. In mode Full with widths it goes
// through all profiles.
//
// # Source
//
// A. Mutz, "Eliciting Honest Behavior on Computational Grids", 2008, chapters 4
// and 6: equations 4.1 to 4.3 and 6.1 to 6.3 are Decide, 4.4 to 4.6 and 6.4 to 6.6
// Pay. We differ as follows.
//
//   - Equation 4.2 prints Σ d_j·r_j, each job's own length in place of the front
//     job's, for which it is delayed. So read, lies pay; see the tests.
//   - The thesis estimates each expectation anew wherever it occurs, and finds
//     its payments to miss zero by up to 7 %.
//   - It takes O(n³), and with widths O(n⁴), for each draw.
package batchqueue
