// Package reservation sells a period of a machine's time by sealed bids. A bid asks for a number of consecutive granules of
// time on a number of nodes, to end by a deadline. It is served completely or not at all. A winner pays what the others
// lose because of it.
//
// # Model
//
// Bid i occupies [t, t+l_i) on n_i nodes, t ≥ 0, t+l_i ≤ min(d_i, T), and is worth
// v_i if it is met. Over a set R of schedules, W is the most that a schedule of R
// is worth, and W(−i) the most if v_i is not counted. The schedule chosen is worth
// W; a winner i pays W(−i) − (W − v_i), everybody else nothing: the generalized
// Vickrey auction over R.
//
// Solve is for bids that take the whole machine; R has all schedules. Orders and Find are for bids of any width.
//
// In Orders, R has one schedule for each given order: the bids are placed one by one into their earliest windows, and
// dropped if a window ends too late. The first order with the highest value is chosen.
//
// In Find, R is the union of candidates of two kinds. An order, random or by length, width and deadline, gives one
// schedule. Lanes give very many: the machine is divided into lanes, each bid is given to one lane that is wide enough or
// to none, and R has every schedule that serves bids one at a time in their lanes. For each lane, the program for a whole
// machine finds the best of them. So values only decide among schedules that were fixed without values. With
// Search.Fixed all candidates are lanes, drawn without looking at bids. Each bid has a lane drawn for its index, which may
// be too narrow for it.
//
// NewMechanism makes the mechanism of a live market. When a period begins, it is sold to the bids that arrived before.
//
// Conventions: a bid of length 0 needs its nodes free at an instant, and takes nothing. Among schedules of the same value,
// Solve decides bid by bid, by deadline and then index, and serves a bid only if not serving it would give less. Find chooses
// the candidate with the lowest number. Candidates are numbered from 0; a search of more candidates begins with the same
// ones.
//
// A task of k slots is a bid of width k, like a gang of k tasks. The timetable counts slots over all nodes. The task starts
// on time if a single node has k free slots then. This is certain if nodes run no other tasks, or if all bids have the same
// width and it divides the number of slots of each node. Otherwise it may start late; it is still ended when its time is
// over, and pays the same price. So the truth about widths is best only if the timetable can be kept.
//
// # Shapes and units
//
// Times are whole granules from the start of the period, up to 2^50. Money is in any unit, up to 1e15. Values are converted to
// integer multiples of a unit. The unit is 1 or 10⁻⁶ if all values are multiples of it and their sum is below 2^62 units;
// then everything is exact. Otherwise it is the power of two with which the sum has 61 bits, and values are rounded down.
// Slices are by position in Problem.Bids. A live market's prices are rounded once, half to even, to the microcredit.
//
// # Guarantees
//
// Solve's schedule is optimal. Bids that can be met one at a time can be met by
// deadline without gaps (exchanging neighbours that are not, and closing gaps,
// makes nothing late). So let items be in the order of deadlines, P_k(t) the most
// that items before k are worth if all are over by t, S_k(t) the most that items
// k and on are worth if the first starts at t:
//
//	P_{k+1}(t) = max(P_k(t), P_k(t−l_k) + v_k)   for l_k ≤ t ≤ d_k
//	S_k(t)     = max(S_{k+1}(t), S_{k+1}(t+l_k) + v_k)   for t ≤ d_k − l_k
//
// and W = S_0(0). A set without k that can be met splits into items before and
// after it; let t be when those before are over. They are worth at most P_k(t),
// and the rest, following at once, at most S_{k+1}(t); and any pair of such sets
// together can be met. Hence W(−k) = max_t P_k(t) + S_{k+1}(t). (Both must be
// tables by time: the suffix by when it starts, not by how much time it has
// left, for its deadlines stay where they are.) A loser's is W: the schedule
// chosen does not meet it.
//
// All of this is about what is reported. What owners gain by commands is measured on the page of markets
// (deploy/docs/markets.md). Reporting v_i truthfully is a dominant strategy, exactly, for Solve, Orders and
// Find alike. R does not depend on values: Solve's is everything; that of Orders
// is as independent as the orders that are given; Find's depends on lengths,
// deadlines, widths, N, T, the seed and the number of candidates only (type plan
// holds no value). Say i reports x, and a schedule s of R is chosen; u(s) is what
// the others' reports make of s. If s meets i it gains v_i − W(−i) + u(s), else
// −W(−i) + u(s) = 0, as u(s) = W(−i) then. In both cases that is the worth of s,
// with i's true value, less W(−i), which does not depend on x. A schedule worth
// most with the true value is what is chosen if x = v_i. ∎ Nobody pays more than
// the value reported or less than nothing: W − v_i ≤ W(−i) ≤ W, for the schedule
// chosen is in R, and counting no v_i makes no schedule worth more. All this is
// in integers, not up to rounding, where values are decimals of up to six places
// (and otherwise up to 2^−60 of the sum of all, since that sets the unit).
//
// With Fixed the truth is dominant in value, length, width and deadline together. R is then, for
// each candidate, every assignment of times in its lanes to the bids drawn for them: a set that no
// report enters. A bid values an assignment at v if its time there is long, wide and early enough,
// else at nothing; the program finds what is worth most by the values reported in this sense; and
// the payment is as above. So the proof above holds word by word, with the whole report for x. ∎
//
// Without Fixed the truth is dominant only for the value. In Solve, asking for more nodes or time than needed, or for an earlier
// deadline, can only reduce the chances. In Orders and Find these reports affect the candidates, and a lucky misreport can
// gain. Collusion can gain in all of them.
//
// Measured on four days of the KTH SP2 log (candor audit, --nodes 100 --scale-load 6, 25 jobs, 200
// candidates, deadlines of a day or more, seeds 1 to 3), jobs that gain by their best lie, by all of
// their value at most: value 0, 0 and 0; length 0, 0, 1; nodes 1, 2, 4; deadline none; a
// job in two halves 1, 3, 6; and a submission after the period, into another auction, 9, 5, 6.
// On fixed timetables: value, length, deadline and halves 0; nodes 2, 0, 0, by 0.37 at most; a later
// period 2, 3, 2, by all at most. These lies about nodes are the same work on fewer nodes for
// longer: an owner whose job can do that has two ways to be served, and bids for one. That, halves and
// a choice among periods are outside of either model. Fixed timetables are worth 0.66 to 0.82 of
// those made for the bids (60 bids on 8 and 100 nodes, 200 and 2,000 candidates:
// TestWhatFixedTimetablesAreWorth).
//
// Over 15 days of serial jobs on 3 slots at twice their load (510 jobs of three draws, deadline the end of the
// period): no fixed lie about value gains, and lies about length, a slow job, halves and false names lose; a later
// submission, into another auction, gains 0.034 [0.010, 0.058] of the value; a ghost gains 0.008 [−0.005, 0.020].
// On fixed timetables a later submission gains 0.038 [0.015, 0.060], a ghost 0.005 [−0.004, 0.014], and the
// others as in search mode. After the fact 63 of 425 jobs and 54 of 332 gain by a lie about one number, by all of their value at most;
// a search over all numbers together, from the truth, finds a gain for 14 and 15 of 510.
//
// Find's result does not depend on the number of workers. There is no bound on how far its value may be below the optimum.
// Measured: of six bids on
// eight nodes it finds the optimum in 500 candidates; of 2,000 bids, 1,000
// candidates are worth 1.8 to 2.4 times the best of 10,000 random orders, whether
// values are independent of size or proportional to it. Where bids are few and
// large ones are worth more, 1,000 candidates can fall short of 10,000 random
// orders, by up to 5 % in what was tried.
//
// # Disclosure
//
//	what another account may learn                      before the period begins  after it
//	names, values, lengths, deadlines, widths, budgets  no                        no
//	how many bids there are, slots and idle slots       yes                       yes
//	how many slots are sold, from when until when       no                        yes, not to whom
//	the price                                           no                        the own alone
//
// Owners see everything about their own jobs, operators about all jobs. The true value is the best report whatever others bid.
// Before the period begins, replies reveal only the number of bids. Widths and lengths affect the candidates, so knowing the
// rivals' widths and lengths could help a liar. A price is computed from losing bids, which are not shown. But a winner
// with a single rival learns the rival's bid from the price.
//
// # Changes of a bid
//
// No term of a bid may change, because bids are sealed until the period begins. Before that, a job can be cancelled for free,
// and submitted again.
//
// # Errors
//
// Invalid, with the bid and the field: a number that is negative, infinite or too large, an order that does not name each bid
// once. TooLarge: a table of more than MaxCells or MaxMemory.
//
// # Cost
//
// Solve takes O(m·T) time, all prices included, for m bids and T granules of the
// greatest common divisor of the lengths: the suffix rows are worked out from
// back to front, one in √m is kept, and the others are worked out again, block by
// block, on the way from front to back. Memory is O(√m·T). An order costs O(m·log
// m) but for gaps that are passed over, and O(m) for its part in the prices; lanes
// about as Solve, but for each bid within its lane. Candidates made of lanes are
// solved once more for prices, as far as they can matter.
//
// # Source
//
// A. Mutz, "Eliciting Honest Behavior on Computational Grids", 2008, chapters 5
// and 7: the recursion of section 5.1.2 is lane.suffix, the payment expression of
// 5.1.3 is newOutcome, the schedule of an order (7.1.2) is placer.place. We
// differ as follows.
//
//   - The thesis' recursion, from the back in time, needs jobs by deadline
//     descending; ours goes earliest deadline first from the front.
//   - It solves m+1 problems for m payments, in O(m³·T); we solve one, in O(m·T).
//   - Section 8.4 says that two who both overstate can pay nothing; that holds when it is run, and
//     is a test. No price helps against users who bid together.
//   - Any width: it draws random orders anew without each bid, so that payments
//     may be negative or above the value and truth is best only roughly. Our
//     payments are over one set of schedules.
package reservation
