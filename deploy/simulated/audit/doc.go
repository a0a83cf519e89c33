// Package audit measures on a log whether lying pays in a market. For a sample of jobs it searches for the most profitable
// misreport, by running the whole market again with everything else unchanged.
//
// # Model
//
// A job's payoff is what the outcome is worth to its owner, by the true value, deadline, length and width (package measure), less
// what the job pays. If worth is by deadline, it is all or nothing. With the mechanism deadline, a result is available at the
// declared deadline, as the mechanism's proof assumes and as on a site; with hand_over: end, it is available when the job ends.
// All other users bid as in the study. The gain of a lie is its payoff less the payoff of the truth, as a part of the job's
// value v·width·length.
//
// The kinds of lie, each over a few sizes:
//
//	value      another rate than the true one
//	deadline   an earlier or a later one
//	length     a shorter or a longer one than the run time
//	nodes      the same work on fewer slots for longer, or more slots than needed
//	arrival    submitted later
//	split      two jobs of half the work
//	collusion  two users' jobs, next to each other, both with other rates; the
//	           gain is the gain of both together
//	three      three users' jobs, as with two
//	weights    proportional shares: other utility weights, or the other form of
//	           utility, over two classes of slots, among the jobs that are there when
//	           this one comes
//	classes    the same over eight classes, among eight jobs: each weight by itself, and all
//	ends       the job, or both its halves, exits with 1 or is cancelled by its
//	           owner when the results are there; the gain is over the same that
//	           end well. Run with all actors (package grid), since how a job ends
//	           is nothing to a mechanism alone
//	minimum    proportional shares with an slo: another minimum utility
//	delay      batch-queue: another cost of delay, with the true value
//	slow       the job takes longer than it need, and than it says
//	names      the work in two to four parts, each of an account of its own
//	ghosts     a second job that nobody needs, worth next to nothing and dear to
//	           delay, or bidding as the first; of the same account or of another one
//	cancel     the job is cancelled after a while, and submitted once more; and
//	           ghosts that are cancelled. Run with all actors
//	joint      everything that a job declares, its pace and its arrival, together: a
//	           search from the truth, which changes one thing after another and
//	           keeps what gains
//
// What lying sites and peers gain is not told here but by package faults, where a
// peer signs all that it can.
//
// Two things are told of each kind. In expectation: the mean gain of each fixed lie over
// all sampled jobs and over bids that are drawn anew (Options.Redraws), with an interval
// of 95 %; this is what mechanisms claim that is truthful in expectation. After the fact:
// the best lie of each job. A control is the gain of announcing half the value if all
// completed jobs paid what they announce, or four times as much if nobody paid: where
// neither gains, the sample could not have shown a gain. Intervals are of each lie by
// itself: of a hundred lies that gain nothing, two or three look as if they did.
//
// After the fact a job gains its best lie of a kind, or 0 by telling the truth. Where the
// mechanism draws lots, payoffs are means over several seeds, and a lie that was
// chosen with some of them is measured with the others: else luck would look
// like gain.
//
// # Owners who act
//
// Run asks what a job declares, SearchVerbs what its owner does: a sequence of at most four steps, such as to exit
// with 1 and to declare more than is needed. All actors run, and commands go the way that they go on a site,
// with a sampled job among its neighbours in the log. The agent has its result when every task has printed its part,
// however the task ends. Where a market hands results over at the deadline, it has its result at the declared deadline. Where
// each second of waiting costs, a sequence after which the agent never has its result does not count.
//
// The search begins with each step, with each way to end together with each false declaration, and with random
// sequences. Successive halving over more and more sampled jobs keeps the better ones, and their neighbours are tried
// too. These jobs are in turn a job that pays much, a job that misses much of its value, and any job: most jobs get all of
// their value for nothing, and show no difference between sequences. Other jobs, bids and lots choose one of the last five
// sequences, or a part of it. A third set of jobs, drawn blindly, measures the chosen one, so that luck in the choice is not
// counted as a gain. The controls are searches in a market with a hole: without one of its rules. In deadline and
// contract markets, and where shares are paid for on completion, an attempt that failed is no completion; in a contract
// market each ask draws a menu of its own; in a proportional market shares are of the tasks that start; elsewhere a job
// that does not end well owes nothing. Each of these holes was a fault once. Luck with some jobs must not look better than a small gain of all jobs. So
// sequences are compared by their mean gain less its standard error, where no job counts for more than its value.
// A control has fired if that mean, or the mean itself, is surely above 0.
//
// Dividing a task makes it no faster; the kind split measures what two halves gain that run at the same time. Where the truth is
// claimed to be best, false declarations, and raising a declaration later, are steps too. An account at another site is a
// visitor in the book, and an account here pays for it. What the other site itself may do is not searched.
//
// # Users who tell the lies that pay
//
// Run asks of one liar among honest users. Play asks where a market comes to rest if every user
// tells one lie for all its jobs: the truth, or one about value, deadline, length or
// arrival, or that each job is two. Users choose in turn by regret matching (Hart and
// Mas-Colell 2000) over what each lie would have paid against the others as they are, until
// nobody would gain more than a thousandth of its value. What it finds is an equilibrium
// among these lies on this log, one of perhaps several; a market need not come to rest.
//
// # What it can and cannot show
//
// Gains are ex post: against what the others happen to say. A mechanism that is
// truthful in expectation over the others (batch-queue, contract) may show some
// and keep its word.
//
// A gain is a proof: the run that shows it can be repeated. No gain is evidence,
// among the lies tried, on these jobs. Lies about value and length are to
// mechanisms that read them; others they do not change.
//
// # Determinism and cost
//
// The same study gives the same report, on any number of processors. A lie costs
// a run of the market: a study of a few days, or of a slice of a log, is enough to
// see most.
package audit
