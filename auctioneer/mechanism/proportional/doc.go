// Package proportional shares classes of slots in proportion to what jobs bid for them. The market splits each job's
// budget into sub-budgets, one for each class, as its owner would if the owner knew the bids of the others. A job's
// share of a class is in proportion to its sub-budget to the power alpha.
//
// # Model
//
// Job i has budget b_i and a utility Σ_j w_ij·s_ij (linear) or Σ_j w_ij·ln s_ij (log) of its shares. With sub-budgets
// b_ij that add up to b_i, its share of class j is s_ij = b_ij^α / Σ_l b_lj^α, with α in [0, 1]. If α is 0, shares are
// equal; if α is 1, they are in proportion to money. The outcome is the fixed point at which every job's row b_i1 …
// b_im is proportional to (∂u/∂s_ij)·s_ij·(1−s_ij). Then each row is the job's best answer to the other rows.
//
// Solver.Solve finds the fixed point. Solver.Rounds does exactly the paper's rounds. Market updates the fixed point as
// jobs come and go. NewPool chooses which jobs with a minimum utility are served. New makes the mechanism of a live
// market, in which a job bids only on classes where it has pending tasks.
//
// Conventions: 0^0 = 1, so at α = 0 all shares are 1/n. A class that only one job wants goes to this job, for free. If
// no other job wants a job's classes, or if the job is alone in the auction, its budget stays split evenly; this
// changes no share. A class that no job wants is split evenly.
//
// # Shapes and units
//
// Matrices are n·m, job by job. Budgets and sub-budgets are in any one unit of money (credits, on a live market). Each
// job's weights are in any one unit. All are between Smallest and Largest. Shares are in [0, 1] and add up to 1 in each
// class. A live market rounds money once, when a job is settled, half to even to the microcredit.
//
// # Guarantees
//
// The outcome does not depend on the order of the jobs, the unit of money or a common factor of a job's weights.
//
// A fixed point is found for every α in [0, 1]: one more of the paper's rounds would change no sub-budget by more than
// 1e-12 of its budget. If the changes shrink slowly from round to round, as for α near 1, the exact fixed point can be
// farther away. It was within 1e-9 of the budget in all auctions that were compared with a solution of ninety digits.
//
// If budgets are very different and α is near 1, a poor job's choice of a class can depend on digits of a rich job's
// bid that float64 does not have. Then numbers of more digits are used. (At α = 1, float64 alone finds no fixed point
// in 1 of 300 auctions with budgets up to 10^6 apart, and in 10 of 300 with budgets up to 10^12 apart. Shares are then
// off by at most 1e-6, but a poor job's sub-budgets by up to half of its budget. The reason: let f be the sum of the
// other jobs' bids on a class. A poor job bids f times 1 − λ·f/weight there. This is a difference of nearly equal
// numbers, and the rounding error of f is as large as the difference.)
//
// At α = 1 a linear job may bid nothing on a class that it wants, and all jobs may leave a class to one job. That job
// then has no best answer: any smaller bid is better. Therefore, as in the paper's rounds, its row is fixed when the
// others' part of its classes falls below 1e-200, and the others get nothing there. At α slightly below 1, bids vanish
// in the same way, and shares change by no more than this part.
//
// Up to α = 1/2 there is only one fixed point. Above 1/2, there may be several if a few jobs want different classes
// (example: α = 0.7, budgets 124 and 154, weights (1.875, 0.1) and (0.125, 3.75): job 1 bids 122.3 or 117.8 on class
// 1). For auctions of up to 2048 entries the paper's rounds, started from the even split and damped if they go in a
// circle, choose one of the fixed points. A larger auction is assumed to have only one fixed point.
//
// A larger budget never gives less utility, and no owner can split its budget better. Truthful weights are nearly but
// not exactly best: with budgets 50 and 150, weights (4, 9) and (8, 5) and α = 1/2, the first job gains 0.17 % by
// reporting (7, 13). The gain shrinks as the market grows: with the paper's workload the best lie gains 0.016 % on
// average among 8 jobs and 0.0013 % among 32. At α = 1 lies gain more. Among 8 jobs that want 8 classes, with uniformly
// drawn weights and budgets, the best of 60 lies of one job gained 2.0 % on average in 30 draws, and 7.7 % at most. At
// α = 1/2 no lie gained.
//
// These figures are for lies about weights, if all jobs are linear and bid at the same time. The owner also chooses the
// budget; the section "What a job owes" says what a false budget gains. candor audit measured lies over 25 jobs of four
// days of the KTH SP2 log on 4 slots, at four times their load. If all jobs ask for a minimum (slo 0.1), the same false
// budget for all jobs gained 0.070 [0.036, 0.103] of the value on average. The best false budget of each job gained 2.3
// [−0.8, 5.4] with seed 1, 0.01 and 0.03 with seeds 2 and 3, and 34 at most. Over seeds 1 to 10 a false minimum gained
// in 7 of 250 cases, 35 at most. If no other job has a minimum (slo 0.0001), it gained in 1 of 250 cases, 0.001 ± 0.003
// of the value.
//
// The shares of a Market differ from the fixed point by at most Market.Error, relative. The error is estimated as the
// square of the distance from the last full solution, times a factor that was large enough in every instance tried.
// Every member of the greedy pool reaches its minimum utility. The group that the search finds is at least as
// profitable, and its members also reach their minimum utilities.
//
// # What a share is of
//
// A share is a share of slot time: agents draw jobs so that each receives slot time in proportion to its share,
// whatever the length of its tasks (package sampler of the agents). The paper draws tasks by shares, because all of its
// tasks have the same length. With tasks of 0.1 s and of 10 s and equal budgets, the short tasks would then receive
// only 1 % of the slot time, and a job that packs 50 tasks into one would receive 0.85 of the slot time instead of
// 0.25. In a simulation with all actors, with 64 slots on nodes of 1 or 64 slots and α of 1/2 and 1, the short tasks
// receive 0.50 within 300 s. A job that packs 1/4, 4 or 50 tasks into one has 0.25 within 1,500 s, off by 0.01 at most.
// On 10,000 nodes, a job with tasks of 0.5 s and a job with tasks of 3 s compete: within 30 s the first one has 0.49 of
// the slot time. A job that has fewer tasks than there are nodes, and longer tasks than other jobs, still receives more
// than its share. The figures below on split jobs of several tasks, and on bounded slowdowns, were measured earlier,
// when tasks were drawn by shares.
//
// A task of k slots counts k times in slot time, and pays k times. The paper's tasks take one slot, and nothing is
// proven about widths. A node gathers the slots of a task, and until then they are idle: this is not optimal. Jobs of
// equal budgets and tasks of 1, 2, 4 and 8 slots receive equal slot time, within 0.03, on nodes of 64 slots. Measured
// on 72 jobs of several slots, drawn as in package fifo: no false width surely gains. But the control, a lie that must
// gain, did not surely gain either, so the sample is weak. On the first 36 of the jobs one false width gained 113 [14,
// 212] times the value.
//
// # What a job owes
//
// A job with the budget B owes B · a · r · c, where each factor is in [0, 1]:
//
//   - a is its slot time divided by one second, at most 1 ([WholeAfter]).
//   - r is its slot time divided by the slot time that it bought, at most 1. It buys slot time from its first slot on.
//     While it has tasks pending, it buys its share of the slots, but at most one slot for each task that runs or could
//     run. At other times it buys the slots that it has.
//   - c is the contention: the mean, over its slot time, of the level of the class ([Contention.Level]). The level is 0
//     while there is a slot for every task that could run. Otherwise it is the probability that two random accounts
//     differ, each drawn in proportion to the powers of its jobs' budgets.
//
// So a job on an idle site, or among jobs of its own account, owes nothing; among many accounts it owes nearly its
// budget. A slot-second costs the same in tasks of any length: with equal budgets, jobs with tasks of 0.1 s and of 10 s
// on 64 slots pay the same for it, within 1 % after 300 s. A new leader does not know how much slot time a job lacked
// before, and gives no reduction for it. Levels are committed, and integrated over time in integers.
//
// Waiting for the first slot does not lower the price. Otherwise a short job with a huge budget, which goes first and
// still waits for a slot, would pay almost nothing. (With such a rule, a budget of 10,000 times the worth gained 1,211
// [498, 1,923] times the value in a crowded log.)
//
// A job cannot avoid its charge by how it ends: a, r and c depend only on when the job had slots, and on which other
// accounts had tasks then. A run that prints its results owes the same whether it then fails, is cancelled or is
// completed at the same moment. Tasks that run again after each task has ended once do not lower the charge: the job
// owes at least what it owed then. (Before this rule, a retry in a quiet hour could halve c.) A new leader knows only
// what the job owed when it took over. Attempts that failed by the site's fault (a lost node, a drain, a failed
// executor, a node in doubt) do not count. The number of tasks does not count either: if each task had its part of the
// budget, a job of one working task and many empty ones would pay almost nothing. So a job that ends early owes the
// same as one that was completed at that time.
//
// Empty tasks lower r while they wait: see Gaps. Where the tasks of others are long, jobs with 64 empty tasks gained
// 0.087 [0.056, 0.12] of the value on a log (candor audit --verbs).
//
// Splitting. A job in two halves, each with half of the budget, owes the same as the whole, as long as each half has a
// second of slot time. (If WholeAfter were ten seconds, halves of short jobs would owe 46 % less.) At α below 1 the
// halves together have a larger share: their powers add up to 2^(1−α) times the power of the whole. So they complete
// sooner, and more of their time is contended. This was simulated among four accounts with jobs of 16 to 160 tasks on 8
// slots (300 draws). Two halves completed 8.4 [7.7, 9.0] % sooner and paid 9.8 [7.9, 11.7] % more; four quarters
// completed 14.8 [13.8, 15.8] % sooner and paid 14.9 [11.4, 18.4] % more. At α = 1 they completed later, by 2.2 [1.8,
// 2.5] and 6.1 [5.3, 6.9] %, for the same price. On four days of the KTH SP2 log on 60 slots (150 jobs of one or more
// tasks), two halves gained −0.010 [−0.021, 0.002] of the value of a deadline, and −6 [−24, 12] times the value if each
// second of waiting costs. Parts with less than a second of slot time each do pay less, in proportion.
//
// Gaps. With tasks that do nothing, a job seems to lack more slot time than it does. Example: long tasks of others have
// all slots except one. A job with one working task and 63 tasks that exit at once lacks slots for the 63 until they
// have had their turn, and owes less. But a task that had a slot counts as at least 0.1 s, so a stream of such tasks
// gains nothing while slots are free. A task that keeps its slot after its work is done, while no job waits, lowers the
// mean c; but it keeps no job from a slot. Two accounts of one owner contend with each other, so false names cost
// money. Several users of one account do not contend with each other, so they pay less. All accounts of another site
// contend as one account, because that site could give its users any names.
//
// The paper charges a completed job its budget, and other jobs nothing. A market with settle: on-completion does so.
// There a task is completed when its program ends for the first time, with any exit code, or when its owner first ends
// an attempt. A job owes the part of its budget that corresponds to its completed tasks, so printing the results and
// then failing does not pay. A minimum utility is compared with the shares up to the completion of all tasks, so
// running again while others wait does not lower them.
//
// Naming the true worth as the budget is not always best. A job with a smaller budget has a smaller share and waits,
// but owes less. This was measured over 25 jobs of a crowded log, which lose value with each second of waiting. The
// best budget gained 8 % of the job's value on average (± 3 %, ten seeds) and 48 % at most; it was mostly a hundredth
// of the worth. Under settle: on-completion the same lie gained 99 %.
//
// The effect of a budget depends on the cost of waiting. This was measured on 15 days of the same log on 3 slots at
// twice its load (191 jobs, median wait 5 h; bids drawn three times). Some jobs are worth their value by a deadline and
// nothing after it. For these jobs, a budget of a hundredth of the worth gained 0.23 [0.21, 0.26] of the value on
// average, half of the worth gained 0.14 [0.13, 0.16], and four times the worth lost 0.94 [0.86, 1.02]. For other jobs,
// each second of waiting costs as much as a second on a slot is worth. For them it is the reverse: half of the worth
// lost 22 [11, 33] times the value. 1.5 and four times the worth gained 14 [4, 23] and 53 [34, 73] times the value,
// because short jobs waited for hours. A payment is at most the budget, so it can be less than the value of the waiting
// that an earlier turn saves. The pivot price of package highestbid covers this value. In both cases a job in two
// halves lost: 0.033 [0.014, 0.053] and 87 [61, 114]. So did a job under two to four names: 0.055 [0.034, 0.076] and 87
// [61, 114] at least. A second job that nobody needs, and a job that is slow on purpose, gained nothing.
//
// # Disclosure
//
//	what another account may learn                            before a job ends                           after it
//	who bids, names, budgets, weights, shares, who is next    no                                          no
//	how many jobs there are, slots and idle slots             yes                                         yes
//	the price, tasks that wait and the contention of a class  unless one other account alone waits there  the same
//
// Owners see everything about their own jobs, operators about all jobs. Price and contention are sums over accounts, so
// with two or more accounts no single part is disclosed. With a single rival, a job's share reveals the rival's bid.
// This cannot be avoided, because a job must know its share.
//
// # Changes of a bid
//
// A budget may be raised as long as the job lasts. The charge for all of the job's time is computed from the last
// budget. So an owner who raises the budget late gets fewer slots for the same money. A budget cannot be lowered: slots
// obtained with the higher budget would be charged at the lower one. Utilities cannot change, because they divided
// slots that were already charged.
//
// # Budgets and short jobs
//
// A share grows with the budget for the whole job. Users who offer a price for each slot-second have larger budgets for
// longer jobs, and so short jobs wait behind long ones. On four weeks of logs (package measure; means of three draws of
// types, jobs split into tasks), the mean bounded slowdown was:
//
//	                      KTH 30-37 d  SDSC-SP2 200-207 d  HPC2N 200-207 d  HPC2N 400-407 d
//	fifo                          138                 2.3               34               17
//	fairshare                      20                 1.5                7              2.7
//	proportional, α = 1/2:
//	  budget by slot-seconds      426                 3.4               48               41
//	  equal budgets                45                 1.5               20               14
//	  1/slot-seconds              8.3                 1.3              5.7              2.0
//
// So the cause is the budgets, not the way in which slots draw jobs. With equal budgets the same market is better than
// fifo. With larger budgets for shorter jobs it is as good as fair share or better. A user with a short job should name
// the budget of a long one. The job pays only for the slot time that it had, which is little.
//
// # Errors
//
// Numbers that are negative, not finite or out of range are refused as Invalid before anything changes. The error names
// the job and the field.
//
// # Cost
//
// A round of the paper takes O(n·m) time, a pass of Newton's method O(n·m²). A solution takes O(n·m) memory, which is
// used again, and 4 to 6 passes, unless budgets are orders of magnitude apart and α is near 1. About one in fifteen
// auctions at α = 1 with budgets 18 orders apart needs more digits. That takes some 0.05 s with 12 jobs and 5 s with
// 2000. It takes a few times as much at α below 1, and a minute in rare cases with several fixed points. An arrival or
// departure costs O(m³) and a row O(m). `lab bench auction` measures these costs.
//
// # Source
//
// J. Ding, Z. Zhang, R. T. B. Ma, Y. Yang, "Auction-based cloud service differentiation with service level objectives",
// sections 3, 4 and 6: equation 1 is Solver.divide, algorithms 1 and 2 are Solver.round, the pool is NewPool. We differ
// as follows.
//
//   - The paper solves by rounds, and says that they always end. Below α = 1/2 they do (theorem 1). Above 1/2, two jobs
//     with very different budgets can go in a circle for ever (α = 0.9, budgets 1e5 and 1). We detect this, and make
//     the moves smaller. Up to 1/2, and in large auctions, we solve instead for the m totals that jobs face, by
//     Newton's method. If this does not converge, we first solve with smaller exponents.
//   - Theorem 2, incentive compatibility, holds only approximately; see above.
//   - Sections 3 and 4 allow any sum of non-decreasing concave functions of the shares. Here it is a sum of linear or
//     of logarithmic functions, as in the paper's experiments and its estimate. So a job declares one number for each
//     class. These numbers can be compared and learned from past runs, and the derivatives for Newton's method have
//     closed formulas.
//   - The paper does not say how the greedy pool is ordered and what it tests. We order by descending budget, ties by
//     index, and test the utilities at the fixed point. The greedy pool need not be the most profitable, so NewPool
//     searches further. Spare capacity is split evenly among waiting jobs, not drawn by lot.
package proportional
