// Package contract makes a menu of contracts for a job. A contract is a completion time with a price. The scheduler is
// a black box: this package only needs the completion times that it expects.
//
// # Model
//
// There are M replicas r_j: the declared valuation type, at a uniformly random place, and M−1 types drawn from the
// estimated distribution of the job's profile class. There are M surrogates, which are drawn from the same
// distribution. X_k is the time at which the scheduler expects the job to complete if surrogate k is declared instead,
// and v(r_j, X_k) is the weight of the pair (j, k). A matching of the largest weight gives each replica a surrogate. If
// replica j gets surrogate k, the price is
//
//	p_jk = W(R∖j, S) − W(R∖j, S∖k),
//
// where W is the largest weight of a matching. So the price is what the other replicas lose because j takes k. Each
// pair is a contract (X_k, p_jk). A job that takes it is scheduled as surrogate k. If the job completes at x, it owes
// p·v(r_j, x)/v(r_j, X_k), always or only if it is late.
//
// NewDraw draws the types, NewOffer makes the menu, Sample shortens it, and Contract.Settle returns what is owed.
// Solver finds the matching and its prices. If a type has L parameters, and a fraction of about ε of the value may be
// lost, theorem 4 needs M = (√L/2)^L·ε^(−L−2). The paper's rule of thumb is ε^(−L−1). The black box of the live market
// is the package deadlineaware (DeadlineAware); EarliestDeadline is a simple one.
//
// # Live market
//
// NewMechanism returns the mechanism of a live market.
//
// Menus:
//
//   - Mechanism.Quote makes the menu for the declared Valuation of a bid, among the jobs of the view. It uses the types
//     seen in the job's class, or the market's Prior, and shows a sample of the menu. Contracts are job.Contract: an
//     instant, microcredits, and the valuations of the replica and of the surrogate.
//   - Time is divided into periods of the length for which a menu is valid. In a period, all menus of a class are drawn
//     with the same seed, whoever asks and whatever is declared. The seed is a keyed hash of market, class and period;
//     the leader keeps the key. So asking again yields the same menu, as long as the jobs are the same. Without this,
//     the best of three menus was worth 0.33 [0.20, 0.45] of the value more than one menu, and the best of ten 0.51. A
//     user who waits for the next period sees two draws.
//   - A job is submitted with one of the contracts as Bid.Contract. A bidder without other wishes should take the
//     contract Quote.Declared. The budget must cover Most, because completing early can cost more than was agreed. The
//     mechanism does not remember its quotes. The auctioneer keeps them, and accepts only contracts from them.
//
// Schedule:
//
//   - Allocate gives idle slots to jobs in the order of deadlineaware.Order, as tasks end. The order uses the
//     surrogates' valuations, and the robust run times of the remaining tasks. No task is suspended.
//   - Before three runs were seen, the planned run time of a task is its declared length. After that it is a robust
//     quantile of the run times seen, which may mislead up to Bid.Runtimes.Divergence. Explain says which of them is
//     used. Observed run times do not depend on what the bidder declares now, so a false length has no effect once
//     enough runs were seen.
//   - A task of k slots is planned as k tasks of one slot that take as long. Its menu is the menu of such a job, and it
//     pays for what the k slots cost others. The plan counts slots on any nodes, but a node must gather the slots, which
//     others cannot use meanwhile. So a wide task, and the tasks behind it, may complete later than promised. A job on
//     several nodes is planned in the same way, as one task for each of its slots. A late job pays less, because it
//     received less value. Nobody pays for idle slots. All tasks of a job have the same width. Nothing is proven about
//     widths. Measured on 36 jobs of several slots, drawn as in package fifo: declaring the same work on fewer or more
//     slots gains 0.048 [−0.046, 0.14] of the job's value.
//
// Promises:
//
//   - A promise is a completion time with slack. It is kept if the job is late by at most a second, or a hundredth of
//     the time. It is also kept if completion is still worth 0.99 of what was promised, and no less than the price.
//     Only half of this slack is used when later jobs are planned.
//   - A quote does not break earlier promises. The jobs with promises are planned in the order of the promised times.
//     For the new job, the quote computes the earliest completion time that breaks none of these promises. If the
//     scheduler would complete the job earlier with some type, the menu has this earliest time instead. So the menu is
//     the menu of a scheduler that knows the promises.
//   - Admit checks again, and refuses a contract if others have bought its time since the quote. It does not refuse
//     users of other sites: a quote to another site stays valid until it expires, even if the sites are disconnected.
//     So it can break promises that were sold meanwhile.
//   - Maintenance windows: a completion time is promised only if maintenance leaves room for the job until then. A
//     task is planned on a slot only if its time limit ends before the slot closes. Admit refuses a contract if
//     windows were added after the quote and leave no time for it. A promise that was sold before a window was added
//     can be broken by the window; then the job pays for the value that it received. Windows do not change the order
//     of the jobs.
//   - Allocate serves jobs by their promises if the scheduler's order would break more promises. Unexpected events can
//     still break promises: a task takes longer than planned, or a node is lost. A job whose promise cannot be kept any
//     more comes after the jobs whose promises can still be kept.
//   - Each market counts the kept promises (Kept): candor markets and a metric show the count.
//   - When a whole instance is solved (candor solve contract, candor simulate, and the declarations of candor audit),
//     there are no earlier promises, as in the paper.
//
// Payment:
//
//   - The time of the promised value counts from the quote. The times of the received value and of the surrogate's
//     valuation count from the submission. A job that is submitted some time after its quote pays the agreed price if
//     it takes as long from its submission as was promised from the quote.
//   - Settle multiplies the price by the received part of the promised value, and explains this in the reason. Slot
//     time that a job used beyond the plan, summed over its tasks, is not counted as lateness (Contract.Planned). So a
//     user gains nothing by letting a job run longer than necessary to lower its price.
//   - A task completes when its program ends for the first time, with any exit code, or when its owner ends an attempt
//     for the first time. A job completes with its last task, or when it fails or is cancelled. So a user gains nothing
//     by letting a task fail when its results are there, and running it again until its value is 0. If all tasks have
//     completed this way, their further runs come after all jobs with contracts. Attempts that the site ended do not
//     count.
//
// # Shapes and units
//
// Matrices are M×M, replica by replica. Times are in seconds after submission, weights and prices in credits or any
// other unit of money. Amounts are rounded to the microcredit, half to even, on the live market only: the price when it
// is quoted, and the amount owed when it is settled.
//
// # Guarantees
//
// All guarantees are about what a bidder declares. The page deploy/docs/honesty.md has measurements of what owners gain
// by commands, such as cancel.
//
// All prices come from one optimal matching and one search for longest paths. A column is a surrogate, and a row is a
// replica. Let σ be the matching, and i_k the replica of surrogate k. If replica j is removed and k stays on offer,
// another replica may move to k, a third to the surrogate that the second left, and so on, until a surrogate is left
// without a replica. No other change of σ helps: it would be a circle of moves, and in an optimal matching a circle
// gains nothing. So p_jk is the largest gain along such a chain. A chain can be empty. When the replica of c moves to
// k, the gain is w(i_c, k) − w(i_c, c). A chain through j, which is removed, would close a circle at k and gain
// nothing, so it need not be excluded. The gains of the best chains are the least solution of
//
//	p_k = max(0, max_c w(i_c, k) − w(i_c, c) + p_c):
//
// the lowest prices, none negative, at which no replica would prefer the surrogate of another replica. One price is 0;
// otherwise all could be lowered. All optimal matchings have the same lowest prices, because prices that support one
// optimal matching support all of them. Let d be any prices that support σ, such as the prices with which the matching
// was found. Then no move gains, w(i_c, c) − d_c − (w(i_c, k) − d_k) ≥ 0, so Dijkstra's shortest paths find the chains,
// by increasing d_k − p_k. And p_jk ≤ w(j, k), because W(R∖j, S) ≤ W.
//
// If weights are whole numbers, and M times the largest weight is below 2^52, prices and weights are exact. Otherwise
// the matching and the prices are exact to 1e-12 of their sum.
//
// If weights do not rise with the completion time, prices do not rise either: if the earlier of two surrogates cost
// less, the replica with the later one would prefer it. For every draw, no contract on the menu is better for a user of
// the declared type than the contract of the declared replica. In expectation over the draws, it is best to declare the
// true type (theorem 1), provided that the types of other users follow the distribution of the class. Sample does not
// change that. Only two of the contracts that it shows depend on the declaration: the free contract and the declared
// contract. The declared contract is the best of the whole menu.
//
// Outside the model: in the paper, only the scheduler decides the completion time. Here a user whose job takes longer
// than planned pays as if the job were on time. This is so even if the user is honest and received less, so a user
// should declare the longest time. A false length changes the menu until run times of such tasks are known. candor
// audit measured three days of the KTH SP2 log on 4 nodes at twelve times its load (46 jobs, bids drawn twice). No
// fixed lie about the length or the value gains on average (0 [0, 0] of the job's value). After the fact, one job gains
// its whole value by its best length. Over 15 days on 3 slots at twice the load (502 jobs of three draws): lies about
// two or three of the value, the deadline and the rates together gain 0 [0, 0]. A false length gains 0.021 [0.004,
// 0.039] of the value. A slow job, a later arrival, halves and false names lose. After the fact, 28 jobs gain by a lie
// about one number, at most their whole value. The control, in which jobs pay what they announce or nothing, gains
// 0.498 [0.494, 0.502].
//
// The paper's other claims hold as follows. Each has a test.
//
//   - Theorem 2, nobody pays more than it received: this holds for a user whose tasks take no longer than planned, and
//     who values the job as the contract's replica does. It holds at any actual completion time, with both rules of
//     adjustment. A user with another valuation can lose: the price follows the replica's valuation.
//   - Theorem 3, the adjustment keeps incentives: the proof uses the value at the expected completion time as the
//     expected value. They differ if the valuation is not a straight line there (Jensen). Then the expected price is
//     not the agreed price, and the order of contracts with different risks can change. The theorem holds if completion
//     times are certain, or if each contract's expected value is the same multiple of the promised value. It also holds
//     if the weights are expected values: then the expected price is the agreed price.
//   - Theorem 4 bounds the value with surrogates from above. In fact the bound is from below: at least (1−O(ε)) of the
//     value with declared types. There is no bound from above: a schedule that ignores the type loses nothing. The
//     theorem does not give the constants of its O and Ω in M; the formula above takes them as 1.
//
// # Disclosure
//
//	what another account may learn                           before completion  after it
//	names, valuations, contracts, budgets, prices of others  no                 no
//	how many jobs there are, slots and idle slots            yes                yes
//	the completion times that are left, as a quote           yes                yes
//
// Owners see everything about their own jobs, operators about all jobs. Only services and operators can see the drawn
// types and the means of a class, because each declared type changes them.
//
// # Changes of a bid
//
// No term may change. A contract is made for the declaration of the job, and a bidder must not get two draws. A job
// with another declaration needs another quote.
//
// # Errors
//
// Admit and Quote refuse a bid without a contract or a valuation, and a bid that cannot be planned or charged. They
// return Unavailable if no types of bidders are known for the class.
//
// Invalid is returned for a matrix that is not square, weights that are negative or not finite, M below 1, a class
// without samples or without valid types, and a scheduler that returns too few times. TooLarge is returned for M above
// MaxM. An error changes nothing.
//
// # Cost
//
// The matching is found in three steps: an auction with shrinking increments, which only finds prices to start from; a
// greedy matching at those prices; and a shortest augmenting path for each replica left over (Jonker and Volgenant). If
// there are few replicas and their favourites differ, one round of the reductions of Jonker and Volgenant replaces the
// first two steps. The worst case is O(M³), and O(M²) for the prices. Memory is 8·M² bytes and a few per cent more, and
// is reused in the next call. If weights come from valuations and one completion time for each surrogate, the solver is
// faster: it puts similar surrogates into one block, and can skip most blocks. The result is exact for every matrix.
// `lab bench auction` measures these costs.
//
// # Source
//
// Z. Huang, S. M. Weinberg, L. Zheng, C. Joe-Wong, M. Chiang, "Discovering valuations and enforcing truthfulness in a
// deadline-aware scheduler", sections II and III: equation 1 is Solver.Solve, equation 2 Adjust, section III-C's
// late-only variant AdjustLate, section III-D Sample. The paper solves M more matchings for the prices, in O(M⁴). R.
// Jonker, A. Volgenant, "A shortest augmenting path algorithm for dense and sparse linear assignment problems"; D.
// Bertsekas, "The auction algorithm"; H. Leonard, "Elicitation of honest preferences for the assignment of individuals
// to positions", for the lowest competitive prices.
package contract
