// Package reservation sells a period of a machine's time by sealed bids. A bid asks for a number of consecutive
// granules (units of time) on a number of nodes, to end by a deadline. A bid is served completely or not at all. A
// winner pays what the others lose because of it.
//
// # Model
//
// Bid i occupies [t, t+l_i) on n_i nodes, with t ≥ 0 and t+l_i ≤ min(d_i, T), and is worth v_i if it is served. Let R
// be a set of schedules. W is the highest value of a schedule of R, and W(−i) the highest value if v_i is not counted.
// A schedule with the value W is chosen. A winner i pays W(−i) − (W − v_i), and a loser pays nothing: this is the
// generalized Vickrey auction over R. Example: two bids of 10 and 8 want the same time. The first wins and pays 8.
//
// Solve is for bids that take the whole machine; its R has all schedules. Orders and Find are for bids of any width.
//
// In Orders, R has one schedule for each given order: the bids are placed one by one into their earliest windows, and
// dropped if a window ends too late. The first order with the highest value is chosen.
//
// In Find, R has the schedules of candidates of two kinds. One kind is an order, random or by length, width and
// deadline; it gives one schedule. The other kind is a division of the machine into lanes. Each bid is given to one
// lane that is wide enough, or to none. R has every schedule in which each lane serves its bids one at a time. For each
// lane, the program for a whole machine finds the best of these schedules. So values only decide which schedule of R is
// chosen. R itself does not depend on values. With Search.Fixed all candidates are divisions into lanes, drawn without
// looking at bids. For each index of a bid a lane is drawn.
//
// NewMechanism makes the mechanism of a live market. When a period begins, it is sold to the bids that have arrived by
// then.
//
// Conventions: a bid of length 0 needs its nodes to be free at one instant, and occupies no nodes. If several schedules
// have the highest value, Solve decides bid by bid, by deadline and then index, and serves a bid only if the value
// would otherwise be smaller. Find chooses the candidate with the lowest number. Candidates are numbered from 0. A
// search with more candidates begins with the same candidates.
//
// A task of k slots is a bid of width k, like a gang of k tasks. The timetable counts slots over all nodes. The task
// starts on time if a single node has k free slots then. This is certain if nodes run no other tasks, or if all bids
// have the same width and it divides the number of slots of each node. A job on several nodes is a bid for all its
// slots. It starts on time if as many nodes as it asks for have enough free slots then. Otherwise it may start late. It
// is still ended when its time is over, and pays the same price. So the truth about widths is best only if tasks can
// start on time. Measured on 75 jobs of several slots, drawn as in package fifo: declaring the same work on fewer or
// more slots gains nothing.
//
// # Shapes and units
//
// Times are whole granules from the start of the period, up to 2^50. Money is in any unit, up to 1e15. Values are
// converted to integer multiples of a unit. The unit is 1 or 10⁻⁶ if all values are multiples of it and their sum is
// below 2^62 units. Then all results are exact. Otherwise the unit is a power of two, such that the sum has 61 bits,
// and values are rounded down. Slices are by position in Problem.Bids. A live market's prices are rounded once, half to
// even, to the microcredit.
//
// # Guarantees
//
// Solve's schedule is optimal. If a set of bids can be served one at a time, it can be served in the order of deadlines
// without gaps: exchanging neighbours in the wrong order, and closing gaps, makes no bid late. So let items be the bids
// in the order of deadlines. P_k(t) is the highest value of items before k if all end by t. S_k(t) is the highest value
// of the items from k on if the first of them starts at t:
//
//	P_{k+1}(t) = max(P_k(t), P_k(t−l_k) + v_k)   for l_k ≤ t ≤ d_k
//	S_k(t)     = max(S_{k+1}(t), S_{k+1}(t+l_k) + v_k)   for t ≤ d_k − l_k
//
// and W = S_0(0). Consider a set without k that can be served. Let t be when its items before k end. These are worth at
// most P_k(t). The items after k follow at once, and are worth at most S_{k+1}(t). Conversely, any two such sets can be
// served together. Hence W(−k) = max_t P_k(t) + S_{k+1}(t). (S_k is a table by the start time of these items, and not
// by the time that is left: a later start does not move their deadlines.) For a loser W(−k) is W, because the chosen
// schedule does not serve it.
//
// All guarantees are about what a bid reports. The page deploy/docs/honesty.md has measurements of what owners gain by
// commands, such as cancel. Reporting the true v_i is a dominant strategy for Solve, Orders and Find. Proof. R does not
// depend on values: Solve's R has all schedules. The R of Orders depends only on the given orders. The R of Find
// depends only on lengths, deadlines, widths, N, T, the seed and the number of candidates (type plan has no values).
// Let i report x, and let s be the chosen schedule of R. Let u(s) be the value of s to the others, by their reports. If
// s serves i, then i gains v_i − W(−i) + u(s). Otherwise i gains 0 = u(s) − W(−i), because then u(s) = W(−i). In both
// cases the gain is the value of s, with i's true value, less W(−i). W(−i) does not depend on x. If x = v_i, the chosen
// s has the highest value with i's true value. ∎ A payment is never above the reported value and never below 0: W − v_i
// ≤ W(−i) ≤ W, because the chosen schedule is in R, and no schedule is worth more without v_i. If values are decimals
// of up to six places, all this is exact. Otherwise it holds up to 2^−60 of the sum of all values, because the sum
// determines the unit.
//
// With Fixed the truth is dominant in value, length, width and deadline together. Then R has, for each candidate, every
// assignment of times in its lanes to the bids drawn for them. No report changes this set. An assignment is worth v to
// a bid if the bid's time there is long, wide and early enough, and otherwise 0. The program finds the assignment with
// the highest value, and the payment is as above. So the proof above holds, with the whole report instead of x. ∎
//
// Without Fixed the truth is dominant only for the value. In Solve, asking for more nodes or time than needed, or for
// an earlier deadline, can only reduce the chances. In Orders and Find these reports affect the candidates, and a lucky
// false report can gain. Bidders who collude can gain in Solve, Orders and Find.
//
// candor audit measured four days of the KTH SP2 log (--nodes 100 --scale-load 6, 25 jobs, 200 candidates, deadlines of
// a day or more, seeds 1 to 3). With the three seeds, these numbers of jobs gain by their best lie. By a lie about the
// value, 0, 0 and 0 jobs gain. By a lie about the length, 0, 0 and 1. By a lie about the nodes, 1, 2 and 4. By a lie
// about the deadline, none. If an owner submits a job as two halves, 1, 3 and 6 jobs gain. If an owner submits it after
// the period, into another auction, 9, 5 and 6 jobs gain. The largest gain is the whole value. On fixed timetables no
// job gains by a lie about value, length or deadline, or as two halves. By a lie about nodes, 2, 0 and 0 jobs gain
// there, at most 0.37 of the value. By a later period, 2, 3 and 2 jobs gain, at most the whole value. A lie about nodes
// declares the same work on fewer nodes for a longer time. An owner whose job can run in both ways has two ways to be
// served, but bids for only one of them. The models do not cover such a second way, nor halves, nor a choice among
// periods. Fixed timetables have 0.66 to 0.82 of the value of timetables made for the bids (60 bids on 8 and 100 nodes,
// 200 and 2,000 candidates: TestWhatFixedTimetablesAreWorth).
//
// Over 15 days of serial jobs on 3 slots at twice their load (510 jobs of three draws, deadline the end of the period),
// no fixed lie about value gains. Lies about length, a slow job, halves and false names lose. A later submission, into
// another auction, gains 0.034 [0.010, 0.058] of the value. A job that nobody needs gains 0.008 [−0.005, 0.020]. On
// fixed timetables a later submission gains 0.038 [0.015, 0.060], and a job that nobody needs 0.005 [−0.004, 0.014].
// The other lies gain as much as without fixed timetables. If liars could choose the lie after they have seen the
// outcome, 63 of 425 jobs would gain by a lie about one number, and on fixed timetables 54 of 332; they gain their
// whole value at most. A search over all numbers together, from the truth, finds a gain for 14 and 15 of 510 jobs.
//
// Find's result does not depend on the number of workers. There is no bound on how far its value may be below the
// optimum. In measurements with six bids on eight nodes, it finds the optimum with 500 candidates. With 2,000 bids, the
// best of 1,000 candidates is worth 1.8 to 2.4 times the best of 10,000 random orders, both if values are independent
// of size and if they are proportional to it. With few bids, if large bids are worth more, 1,000 candidates can be
// worse than 10,000 random orders, by up to 5 % in the cases tried.
//
// # Disclosure
//
//	what another account may learn                      before the period begins  after it
//	names, values, lengths, deadlines, widths, budgets  no                        no
//	how many bids there are, slots and idle slots       yes                       yes
//	how many slots are sold, from when until when       no                        yes, but not to whom
//	the price                                           no                        only of its own jobs
//
// Owners see everything about their own jobs, operators about all jobs. Before the period begins, replies show only the
// number of bids. Widths and lengths affect the candidates, so knowing the rivals' widths and lengths could help a
// liar. A price is computed from losing bids, which are not shown. But a winner with a single rival can compute the
// rival's bid from the price.
//
// # Changes of a bid
//
// No term of a bid may change, because bids are sealed until the period begins. Until then, a job can be cancelled for
// free.
//
// # Errors
//
// Invalid is returned, with the bid and the field, for a number that is negative, infinite or too large, and for an
// order that does not name each bid once. TooLarge is returned for a table of more than MaxCells or MaxMemory.
//
// # Cost
//
// Solve takes O(m·T) time, including all prices, for m bids and T granules of the greatest common divisor of the
// lengths. The suffix rows are computed from back to front, and one in √m is kept. The others are computed again, block
// by block, on the way from front to back. Memory is O(√m·T). An order costs O(m·log m), plus the gaps that are
// skipped, and O(m) for its part in the prices. A candidate made of lanes costs about as much as Solve, for the bids of
// each lane. If a candidate can change prices, it is solved once more.
//
// # Source
//
// A. Mutz, "Eliciting Honest Behavior on Computational Grids", 2008, chapters 5 and 7: the recursion of section 5.1.2
// is lane.suffix, the payment expression of 5.1.3 is newOutcome, the schedule of an order (7.1.2) is placer.place. We
// differ as follows.
//
//   - The recursion of the thesis goes back in time and needs jobs in the order of descending deadlines; ours begins at
//     the front with the earliest deadline.
//   - It solves m+1 problems for m payments, in O(m³·T); we solve one, in O(m·T).
//   - Section 8.4 says that two bidders who both overstate can pay nothing. This is true, and a test shows it. No price
//     helps against users who bid together.
//   - For bids of any width, the thesis draws new random orders without each bid. So payments may be negative or above
//     the value, and the truth is only roughly best. Our payments are computed over one set of schedules.
package reservation
