// Package audit measures on a log whether lying pays in a market. For a sample of jobs it searches for the most
// profitable misreport. For each misreport, it runs the whole market again, with everything else unchanged.
//
// # Model
//
// A job's payoff is the worth of the outcome to its owner, minus what the job pays. The worth follows from the true
// value, deadline, length and width (package measure). In a market with worth: deadline, a job's worth is its whole
// value or nothing. With the mechanism deadline, a result is available at the declared deadline, as on a site and as
// the mechanism's proof assumes. With hand_over: end, it is available when the job ends. All other users bid as in the
// study. The gain of a lie is its payoff minus the payoff of the truth, as a part of the job's value v·width·length.
//
// The kinds of lie, each in a few sizes:
//
//	value      another rate than the true one
//	deadline   an earlier or a later one
//	length     shorter or longer than the run time
//	nodes      the same work on fewer slots for longer, or more slots than needed
//	arrival    submitted later
//	split      two jobs of half the work
//	collusion  two users with neighbouring jobs, both with other rates; the gain
//	           is the gain of both together
//	three      the same with three users
//	weights    proportional shares: other utility weights, or the other form of
//	           utility, over two classes of slots, among the jobs that are there
//	           when this one arrives
//	classes    the same over eight classes, among eight jobs: one weight changed,
//	           or all of them
//	ends       the job, or both its halves, exits with 1 or is cancelled when its
//	           owner has the results; the gain is compared with a good end. Run
//	           with all actors (package grid), because a mechanism alone does not
//	           see how a job ends
//	minimum    proportional shares with an slo: another minimum utility
//	delay      batch-queue: another cost of delay, with the true value
//	slow       the job takes longer than it needs and than it declares
//	names      the work in two to four parts, each of another account
//	ghosts     a second job that nobody needs. It declares almost no value and a
//	           high cost of delay, or bids as the first job. It has the same account
//	           or another one
//	cancel     the job is cancelled after some time and submitted again; or ghosts
//	           that are cancelled. Run with all actors
//	joint      everything that a job declares, its pace and its arrival together. The
//	           search starts from the truth, changes one thing after another, and
//	           keeps the changes that gain
//
// A job can also be one task on several slots of a node (workload.Wide). Such jobs need nodes, so all actors run. Only
// the 24 jobs of the log around a sampled job run then. The lies about nodes are lies about the width.
//
// The audit does not measure the gain of lying sites and peers.
//
// An audit reports two results for each kind. The result in expectation is the mean gain of each fixed lie over all
// sampled jobs and over newly drawn bids (Options.Redraws), with an interval of 95 %. A mechanism that is truthful in
// expectation claims that this gain is not above 0. The result after the fact is the gain of the best lie of each job,
// or 0 if the truth is best. If the mechanism makes random choices, payoffs are means over several seeds. One half of
// the seeds chooses the lie, and the other half measures it; otherwise luck would look like gain.
//
// A control is a lie that must gain: announcing half the value if all completed jobs paid what they announce, or four
// times the value if no job paid. For wide jobs there is a control about widths also: a narrower task, if a task of k
// slots paid k times what it announces. If no control gains, the sample is too weak to show a gain. Each interval is
// for one lie. So of a hundred lies that gain nothing, two or three seem to gain.
//
// If waiting costs, a short job can gain or lose a thousand times its value, and the interval of a small sample says
// nothing. So each lie has a bounded gain also, where no job counts for more than its value. A control has fired if one
// of its two means is surely above 0.
//
// # Owners who act
//
// Run tests what a job declares. SearchVerbs tests what its owner does: a sequence of at most four steps, such as to
// exit with 1 and to declare more than is needed. All actors run, commands take the same path as on a site, and the
// sampled job runs among its neighbours in the log. The agent has its result when every task has printed its part, in
// whatever way the task ends. If a market hands results over at the deadline, the agent has its result at the declared
// deadline. If each second of waiting costs, a sequence without a result does not count.
//
// The search begins with each single step, with each way to end combined with each false declaration, and with random
// sequences. Successive halving over more and more sampled jobs keeps the better ones, and tries their neighbours.
// These jobs are in turn a job that pays much, a job that misses much of its value, and any job. Most jobs get all of
// their value for free, and so show no difference between sequences. One of the last five sequences, or a part of one,
// is chosen with other jobs, bids and seeds. A third set of jobs, drawn at random, measures the chosen sequence.
//
// The controls are searches in a market with a hole: one of its rules is removed. In deadline and contract markets, and
// where shares are paid on completion, a failed attempt is then no completion. In a contract market, each request draws
// a new menu. In a proportional market, shares count the tasks that start. In other markets, a job that does not end
// well owes nothing. Sequences are compared by their mean gain minus its standard error, where no job counts for more
// than its value. A control has fired if this mean, or the plain mean, is surely above 0.
//
// Dividing a task does not make it faster; the kind split measures two halves that run at the same time. Where the
// market claims that the truth is best, false declarations, and raising a declaration later, are also steps. An account
// at another site is a visitor in the book, and an account here pays for it. The search does not cover what the other
// site itself may do.
//
// # Users who tell the lies that pay
//
// Run measures one liar among honest users. Play asks where users stop changing their lies, if every user tells one lie
// for all its jobs: the truth, or one lie about value, deadline, length or arrival, or the division of each job into
// two. The users choose in turn by regret matching (Hart and Mas-Colell 2000): a user adds up what each lie would have
// gained against the current choices of the others. Play ends when nobody can gain more than a thousandth of its value.
// The result is one equilibrium among these lies on this log; there may be others. In some markets, the users never
// stop.
//
// # What it can and cannot show
//
// Gains are ex post: against the actual bids of the others. A mechanism that is truthful in expectation over the bids
// of the others (batch-queue, contract) may show some gains and still keep its promise.
//
// A gain is a proof: the run that shows it can be repeated. If no gain is found, this is only evidence about the lies
// that were tried on these jobs. Lies about value or length change nothing in a mechanism that does not read them.
//
// # Determinism and cost
//
// The same study gives the same report, on any number of processors. A lie costs one run of the market. A study of a
// few days, or of a part of a log, usually shows enough.
package audit
