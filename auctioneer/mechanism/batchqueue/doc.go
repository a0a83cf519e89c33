// Package batchqueue runs a queue first come, first served, but discards a job that is worth less than what its run
// costs the jobs behind it. A job pays the cost that its announcement is expected to cause, and receives a part of the
// others' payments. So in each decision the truth is best, and the payments sum to zero.
//
// # Model
//
// The front job is worth v and takes the time r. Each other job l loses d_l for each unit of delay. The front job runs
// if
//
//	v ≥ Σ_l d_l·delay_l
//
// and is discarded otherwise. If each job takes the whole machine, delay_l is the front job's run time r. With jobs of
// any width, two schedules are made: one with the front job, and one without it. Each schedule puts the jobs, in queue
// order, into their earliest windows. delay_l is the difference between the starts of job l in the two schedules. It is
// negative if job l starts earlier with the front job than without it.
//
// U_l is what the decision is worth to l. If the front job runs, this is v for the front job and −d_l·delay_l for
// another job; otherwise it is 0. The expected externality of j is G_j = E[Σ_{l≠j} U_l], with j's type as announced and
// the other types drawn from the beliefs about them. In a queue of I jobs, job i pays the mean of the other jobs' G_j,
// minus its own G_i. If the result is negative, job i receives money.
//
// Decide makes a decision, Pay computes the payments. Unless an exact expectation is computed, Pay draws the types of
// the other jobs at random. In mode Priority it draws values and costs of delay, and uses the announced lengths and
// widths. In mode Full it also draws lengths and widths, so the schedules differ between draws. NewMechanism makes the
// mechanism of a live market, which considers the front job when it could start.
//
// Beliefs are the types of considered jobs (the last 1,000) whose accounts have no job in the queue, if there are 20 or
// more of them. Otherwise they are Market.PriorJobs, which every such market must have. So an account cannot change the
// beliefs from which its own payments are computed. A new leader begins with PriorJobs again.
//
// Pivot is a second pricing of the same decisions, without beliefs (Market.Pricing "pivot"). An account's stake is what
// the run of the front job is worth to all its jobs together. An account whose announcements change the decision pays
// the site a tax: what the others lose by the change. For each account, the site then computes the least total of
// payments, over all announcements that this account could have made. If there are n accounts, this account gets back
// 1/n of this total as a rebate. The site keeps the payments that it does not give back.
//
// With pivot, accounts pay at the decision, for the declared lengths: a job that takes less time does not pay less. The
// declared lengths determine the least value with which the front job runs, and the truth is best only if the job pays
// this value. Example: a job worth 80 declares 10 s, takes 5 s, and costs the others 10 a second. With a true bid the
// job is discarded. If it paid only 50, for the 5 s that it took, a bid of 100 would gain 30. In 3,000 queues, with
// actual times anywhere between 0 and the declared time, 697 jobs gained by a larger bid under such a charge. On
// average over all jobs the gain was 0.116 ± 0.009 of the value. With charges by declared lengths no job gained.
//
// Payments to a waiting job stay with the site until the job is considered. If the job ends before it is considered,
// these payments go back to the payers, but a rebate stays with the site.
//
// Visitors, jobs of other sites, pay the site and receive nothing, because another site could invent accounts and would
// be paid for each. With pivot, all accounts of another site count as one. Otherwise that site could use two accounts
// with such high bids that the bids of one account are enough for the decision. Without either account, the decision
// would be the same, so neither account would pay. The tax of the other site is divided among its jobs that gain by the
// decision, in proportion to their gains. Visitors get no rebate. With expected externalities, a visitor pays what the
// others are expected to lose by its bid: the G that it would have with a value or cost of delay of 0 (the largest
// possible G), less its actual G. The jobs of the site pay one another as without visitors: each pays the mean G of the
// site's other jobs less its own G. A job of the site that is alone among visitors pays like a visitor. Beliefs do not
// include the types of visitors. A visitor's payments are charged to its authorisation when the job ends, even if the
// job fails or is cancelled.
//
// Maintenance windows: the schedules with and without the front job leave the closed nodes free. A job that even an
// empty machine could not run before a window is not in the queue until the window is over.
//
// Conventions: a job of length 0 takes no slot time and delays no job; in a schedule it starts when its nodes are free
// for an instant. A single job pays nothing, and an empty queue has no decision. A value and a threshold are equal if
// they differ by at most 1e-12 of the threshold, so that rounding does not break a tie.
//
// A task of k slots is a job of width k, like a gang of k tasks. Decisions and prices count slots over all nodes. But
// the task must wait until a single node has k free slots, while a gang can use any slots. A job on several nodes,
// whose width is the number of all its slots, must wait until each of its nodes has enough. So if jobs of several
// widths share small nodes, the task starts later than decided, and so do the jobs behind it. Payments follow the
// decision. Nothing is proven about widths. Measured on 75 jobs of several slots, drawn as in package fifo: declaring
// the same work on fewer or more slots gains 18 [−35, 71] times the job's value, and at pivot prices 13 [−5.7, 32]
// times.
//
// # Shapes and units
//
// Slices are by position in the queue, the front job first. The caller chooses one unit of money and one unit of time;
// d is in units of money for each unit of time. All numbers are from 0 to Largest. Times begin at the decision. On a
// live market money is in credits and time in seconds; payments are rounded once, half to even, to the microcredit.
//
// # Guarantees
//
// With expected externalities, payments sum to exactly zero, for any number of draws: each G_j is estimated once, and
// its weights in the payments cancel. The remainder of the rounding, less than one unit for each job, goes to the first
// job (balance, Microcredits).
//
// With exact expectations, and everybody else honest, nobody gains by announcing another v or d. The announcement of i
// can change only one part of i's payoff: E[Σ_l U_l], with i's true U. The decision maximises Σ_l U_l. The same holds
// for jobs of any width, if delays are estimated as here: as if all jobs in the queue will run. It does not hold for
// lengths and widths, and truth is no dominant strategy. Taking part is not always worth it: a job can pay more than it
// gains. No mechanism has budget balance, efficiency and individual rationality together.
//
// The truth is also best for a visitor: its payment is −G plus an amount that its announcement does not change. The
// payment is never below 0. The site keeps what visitors pay, so the sum of what all jobs pay is at least zero.
//
// With draws instead of exact expectations, all this holds up to the error of the draws. A live market limits payments
// to budgets. Then the last jobs in the queue receive less, and the sum stays zero.
//
// With pivot, in one decision, the true v and d are the best announcement of an account, whatever the others announce.
// Let x be the account's stake and s the sum of the others' stakes. The decision yields max(0, x + s) to all together.
// The account's payoff is its true stake if the front job runs, less its tax. With the truth this is max(0, x + s) −
// max(0, s). The account cannot change the second term, nor its rebate. Announcing the true stake is never worse than
// announcing none. The sum of rebates is never more than the sum of taxes: each rebate is an equal part of at most what
// all pay. If the front job's value is much larger than the threshold, the accounts get back (I−2)/I of its tax. In a
// live market a job counts for no more than what is left of its budget, so that every tax can be paid.
//
// Both pricings have limits. A job does not pay for false lengths and widths; a job that runs longer than it declared
// is ended. Each decision is priced as if no other followed, although an announced cost of delay counts in all
// decisions. Accounts that collude, or belong to one user, can gain: a false account gets a rebate of its own.
//
// candor audit measured two days of the KTH SP2 log on 4 nodes at four times its load (57 jobs, bids drawn 3 times;
// means with 95 % intervals; a gain is called sure if its whole interval is above 0). No fixed lie about the value
// gains on average with pivot, 0 [0, 0] of the job's value. By expected externalities it gains 0.0008 [−0.0001,
// 0.0016]. Two of 57 jobs gain by their best lie after the fact with pivot, up to 1.6 of the value, because of later
// decisions; with expected externalities eight jobs gain. A false length gains 0.03 [−0.01, 0.07] by expected
// externalities and −0.005 [−0.011, 0.002] with pivot. In a crowd of 80 jobs on 4 slots, a value announced as 1.5 times
// the true value gains 0.01 [−0.04, 0.06] with pivot.
//
// Over 15 days on 3 slots at twice the load (510 jobs of three draws) by expected externalities, the surest lie about
// the value gains 0.03 [−0.01, 0.07] of the value. A lie about the cost of delay gains 18 [−4, 40] times the value, and
// a lie about the length 0.8 [−0.3, 1.9]. A later arrival surely gains, 12 [2.9, 20], because the time of arrival is
// not priced. Payments vary so much that 279 jobs gain by their best lie after the fact. The control, in which jobs pay
// what they announce or nothing, gains 5.8 [0.1, 11.5].
//
// With expected externalities, the truth is best in each decision, but not over several decisions. Over three days of
// the SDSC SP2 log (from day 300) on 4 slots at four times its load (42 jobs of 30 draws), an announced cost of delay
// of twice or four times the true one surely gains 2.8 [0.8, 4.9] or 5.7 [2.2, 9.2] times the value. A value and a cost
// of delay of four times the true ones surely gain 5.5 [2.0, 9.0]. With pivot the same lies surely lose: 0.19 [0.06,
// 0.33], 0.85 [0.44, 1.26] and 1.0 [0.6, 1.4].
//
// Over 15 days on 3 slots at twice the load (573 jobs of three draws, each of an account of its own) with pivot, the
// surest lie about the value gains −0.0004 [−0.0009, 0.0002]. A lie about the cost of delay alone gains 1.7 [−2.1,
// 5.5], and a lie about the length −0.012 [−0.017, −0.007]. A second job that nobody needs gains 9 [−12, 31]. A slow
// job loses 1.3 [1.3, 1.4], because it is ended. Three false names gain 28 [10, 47] times the value. By their best lie
// about the value after the fact 13 jobs gain, 1,119 times the value at most. In the 510 jobs of make audit, a second
// job that nobody needs surely gains if it belongs to another account of the liar, 15 [0.12, 30] times the value. It
// raises taxes, and both accounts get a part of them. A second job of the same account gains nothing, −12 [−30, 6].
// With all actors (30 jobs), three lies gain nothing on average: a job that exits with 1 or is cancelled when its
// results are there, a job that is cancelled and submitted again, and ghost jobs (which nobody needs) that are
// cancelled.
//
// A live trial had four jobs on one slot. The liar's job is worth 20; it waits behind a job worth 80 and before a job
// worth 60. With expected externalities, a job that is cancelled before its turn and submitted again at the end of the
// queue receives 138. Without this trick it would have paid 46: waiting jobs are paid at each decision, and a later
// arrival is not priced. A ghost job loses 15 to 49. With pivot the second submission gains 1. A ghost job of the
// liar's other account, with a high cost of delay and cancelled after the first decision, gains 6.5: it makes the front
// job's tax larger, and the liar gets a rebate from this tax. A ghost of the same account gains nothing, and a ghost
// that stays loses 18 or 32.
//
// On three logs (KTH SP2, SDSC SP2 and HPC2N, four days at three times their loads, gangs) both pricings decide alike,
// so that welfare is the same to the credit. With pivot jobs get back 28, 34 and 18 % of what jobs pay; with expected
// externalities they get back all. With pivot 8, 5 and 5 % of the jobs pay more than their value; with expected
// externalities 33, 20 and 27 %. The payment that 5 % of the jobs exceed is smaller with pivot: 0.14, 0.55 and 0.37 of
// the payment with expected externalities. In the sample cases of testdata, pivot gives back 60 % of the taxes on a
// whole machine and 39 % with widths, and payments are about half as large (root mean square 13 instead of 23, and 12
// instead of 29).
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
// Owners see everything about their own jobs, operators about all jobs. Honesty is best in expectation, over the
// beliefs about others. An owner who knew the announcements of others could gain by a lie.
//
// # Changes of a bid
//
// No term of a bid may change. Payments are computed from announcements before the decision; an owner who could
// announce again would react to what the queue has shown since. A job that was not considered yet can be cancelled, and
// submitted again at the end of the queue.
//
// # Errors
//
// A number that is negative, not finite or above Largest, a job wider than the machine, and probabilities that do not
// sum to one within 1e-9 are refused as Invalid. The error names the job and the field. An exact expectation that takes
// more than MaxSteps is refused as TooLarge.
//
// # Cost
//
// A decision takes two schedules, O(n) if each job takes the whole machine. In mode Priority, and if each job takes the
// whole machine, payments take O(1) for each job and draw: only job j's term of the total loss is replaced. In mode
// Full with widths they take n pairs of schedules for each draw. On average half of each pair is shared with other
// pairs. Draws run on all processors; the result does not depend on the number of processors.
//
// Draws are a Latin hypercube, in at least 16 batches; the means of the batches give the standard errors. Compared with
// independent draws, the variance is 13 times smaller if the front job nearly always runs, and a fifth smaller if it
// runs about half of the time. Antithetic pairs were no better than independent draws in the first case, and worse in
// the second.
//
// If the loss of the others is a sum of independent terms, an exact expectation does not enumerate all profiles. It
// computes the distribution of the sum, merges equal sums, and leaves out each job in turn by recursive halving. The
// time is polynomial if the terms are multiples of a unit. In mode Full with widths it enumerates all profiles.
//
// # Source
//
// A. Mutz, "Eliciting Honest Behavior on Computational Grids", 2008, chapters 4 and 6: equations 4.1 to 4.3 and 6.1 to
// 6.3 are Decide, 4.4 to 4.6 and 6.4 to 6.6 Pay. We differ as follows.
//
//   - Equation 4.2 prints Σ d_j·r_j, with each job's own length. But a job is delayed by the front job's length.
//     With the printed formula, lies would pay; see the tests.
//   - The thesis estimates each expectation again at each place where the formula contains it, so its payments sum to
//     zero only within 7 %.
//   - The thesis takes O(n³) for each draw, and with widths O(n⁴).
package batchqueue
