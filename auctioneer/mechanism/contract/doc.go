// Package contract makes a menu of contracts for a job. A contract is a completion time with a price. The
// scheduler is a black box for this package: it only needs the completion times that the scheduler expects.
//
// # Model
//
// M replicas r_j are the declared valuation type, at a uniformly random place, and M−1 types drawn from
// the estimated distribution of the job's profile class. M more drawn types are the surrogates.
// X_k is the time by which the scheduler expects the job to complete if surrogate k is declared instead,
// and v(r_j, X_k) is the weight of the pair (j, k). A matching of the largest weight gives each replica
// a surrogate. For the replica j that is matched to surrogate k, k costs
//
//	p_jk = W(R∖j, S) − W(R∖j, S∖k),
//
// where W is the largest weight of a matching: what the other replicas lose because j takes k. Each pair
// is a contract (X_k, p_jk). A job that takes it is scheduled as surrogate k. If the job completes at x,
// it owes p·v(r_j, x)/v(r_j, X_k), always or only if it is late.
//
// NewDraw draws the types, NewOffer makes the menu, Sample shortens it, and Contract.Settle returns what
// is owed. Solver only solves the matching. For types of L parameters and a loss of value of the order of
// ε, theorem 4 needs M = (√L/2)^L·ε^(−L−2); the paper's rule of thumb is ε^(−L−1). The black box of the
// live market is the package deadlineaware (DeadlineAware); EarliestDeadline is a simple one.
//
// # Live market
//
// NewMechanism returns the mechanism of a live market.
//
// Menus:
//
//   - Mechanism.Quote makes the menu for the declared Valuation of a bid, among the jobs of the view. It uses
//     the types seen in the job's class, or the market's Prior, and shows a sample of the menu. Contracts are
//     messages.Contract: an instant, microcredits, and the valuations of the replica and of the surrogate.
//   - Time is divided into periods of the length for which a menu is valid. In a period, all menus of a class
//     are drawn with the same seed, whoever asks and whatever is declared. The seed is a keyed hash of market,
//     class and period; the leader keeps the key. So asking again yields the same menu, as long as the jobs
//     are the same, and theorems 1 and 2 hold for each draw. Without this, the best of three menus was worth
//     0.33 [0.20, 0.45] of the value more than one menu, and the best of ten 0.51. A user who waits for the
//     next period sees two draws.
//   - A job is submitted with one of the contracts as Bid.Contract. Quote.Declared is the one to take for a
//     bidder without other wishes. The budget must cover Most, because completing early can cost more than
//     was agreed. The mechanism does not remember its quotes. The auctioneer keeps them, and accepts only
//     contracts from them.
//
// Schedule:
//
//   - Allocate gives idle slots to jobs in the order of deadlineaware.Order, as tasks end. The order uses the
//     surrogates' valuations, and the robust run times of the tasks that are left. No task is suspended.
//   - Once three runs were seen, the run time is robust within Bid.Runtimes.Divergence of the run
//     times seen; before that, it is the declared length. Explain tells which. Observed run times do not
//     depend on what the bidder declares now, so a false length has no effect once enough runs were seen.
//   - A task of k slots is planned as k tasks of one slot that take as long. Its menu is theirs, and it pays
//     for what the k slots cost others. The plan counts slots on any nodes, and runs the k tasks one after
//     the other where fewer slots are free. In reality a node gathers the slots, and others cannot use them
//     meanwhile. So a wide task, and the tasks behind it, may complete later than promised, mostly if the task
//     is nearly as wide as a node. The price then falls with the value received, as for any delay by
//     the site, and nobody pays for idle slots. A task cannot declare fewer slots than it uses: it gets
//     exactly the slots of its shape. All tasks of a job have the same width.
//
// Promises:
//
//   - A promise is a completion time with slack. It is kept if the job is late by at most a second, or a
//     hundredth of the time. It is also kept if completion is still worth 0.99 of what was promised, and no
//     less than the price. Half of the second or of the hundredth is not sold.
//   - A quote does not affect earlier promises. The committed jobs are planned in the order of their promises,
//     with the planned times of their tasks; no type lets the new job complete before there is room for it
//     among them. A type that the scheduler would serve sooner is moved to that time. So the menus are those
//     of a scheduler that knows the promises.
//   - Admit checks again, and refuses a contract if others have bought its time since the quote. It does not
//     refuse users of other sites: a quote to another site stays valid while it lasts, even if
//     the sites are disconnected, and can break promises that were sold meanwhile.
//   - Allocate serves jobs by their promises if the scheduler's order would break more promises. Events that
//     no plan knows still break promises: a task takes longer than planned, or a node is lost. A
//     job whose promise cannot be kept any more comes after the jobs whose promises can.
//   - Each market counts the kept promises (Kept): candor markets and a metric show the count.
//   - For a whole instance (candor solve contract, candor simulate, and the declarations of candor audit),
//     the solution is the paper's, without committed promises.
//
// Payment:
//
//   - The promised value counts from the quote. The received value counts from the submission, and so does
//     the surrogate's. A job that takes a quote late is scheduled from then on. It pays the agreed price if it
//     takes as long from its submission as was promised from the quote.
//   - Settle scales the price by what was received, and explains this in the reason. Slot time that a job used
//     beyond the plan, summed over its tasks, is not counted as lateness (Contract.Planned). So a user gains
//     nothing by letting a job run longer than necessary to lower its price.
//   - A task completes when its program ends for the first time, with any exit code, or when its owner ends an
//     attempt for the first time. A job completes with its last task, or when it fails or is cancelled. So a
//     user gains nothing by failing when the results are there, and running again until nothing is worth
//     anything. If all tasks have completed this way, their further runs come after all jobs with contracts.
//     Attempts that the site ended do not count.
//
// # Shapes and units
//
// Matrices are M×M, replica by replica. Times are in seconds after submission,
// weights and prices in credits or any other unit of money. Amounts are rounded
// on the live market only: the price to the microcredit when it is quoted, what
// is owed when it is settled, half to even.
//
// # Guarantees
//
// All of them are about what is declared. What owners gain by commands is measured on the page of markets
// (deploy/docs/markets.md).
//
// All prices come from one optimal matching and one search for longest paths. Let σ be the matching, and i_k
// the replica of surrogate k. If replica j is removed and k stays on offer, there is room at k: another replica may
// move there, a third to the surrogate that the second left, and so on, until a surrogate is left without a
// replica. Nothing else helps: a change of σ that does not begin at k is a circle of moves, which cannot gain in
// an optimal matching. So p_jk is the largest gain along such a chain, which can be empty. The replica of
// c gains w(i_c, k) − w(i_c, c) by moving to k. Chains through j itself, which is removed, close a circle at k
// and gain nothing, so they have no effect. The gains of the best chains are the least solution of
//
//	p_k = max(0, max_c w(i_c, k) − w(i_c, c) + p_c):
//
// the lowest prices, not negative, at which no replica would prefer the surrogate of another. One of them is 0, or
// all could be lowered. They are the same in every optimal matching: prices that support one optimal matching
// support all of them, and these prices are the lowest of that set. Let d be any prices that support σ, such as
// those with which the matching was found. Then every move loses at least 0,
// w(i_c, c) − d_c − (w(i_c, k) − d_k) ≥ 0, so Dijkstra's shortest paths find the chains, by increasing
// d_k − p_k. And p_jk ≤ w(j, k), because W(R∖j, S) ≤ W.
//
// Whole weights give exact prices and weights, if M times the largest weight is below 2^52. Other weights give a
// matching and prices to 1e-12 of their sum.
//
// If weights do not rise with the completion time, prices do not either: a replica with the later of two
// surrogates would prefer the earlier one if it did not cost more. For every draw, a user of exactly the
// declared type finds no contract on the menu that is better than the one of the declared replica. In
// expectation over the draws, it is best to declare the true type (theorem 1), provided that the types of other
// users follow the distribution of the class. Sample does not change that. What it shows does not depend on
// the declaration, except for the free contract and the declared one; and the declared one is the best of
// the whole menu.
//
// Outside the model: in the paper, only the scheduler decides the completion time. Here a user who makes a job
// longer than planned pays as if it were on time. This is also true of a job that honestly takes
// longer, although its user received less: declare the longest time. A false length changes the menu until
// run times of such tasks are known. Measured with candor audit over three days of the KTH SP2 log, on 4 nodes at
// twelve times its load, with 46 jobs and bids drawn twice: no fixed lie about the length or the value gains on
// average (0 [0, 0] of the job's value). After the fact, one job gains its whole value by its best length.
// Over 15 days on 3 slots at twice the load (502 jobs of three draws): lies about the value, the deadline and the
// rates of two or three together gain 0 [0, 0]. A false length gains 0.021 [0.004, 0.039] of the value. A slow
// job, a later arrival, halves and false names lose. After the fact, 28 jobs gain by a lie about one number, at
// most their whole value. The control gains 0.498 [0.494, 0.502].
//
// The paper's other claims hold as follows. Each has a test.
//
//   - Theorem 2, nobody pays more than it received: this is true of a user whose tasks take no longer than
//     planned, and who values the job as the contract's replica does, at any actual completion time and
//     with both rules of adjustment. A user with another valuation can lose: it pays by the valuation of
//     the replica, which may have received everything while the user received nothing.
//   - Theorem 3, the adjustment keeps incentives: the proof uses the value at the expected completion time as the
//     expected value. They differ wherever a valuation is not a straight line (Jensen). Then the expected
//     price is not the agreed price, and the order of contracts with different risks can change. The theorem
//     holds if completion times are certain, or if each contract's expected value is the same multiple of
//     the promised value. It also holds if the weights are expected values: then the expected price is
//     the agreed price.
//   - Theorem 4 bounds the value with surrogates from above. In fact the bound is from below: at least (1−O(ε)) of
//     the value with declared types. There is no bound from above: a schedule that ignores the type loses
//     nothing. The theorem leaves open the constants of its O and Ω in M; above, they are 1.
//
// # Disclosure
//
//	what another account may learn                           before completion  after it
//	names, valuations, contracts, budgets, prices of others  no                 no
//	how many jobs there are, slots and idle slots            yes                yes
//	the completion times that are left, as a quote           yes                yes
//
// Owners see everything about their own jobs, operators about all jobs. A menu is made from the declared type, from
// types drawn from a class, and from the schedule. Only services and operators can see the draws and the means of a
// class, because each declared type changes them.
//
// # Changes of a bid
//
// No term may change. A contract is made for what the job declared, from a draw that the bidder must not try twice. A
// job with another declaration needs another quote.
//
// # Errors
//
// Admit and Quote refuse a bid without a contract or a valuation, and a bid that could not be planned or charged.
// They return Unavailable if no types of bidders are known for the class.
//
// Invalid: a matrix that is not square, weights that are negative or not finite, M below 1, a class without samples or
// without valid types, a scheduler that returns too few times. TooLarge: M above MaxM. An error changes nothing.
//
// # Cost
//
// The matching is found in three steps: an auction with shrinking increments,
// which only finds prices to start from; a greedy matching at those prices; and
// a shortest augmenting path for each replica left over (Jonker and Volgenant).
// If replicas are few and their favourites differ, one round of those authors' reductions replaces the first two
// steps. The worst case is O(M³), and O(M²) for the prices. Memory is 8·M² bytes and a few per cent more, and is reused
// in the next call. If weights come from valuations and one completion time for each surrogate, it is faster: it orders
// the surrogates into blocks of similar ones, and can skip most blocks. The result is exact for every matrix.
// `lab bench auction` measures these costs.
//
// # Source
//
// Z. Huang, S. M. Weinberg, L. Zheng, C. Joe-Wong, M. Chiang, "Discovering
// valuations and enforcing truthfulness in a deadline-aware scheduler", sections
// II and III: equation 1 is Solver.Solve, equation 2 Adjust, section III-C's
// late-only variant AdjustLate, section III-D Sample. The
// paper solves M more matchings for the prices, in O(M⁴). R. Jonker, A.
// Volgenant, "A shortest augmenting path algorithm for dense and sparse linear
// assignment problems"; D. Bertsekas, "The auction algorithm"; H. Leonard,
// "Elicitation of honest preferences for the assignment of individuals to
// positions", for the lowest competitive prices.
package contract
