// Package proportional shares classes of slots in proportion to what jobs bid
// for them. Each job's budget is split over the classes as its owner would
// split it knowing what the others bid; a class goes to the jobs in proportion
// to their sub-budgets to the power alpha.
//
// # Model
//
// Job i has budget b_i and a utility Σ_j w_ij·s_ij (linear) or Σ_j w_ij·ln s_ij
// (log) of its shares. With sub-budgets b_ij that add up to b_i, its share of
// class j is s_ij = b_ij^α / Σ_l b_lj^α, α in [0, 1]: 0 shares evenly, 1 in
// proportion to money. The outcome is the fixed point at which every row is
// proportional to (∂u/∂s_ij)·s_ij·(1−s_ij), which makes it the job's best answer
// to the others.
//
// Solver.Solve finds it; Solver.Rounds does the paper's rounds literally; Market
// keeps it up to date as jobs come and go; NewPool chooses which jobs with a
// minimum utility to serve; New makes the mechanism of a live market, in which a
// job bids only on classes where it has work pending.
//
// Conventions where the formulas say nothing. 0^0 = 1, so that at α = 0 all
// shares are 1/n. A class wanted by one job goes to it whole, for nothing; a job
// all of whose classes are so keeps its part of the even split on each, which
// changes nobody's share, and a job alone in the auction keeps its even split.
// A class nobody wants is split evenly.
//
// # Shapes and units
//
// Matrices are n·m, job by job. Budgets and sub-budgets are in any one unit of
// money (credits, on a live market), weights in any one unit for each job, both
// between Smallest and Largest. Shares are in [0, 1] and add up to 1 in each
// class. A live market rounds money once, when a job is settled, half to even to
// the microcredit.
//
// # Guarantees
//
// The outcome does not depend on the order of the jobs, the unit of money or a
// common factor of a job's weights. A fixed point is found for every α in [0, 1],
// also where budgets are so far apart and α so near to 1 that whether a poor job
// bids on one class or another hangs on digits of the rich one's that a double
// does not have: numbers of more digits are used then. (At α = 1, doubles alone find no
// fixed point in 1 of 300 auctions with budgets up to 10^6 apart, and in 10 of 300 with budgets up
// to 10^12 apart. Shares are then off by at most 1e-6, but a poor job's sub-budgets by up to
// half of its budget. What a poor job bids on a class is the field times
// 1 − λ·field/weight, a difference of numbers that are equal in as many digits as the budgets are
// apart, and the field's own error is as large.) Found means that another
// of the paper's rounds moves nothing by more than 1e-12 of its budget. Where
// each round's moves are nearly as long as the last's, as for α near 1, the fixed
// point can be farther than that; it was within 1e-9 of the budget in the
// auctions that were compared with one of ninety digits.
//
// At α = 1 a linear job may bid nothing on a class it wants, and all who want a
// class may leave it to one. That one's best answer is then any small bid: the
// supremum of its utility, all of the class for all but nothing, is not attained.
// The convention is that of the rounds: the job keeps the row it has when the
// others' part of its classes falls below 1e-200, and these get nothing there. At α
// short of 1 bids vanish so by powers of 1/(1 − α); shares are unaffected by more
// than that part.
//
// Up to α = 1/2 the fixed point is the only one. Above, it need not be when few
// jobs have opposite tastes (α = 0.7, budgets 124 and 154, weights (1.875, 0.1)
// and (0.125, 3.75): job 1 bids 122.3 or 117.8 on class 1). Auctions of up to 2048
// entries are then solved by the paper's rounds from the even split, damped if
// they circle, which settles which one; a larger auction is taken to have one.
//
// More budget gives no less utility, no owner can better the split, and to
// report truthfully is nearly but not exactly best: with budgets 50 and 150,
// weights (4, 9) and (8, 5) and α = 1/2, the first job gains 0.17 % by reporting
// (7, 13). The gain shrinks as the market grows: the best lie gains 0.016 % on
// average among 8 jobs and 0.0013 % among 32 with the paper's workload. At α = 1 it is no small matter:
// among 8 jobs that want 8 classes, weights and budgets drawn evenly, the best of 60 lies of one
// job gained 2.0 % on average in 30 draws, and 7.7 % at most; at α = 1/2 none did.
//
// Truth is so of weights alone, on linear jobs that all bid at once; the budget is a price
// that the owner names (What a job owes has what lies about it gain). Measured with candor
// audit over 25 jobs of four days of the KTH SP2 log on 4 slots, load times 4: with a minimum
// asked of all jobs (slo 0.1) one and the same false budget for all gained 0.070 [0.036, 0.103]
// of the value on average, and the best one of each job 2.3 [−0.8, 5.4] with seed 1, 0.01 and
// 0.03 with seeds 2 and 3, and 34 at most; over seeds 1 to 10 a false minimum
// gained in 7 of 250 cases, 35 at most; where no other job has a minimum (slo 0.0001), in 1 of
// 250 cases, 0.001 ± 0.003 of the value.
//
// A Market's shares are within Market.Error of the fixed point, relative; the
// estimate is the square of the distance from the last full solution, times a
// factor that held in every instance tried. The greedy pool serves each member
// its minimum; the search's group does too and is at least as profitable.
//
// # What a share is of
//
// A share is of slot time: agents draw jobs so that what each receives is in proportion to its
// share, whatever the length of its tasks (package sampler of the agents). The paper draws
// tasks by shares; its tasks were alike. With tasks of 0.1 s against 10 s, and equal budgets,
// the short ones received 1 % of the slot time so, and a job that packed 50 tasks into one 0.85
// in place of 0.25. Simulated with all actors, on 64 slots on nodes of 1 or 64, α of 1/2 and 1, the
// short tasks receive 0.50 within 300 s; a job whose tasks are 1/4, 4 or 50 in one has 0.25 within
// 1,500 s, off by 0.01 at most; on 10,000 nodes tasks of 0.5 s against 3 s have 0.49 within
// 30 s. A job of fewer tasks than there are nodes, and of longer ones than others, still receives more than its share.
// The figures below on jobs of several tasks that are split, and on bounded slowdowns, are from before,
// when tasks were drawn by shares.
//
// # What a job owes
//
// A job owes B · a · r · c of its budget B. The part a is its slot time over one second,
// and 1 from then on ([WholeAfter]). The part r is its slot time over that which it bought, and
// 1 if it had more: what it bought, from its first slot on, is its share of the slots at each moment at which it had
// tasks pending, at most a slot for each of its tasks that ran or could, and what it had at all
// other moments. The wait for the first slot lowers no price: else a short job with a huge budget, which
// goes first and still waits for a slot, would pay next to nothing (with the prices of such a
// rule, 10,000 times the worth gained 1,211 [498, 1,923] times the value in a crowded log). So a slot-second costs the same in tasks of any length: of equal budgets, tasks of
// 0.1 s and of 10 s on 64 slots pay the same for it, within 1 % after 300 s, and a job whose tasks wait while long tasks of
// others have the slots owes nothing for that time. A new leader has not seen what a job lacked before,
// and forgives nothing for it. The contention c in [0, 1] is the mean, over its slot
// time, of the level of the class ([Contention.Level]): 0 while there is a slot for every
// task that could run, else the chance that two draws of accounts, each in proportion
// to the powers of their jobs' budgets, fall on different ones. So a job on an idle
// site, or among jobs of its own account, owes nothing; among many accounts it owes
// what it named. Levels are committed, and metered in integers.
//
// No way out: a, r and c depend on when the job had slots, and who else had tasks
// then. They do not depend on how the job or a task ended. Let one run of a job print
// its results and then fail, be cancelled, or be completed at the same moment: it owes
// the same in each. What runs again when each task of the job has ended once takes nothing off, since it is
// compared with what the job owed by then: a retry in a quiet hour once halved c. A new leader
// compares with what it finds. An attempt that the site broke (a lost node, a drain, an executor
// that failed, a node in doubt) is taken off the slot time, also off that by then. The number of tasks does not
// count: a job of many tasks that do nothing, and one that works, would pay next to
// nothing if each task had its part of the budget. So a job that ends early owes as one
// that was completed then.
//
// Splitting. A job in two halves, each with half of the budget, owes as the whole does, as long as
// each half has a second of slot time; with ten seconds in place of one, halves of short
// jobs owed 46 % less. At α below 1 the halves have a larger share together, 2^(1−α) to 1
// before both are compared with the others, so that they complete sooner, and contend for more of
// their time. Simulated, among four accounts with jobs of 16 to 160 tasks on 8 slots (300 draws), two halves
// completed 8.4 [7.7, 9.0] % sooner and paid 9.8 [7.9, 11.7] % more, and four quarters 14.8
// [13.8, 15.8] % sooner for 14.9 [11.4, 18.4] % more; at α = 1 they completed later, by 2.2 [1.8, 2.5] and
// 6.1 [5.3, 6.9] %, for the same. On four days of the KTH SP2 log on 60 slots (150 jobs of one or more tasks), two halves
// gained −0.010 [−0.021, 0.002] of the value of a deadline, and −6 [−24, 12] times the value where each second
// of waiting costs. Parts that have less than a second of slots each do pay less, in proportion.
//
// Tasks that do nothing make the job look as if it lacked more: where long tasks of others have all
// slots but one, a job with one task that works and 63 that exit at once lacks slots for these until they had their
// turn, and owes less by that. A task that had a slot counts as 0.1 s at least, so that a
// stream of such tasks while slots are free gains nothing.
//
// What is outside of it: a task that keeps its slot after its work is done, while nobody
// waits, lowers the mean c; it keeps nobody from a slot by that. Two accounts of one
// owner contend with each other, so false names cost, and one account for several
// users saves what they would owe for contending with one another. All accounts of another site contend as
// one, since that site could give its users one name, or many.
//
// The paper charges a job that is completed its budget, and nobody else. A market
// with settle: on-completion does so. There a task is completed when its program, with any
// exit code, or its owner ends an attempt of it for the first time, and a job owes the part of
// its budget that its completed tasks are of all: to print the results and then fail does not
// pay. A minimum utility is compared with the shares until all tasks were completed so: to run
// again while others wait does not lower them.
//
// The budget is no truthful bid. Who names less has a smaller share and waits, but owes
// less: over 25 jobs of a crowded log, worth less by each second of waiting, the best
// budget to name gained 8 % of the job's value on average (± 3 %, ten seeds) and 48 % at
// most; it was mostly a hundredth of the worth. Under settle: on-completion the same lie gained 99 %.
//
// What a budget does depends on what waiting costs. On 15 days of the same log on 3 slots at twice
// its load (191 jobs, median wait 5 h; bids drawn three times), for jobs that are worth their value by
// a deadline and nothing after it, a hundredth of the worth gained 0.23 [0.21, 0.26] of the value on
// average, half of the worth 0.14 [0.13, 0.16], and four times the worth lost 0.94 [0.86, 1.02]. For jobs
// to which each second of waiting costs as much as a second on a slot is worth, it is the
// reverse: half of the worth lost 22 [11, 33] times the value, and 1.5 and four times the worth gained
// 14 [4, 23] and 53 [34, 73] times the value, since short jobs waited for hours. The payment is
// at most the budget, and no price of a share covers what a place in the order spares; the pivot
// price of package highestbid does. In both cases a job in two halves lost: 0.033 [0.014, 0.053] and 87
// [61, 114]; so did one under two to four names: 0.055 [0.034, 0.076] and 87 [61, 114] at least.
// Ghosts, and a job that is slow on purpose, gained nothing.
//
// # Disclosure
//
//	what another account may learn                            before a job ends                           after it
//	who bids, names, budgets, weights, shares, who is next    no                                          no
//	how many jobs there are, slots and idle slots             yes                                         yes
//	the price, tasks that wait and the contention of a class  unless one other account alone waits there  the same
//
// Owners see all of their own jobs, operators all. Price and contention are sums
// over accounts, so that of two or more nobody's part is told; who watches them sees
// by how much each arrival moves them. That gains little: the split answers the bids
// of all others already, and a lie gains as little as said above. The own share
// tells the only rival what the rival bids; it is what the job got.
//
// # Changes of a bid
//
// A budget may be raised, for as long as the job lasts: a job owes its part of the last
// budget for all the time that it had, so that who raises late has had less for the same.
// A budget that could be lowered would be a lie that pays: the slots had at the higher bid
// would be owed for at the lower. Utilities stay, as they divide what was paid for already.
//
// # Budgets and short jobs
//
// A share grows with the budget for the whole job. Users who offer a price for each
// slot-second have larger budgets for longer jobs, and so short jobs wait behind long
// ones. On four weeks of logs (package measure; means of three draws of types, jobs split
// into tasks), the mean bounded slowdown was:
//
//	                      KTH 30-37 d  SDSC-SP2 200-207 d  HPC2N 200-207 d  HPC2N 400-407 d
//	fifo                          138                 2.3               34               17
//	fairshare                      20                 1.5                7              2.7
//	proportional, α = 1/2:
//	  budget by slot-seconds      426                 3.4               48               41
//	  equal budgets                45                 1.5               20               14
//	  1/slot-seconds              8.3                 1.3              5.7              2.0
//
// So the budgets are the cause, and not the draws by which slots choose jobs: with equal
// budgets the same market is better than first come, and with larger budgets for shorter
// jobs it is at fair share or below it. A user with a short job should name the budget of a long one;
// at contention prices it pays for what it had, which is little.
//
// # Errors
//
// Numbers that are negative, not finite or out of range are refused as Invalid,
// naming the job and the field, before anything changes.
//
// # Cost
//
// The paper's round is O(n·m), a pass of Newton's method O(n·m²), in time; a
// solution takes 4 to 6 passes unless budgets are orders of magnitude apart and
// α is near 1, and O(n·m) memory, which is kept. Where more digits are needed, for
// about one in fifteen auctions at α = 1 with budgets 18 orders apart, it takes
// some 0.05 s with 12 jobs and 5 s with 2000, a few times as much at α below 1, and
// rarely, where there are several fixed points, a minute. An arrival or departure costs
// O(m³) and a row O(m). `lab bench auction` shows what that comes to.
//
// # Source
//
// J. Ding, Z. Zhang, R. T. B. Ma, Y. Yang, "Auction-based cloud service
// differentiation with service level objectives", sections 3, 4 and 6: equation
// 1 is Solver.divide, algorithms 1 and 2 are Solver.round, the pool is NewPool.
// We differ as follows.
//
//   - The paper solves by rounds, and says that they always end. Below α = 1/2
//     they do (theorem 1); above, two jobs whose budgets are far apart can chase
//     each other for ever (α = 0.9, budgets 1e5 and 1): we notice, and damp. Up to
//     1/2, and in large auctions, we solve for the m totals that jobs face
//     instead, by Newton's method, by way of smaller exponents where that is too
//     far to go at once.
//   - Theorem 2, incentive compatibility, holds only approximately; see above.
//   - Sections 3 and 4 allow any sum of non-decreasing concave functions of the shares. Here it
//     is a sum of linear or of logarithmic ones, to which the paper's experiments and its estimate keep too: what
//     a job declares is then a number for each class, which can be compared, learned from past
//     runs and solved by Newton's method with derivatives that are known in closed form.
//   - The paper leaves open how the greedy pool is ordered and what it tests: we
//     take budgets descending, ties by index, and test the utilities at the
//     fixed point. Greedy need not be most profitable: NewPool searches on.
//     Spare capacity is split evenly among the waiting rather than drawn by lot.
package proportional
