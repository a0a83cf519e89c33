// Package faults runs a whole federation under faults in virtual time. There are three sites. Each site has three
// machines, with a replica of the job book and one of the bank's state, and agents with virtual processes. Users submit
// jobs to their own and to other sites. They repeat, cancel, hold, release, requeue and rerun jobs, raise and use up
// budgets, and pay users of other sites. They also authorise other sites to charge them.
//
// # What is real and what is not
//
// The states are the real ones: packages book, ledger and clearing, and nodeagent/state. Package desk, which makes the
// decisions of the auctioneer's leader, is also real. Each site has a market with another mechanism (proportional,
// highest-bid preemptive, batch-queue with gangs), which operators change while jobs run.
//
// Everything else is a simplified model. The estimator answers at random, or not at all. The replicated log is a small
// Raft with votes, snapshots, and a disk that can lose everything, or all unsynced data. The bank keeps its history
// with package history, in files in memory that can be damaged. There is no archive of ended jobs; the tests of package
// archive damage one. Signatures are cheap checksums. The code around the states and the desk (the shells) consists of
// callbacks, instead of sockets and goroutines. A run depends only on a seed and a list of faults.
//
// # Invariants
//
// After every entry that a replica applies, checkers of this package test whether the invariants hold. They share no
// code with the states.
//
//   - 1: Money. A second set of books, which only adds up the committed commands, agrees with each ledger account
//     by account. The books of each two banks agree number by number. All balances at all sites, plus all amounts
//     in flight, sum to the issued credits. A hold is resolved once. The hold of a bidding job is its budget, also
//     after a raise. No task pays for more time than it had, even if clocks are set. Holds expire by the bank's
//     time, which is ahead of the true time by at most the error of the second worst clock.
//   - 2: Tasks. A task has at most one claim, and only a command about the claim's attempt can end it. One attempt
//     is accepted, and it ended well. While clocks are right, a task runs at one place at a time. A job is charged
//     once, and at most its hold or its authorised amount. A rerun repeats no task that ended well.
//   - 3: Promises. What was committed, acknowledged to a user or told to another bank never changes.
//   - 4: Replicas and restored images are equal byte for byte. A damaged history is complete again when the faults
//     are over.
//   - 5: A site without faults of its own ends and charges all its jobs, even if it is cut off. When the faults
//     are over, all books agree, a remote job has the same state at home and at the site that ran it, and the
//     settlement cycle nets to zero. This is checked once each simulated second, with some patience.
//   - 6: Each allocation and settlement has the guarantees of its mechanism. Shares sum to one. Nobody gets less
//     than a lower bidder. Nobody pays more than the budget, or than the bid if the job bids for slots. The site
//     and other jobs get exactly the amounts that jobs pay.
//   - 7: A lying peer gets from each site at most its limit and its share of the reserve, and no more credit
//     during a dispute. The liar is a fourth site that only sends messages: anything that it can sign.
//   - 8: A node on which every task fails at once makes no job fail.
//   - 9: A leader does its duties in time, and once. It takes back the claims of silent nodes only, breaks up late
//     gangs, empties nodes whose time to drain is over, and ends jobs whose budgets are spent. It makes one
//     statement about the debt of a job, and one decision at a time. The numbers of its vectors increase. Nodes
//     obey the book. The leader refuses messages that no agent and no site may send.
//
// For each invariant there are inserted bugs ([Bug]) that the checkers soon find. [Run] runs a seed. [Shrink] finds the
// smallest plan with which a seed fails, and [Tell] tells the story of a failure.
//
// # Cost
//
// With the default plan, a seed takes some 31,000 steps, at least 80 simulated seconds, and about a twentieth of a
// second of processor time. One core runs 100,000 seeds in an hour and a half.
package faults
