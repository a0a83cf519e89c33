// Package faults runs a whole federation under faults in virtual time: three
// sites, each with three machines that have a replica of the job book and one of
// the bank's state, with agents with virtual processes, and with users who
// submit here and to other sites, cancel and repeat, hold, release, requeue and raise,
// run failed tasks again, spend their budgets, pay users of other sites, and have other
// sites charge what they authorised.
//
// # What is real and what is not
//
// The states are the real ones: packages book, ledger and clearing,
// nodeagent/state. So is the auctioneer's leader, package desk: each site has a market
// with another mechanism (proportional, highest-bid preemptive, batch-queue with
// gangs), which operators apply anew while jobs run. Models stand in for the rest: the
// estimator answers at random, or not at all; the replicated log is a small Raft, with votes, a disk that loses what was not
// synced, or everything, and snapshots; the bank keeps its history with package history, in
// files that are in memory and can be damaged; there is no archive of ended jobs, which is no
// part of a state (its damage is in the tests of package archive); signatures are sums that cost little; the shells, which
// have sockets and goroutines in production, are the callbacks of this package.
// Everything follows from a seed and a list of faults.
//
// # Invariants
//
// After every entry that a replica applies, checkers of this package, which share
// no code with the states, hold the federation to what must always be true.
//
//  1. Money: a second set of books, kept by plain addition of what was
//     committed, agrees with each ledger account by account; the books of each
//     two banks agree number by number; what all have at all sites, with what
//     is in flight, is what was issued; holds resolve once; the hold of a job that bids
//     is its budget, also after a raise; no task pays for more time than it had, though clocks are
//     set; a bank's time, by which holds lapse, is ahead of
//     the true time by no more than the second worst clock.
//  2. A task has one claim at most, which only a word about that very attempt
//     ends; one attempt is accepted, and it did end well; while clocks are well, a
//     task runs at one place at a time; a job is charged once, never more than
//     its hold, or what was authorised for it; a rerun does no task that ended well.
//  3. What was committed, acknowledged to a user or told to another bank is never
//     otherwise again.
//  4. Replicas, and images restored, are byte-identical; a damaged history is whole again when
//     all is well.
//  5. A site within which nothing is wrong ends and charges all its jobs, though
//     it be cut off; when all is well again, all books agree, a job that another
//     site ran is at home what it was there, and the cycle nets to zero. This one is checked once a simulated second, with patience.
//  6. Each allocation and settlement is held to what is claimed of mechanisms:
//     shares sum to one, nobody gets less than who bids less, nobody pays above
//     the budget or, where it bids for slots, the bid; what jobs pay is what the
//     site and other jobs get.
//  7. A peer that lies has of each site at most its limit and its share of the
//     reserve, and no more credit while a dispute is open: a fourth site, which
//     exists only as a sender of messages, sends whatever it can sign.
//  8. A node on which whatever is started fails at once costs no job its life.
//  9. A leader does its duties in time, and once: it takes back the claims of silent
//     nodes, and of no others, disbands late gangs, empties nodes whose time to drain is over,
//     ends jobs whose budgets are spent,
//     says one thing about what a job owes, makes one decision at a time, numbers its
//     vectors upwards, has nodes do what the book says, and refuses what no agent and no site
//     may say.
//
// For each of them there are planted bugs ([Bug]) that are found soon. See [Run],
// [Shrink] for the least plan under which a seed fails, and [Tell] for its story.
//
// # Cost
//
// With the default plan a seed takes some 31,000 steps, 80 simulated seconds at
// least, and about a twentieth of a second: a core makes 100,000 seeds in an hour and a half.
package faults
