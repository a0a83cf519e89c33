// Package highestbid runs serial tasks on equal nodes in the order of what they
// bid for a second on a node, online and without knowing what comes: preemptive,
// by bid (HB), or without preemption, by bid (NPHB), by bid over run time (WSPT)
// or by bid over estimated run time (WSEPT). Each job pays its own bid or the
// k-th price, that of the best who waits, for as long as it runs; or the pivot price,
// for what its place in the order spares it, with which the truth is best.
//
// # Model
//
// All events of an instant apply together, terminations first, then arrivals,
// and one decision follows. Under HB the n best of all jobs in the system run,
// and preemption and migration are free; under the others a free node goes to
// the best who waits. Ties go to the earlier submission, then to the smaller
// index.
//
// The price of a second is set anew, for all who run, by each decision:
//
//	first price   own bid; the reserve while fewer than n jobs are in the system
//	k-th price    HB     b                   b, τ: bid and length of the best who waits
//	              NPHB   min(own bid, b)
//	              WSPT   (b/τ)·own run time; WSEPT the same with estimates
//	              the reserve while nobody waits
//	capped        as above, and nobody, at the reserve neither, above the own bid
//
// The pivot price (HB) is the reserve for each second, and for the place in the order
//
//	Σ b·(F(below b) − F(above b))   over the bids b of others, up to the own
//
// where F(x) is when the job would have ended with a bid of x, the others as they are: for
// each job that it went before, that job's bid for each second of waiting spared. F
// counts up to the horizon after submission (a day in a live market; without end in a
// Problem that names none). A lower bid changes nothing for those above it, so that one run
// of the market without the job tells all: with a bid of x it would have run in the
// seconds in which the worst that runs there bids less (absence, ladder). What the
// others lose by a job would not do as a price, for HB does not minimise waiting: of two
// jobs on one node, 1,000 s at 2 and 10 s at 1, the long one would pay 1,000 for a place
// that spares it 20.
//
// A task may take k nodes at once, or slots of one node in a live market. It bids, and pays, for each: k times. The
// best have them first, as before, and a task is passed over if what better ones leave is too little for it, also
// where worse ones then run; that is the greedy auction of Lehmann, O'Callaghan and Shoham, with the bid for a slot-second as
// the order. Without preemption nobody is passed over: free nodes are kept until they are enough. A bid that is passed
// over sets no level, so that nobody pays above its own bid. All tasks of a job take as many, and at pivot prices one.
// In a live market with preemption a task is passed over also where no single node has enough free slots and slots of worse
// bids; else it takes those of the worst bids of one node, which need not be the worst of all.
//
// Run runs a whole trace. New makes the mechanism of a live market, where each class is
// an auction. In both each task is a bidder with its job's bid.
//
// All bills are kept at once. At a decision the price is one number for all, in
// three sums that grow with time: the time at the own bid, the time at the
// reserve, and the integral of the level, b or b/τ. A job notes where they stood
// when it began, and owes the difference, times its bid, the reserve and its
// length. Where the own bid caps the level each job has sums of its own, in a tree
// ordered by bid: time passes for the jobs up to the level and those above it
// by tags on O(log n) subtrees (tree).
//
// In a live market a suspended task goes on at its own node. While that node has no slot
// for it, the task is stuck (mechanism.Job): it is passed over, nobody is suspended for it,
// and a stuck task that would go before the worst that runs sets no level.
//
// Conventions where the paper says nothing. A job of no run time wants nothing:
// it ends as it is submitted, for free, and is in nobody's way. Bids below the
// reserve take part like any other and the formulas are taken as they stand: at
// the k-th price a waiting bid below the reserve is the price, and a job that
// runs while nobody waits pays the reserve, unless capped. A live market does
// not admit such bids. It charges for the time slots were had, however the
// job ended, and at most the budget: a job that has spent it is discarded.
//
// # Shapes and units
//
// Results are by job, in the order of the problem. Times of a Problem are in
// seconds, money in any one unit; each number is 0 or from Smallest to Largest.
// Decimal fractions of up to six places, within 2⁵³ of the last, are worked with
// exactly, and so are ties of bid over length; with other numbers times are
// rounded where they are added.
//
// # Guarantees
//
// No node is idle while a job waits that has room. Under HB a higher bid never ends later, and
// while no slots go away no sequence of offers causes more suspensions of slots
// than the slots it asks for. With bids of at least the reserve, nobody pays above
// its bid, but for WSPT and WSEPT uncapped; under HB nobody pays more at the
// k-th price than at the first, and the k-th price is, while somebody waits, the
// smallest bid with which a job would still be running (of equal widths). Payments are exact to
// 1e-9 as long as they are within some 22 orders of magnitude of the sum of all
// prices to date.
//
// With tasks of several nodes, HB is no optimum: a wide task of a better bid may leave nodes idle, or keep out narrow tasks that
// bid more together (with n nodes, nearly n times as much). What stays: a higher bid never ends later, because in each second
// those that go before it are some of those that went before the lower one, the first of them in order, and the nodes
// that the first of an order take are no more than all of them take. So each task has a critical bid in each second, which
// would be a price for which the truth is best in a single second (Lehmann et al., where truth is shown to follow from such prices). It is each
// task's own, and the k-th price is one for all. Where all widths are equal the two are the same. Else a task may pay
// less than its critical bid, as a bid passed over sets no level, or more, as the best that waits may be too wide to
// take its nodes. On 3 nodes, bids and widths of 5×2, 4×2 and 3×1: the first and the last run and pay the reserve,
// though the first needs 4. Bids of 5×2, 3×1 and 2×3: the second pays 2, and needs nothing. The tests have both.
//
// At first and k-th prices bidding the private value is not best. Waiting costs v a
// second, but these prices cover only the seconds that run: 10 s whose delay costs 1 a
// second, against 1,000 s that bid 2, lose 1,020 honestly and 30 bidding 2.1. And a job of 10 s
// worth 3 a second, with a job of 1 s that bids 2, loses 50 honestly and 43 bidding 1. Measured
// at k-th prices (TestMeasuredGains: 200 jobs of 40 markets of two nodes under a load of 0.9;
// means with 95 %, in parts of v·length): bidding twice the value gains 3.4 [1.3, 5.6], 1.2
// [0.6, 1.8] and 3.4 [1.5, 5.3] with seeds 1 to 3, and four times 3.8, 1.7 and 3.5; half of it
// loses 3.8, 2.6 and 4.0. Where jobs wait less they gain less: 0.2 to 0.4 in short queues.
// On four days of the KTH SP2 log (candor audit, 27 jobs) the best lie about the value gained
// nothing with seed 1, and up to 140 and 815 times the value with seeds 2 and 3. On 15 days on 3 slots
// at twice the load (573 jobs of three draws, median wait 5 h) bidding 1.5 times and four times the value gained
// 286 [117, 456] and 775 [390, 1159] times the value, and half of it lost 565 [290, 839].
//
// At pivot prices the truth is a dominant strategy in the bid and in the time of
// submission. Model: a user has one job, of one task; every second from submission to end, up to
// the horizon, costs it v, at least the reserve; preemption and migration are free; how long jobs
// run and what others bid do not depend on its bid. Nobody need know or declare lengths. Proof.
// The jobs above a bid of x run as if there were no others. With a larger x there are
// fewer of them, and those run in the same seconds; so F falls, in x. The price is
// reserve·length + ∫_0^b F(x) − F(b) dx, and so the loss v·F + price of a truthful bid is
// ∫_0^v F(x) dx but for a constant. A bid of b loses ∫_b^v F(b) − F(x) dx more, which is
// never negative, whether b is above v or below. With a later submission F is nowhere smaller,
// and so the integral is not. ∎ The price is at most the bid for each second spared.
//
// Measured in the same 200 jobs at pivot prices, bidding half, twice and four times the value
// loses 1.1 [0.7, 1.5], 1.4 [0.4, 2.5] and 2.3 [1.0, 3.7] of v·length with seed 1, and as
// surely with the others. Outside of the model, on the KTH log with seeds 1 to 3: a job in two
// halves runs on two slots and gains 0.35, 0.27 and 0.33 on average (k-th: 0.37, 0.29, 0.37);
// two users together gain 0.016, 0.017 and 0.002 (k-th: 0.005, 0.017, 0.022), and at most 0.38.
// On 15 days on 3 slots at twice the load (573 jobs of three draws, median wait 5 h; in parts of the value, horizon
// 1,000 h): no job gains by any lie about the value, by a later submission, or by a search over
// everything that it declares, its pace and its arrival; a slow job and ghosts lose; halves lose 661 [395, 928] on
// average, though they gain 0.11 after the fact; two users lose 5.7 [3.0, 8.5] by their surest lie.
// Waits beyond the horizon are not in the price. With the default of a day the best lie about
// the value gains 5e-5, 0.04 and 0; with a horizon of an hour 1.6, 0.15 and 433 times
// the value. In the 15 days some jobs wait longer than a day: with that horizon no fixed lie gains, at most
// 1.6 [−2.3, 5.4], but 66 of 573 jobs by their best lie about the value, 45 [13, 77] on average and 5,789 at most. So an operator sets the horizon above all waits. A live market needs a horizon to
// bound what a job may owe: a budget covers the horizon at the job's rate, and the rest of
// the budget is for the slots.
//
// A live market prices what happened: when jobs came, what slot time they had, how many slots
// there were. It settles a job when the price is certain: when with any bid it would have ended,
// at the horizon at the latest. A job that its owner cancels counts as having left
// then; whether a job ends well makes no difference to its price. A start that took time,
// a lost node and a suspended task that ran again from its beginning are not in the model.
// Jobs of several tasks, tasks of several slots, several classes, and preemption other than suspension are
// refused. The number of slots over time is noted with the decisions; all else is in the book,
// so that the next leader asks for the same price.
//
// # Disclosure
//
//	what another account may learn                 before a job ends                        after it
//	names, budgets, bids, lengths, who is next     no                                       no
//	how many jobs there are, slots and idle slots  yes                                      yes
//	the price, and how many tasks wait             unless one other account alone waits     the same
//	what bid would be enough, to who waits         unless one other account alone competes  no
//
// Owners see all of their own jobs, operators all. The price must be known to who
// pays it. It is somebody's bid at the k-th price, so that it is told where two
// others wait, and never whose it is: nobody can shade the own bid by one rival's.
// At the first price it is the highest bid of those who run, and told where they are
// two others.
//
// # Changes of a bid
//
// A budget may be raised, as it bounds what is paid and ranks nobody. A rate may be raised as
// long as no task has been started: the market then has a new bid, as after a cancellation
// and a new submission. A rate is not lowered, and that of a job that runs stays: who could
// take a bid back when the rival has left would bid more than the truth to get a slot.
// At pivot prices no rate changes, and no job is put on hold, since the prices of others
// depend on it.
//
// # Errors
//
// Numbers that are negative, not finite or out of range, an unknown algorithm or
// price, no nodes, and WSEPT without an estimate are Invalid, naming the job and
// the field, before anything changes.
//
// # Cost
//
// O(log n) in time for each event, with n jobs in the system, and for each job
// that starts or is suspended, whoever else runs; O(n) memory. A live decision
// costs O(log n) for each job and class that has changed, or whose slots it
// changes; where prices are by length and not capped, it also looks at all who run. With tasks of
// k slots it is O(k·log n) for each job that waits with such tasks and goes before the worst that runs, or for whose tasks some slots are free.
// One made anew is O(n·log n) for each class, and an explanation O(n). A pivot price is a run of
// the market from the first job that was there together with this one, directly or
// through others, until the job would have ended with any bid: O(n) for each event. `lab bench auction` shows what that comes
// to, and with --traces on the log that the paper used.
//
// # Source
//
// S. Shudler, L. Amar, A. Barak, A. Mu'alem, "The effects of untruthful bids on
// user utilities and stability in computing markets": algorithm 1 is
// auction.decide, equations 1 to 3 are Outcome, the payment schemes of section IV
// and their forms without preemption of section V are auction.basis and accounts.
// We differ as follows.
//
//   - The paper updates every running job's payment at every event; see above.
//   - Its prices for WSPT may exceed the own bid; its tables need them capped. Both
//     are here.
//   - It takes the revenue at the first price to be independent of the algorithm,
//     which holds on one node; on more, it depends on who is left alone at the
//     reserve. It has HB best by weighted flow time, which holds in its tables;
//     with a long job and a short one, WSPT is better. The tests have the numbers.
//   - The log of the third cluster, REQUIN, is not public, so that the tables and figures are reproduced
//     with the other two. The division of users into 80 % that are cautious and 20 % that are not is not run:
//     the paper says that it comes to nearly the same as the one of 90 and 10 %, which is.
//   - A waiting bid below the reserve, at the letter, lowers everyone's price.
//   - Tasks of several nodes are from D. Lehmann, L. O'Callaghan, Y. Shoham, "Truth revelation in approximately efficient
//     combinatorial auctions" (2002). They divide a bid by the root of its size for the best bound on welfare; here the
//     bid is for a slot-second, so that a job is not ranked by how it is divided into tasks.
package highestbid
