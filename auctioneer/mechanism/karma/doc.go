// Package karma shares slots among accounts that earn karma by giving up their share,
// and spend it later to have more than their share. Karma is not the credits of the
// bank: nobody can buy, sell or give it.
//
// # Model
//
// Time is in quanta. In each, n accounts share a number of slots. Each is guaranteed
// g = ⌊α·slots/n⌋ of them; the others, slots − n·g, are shared, and each account gets
// their n-th part as karma for free. An account has its demand up to g. What it leaves of g it
// donates. An account that wants more than g borrows, a slot at a time and for one karma
// each; the borrower with most karma is next, and an account without karma does not borrow.
// Donated slots are borrowed before shared ones, and those of the donor with least
// karma first, which gets the karma paid; the karma paid for shared slots is gone. So an
// account that gave up much goes first when it asks for much.
//
// Quantum is one quantum, Ledger the accounts over time, SolveDocument a sequence of
// quanta: {"alpha": 0.5, "slots": 6, "karma": 10, "demands": [[3, 2, 1], …]}, a row of demands for
// each quantum; the answer is the slots and the karma of each account after each quantum.
//
// New makes the mechanism of a live market, with a ledger for each class. An account is a
// member from its first job until a week after its last. Another site is one member with all of its users, whose names it gives; what comes free to it goes to these names equally. A newcomer has the mean karma of
// the members, the first a million. An account asks for as many slots as it has
// tasks pending and running; what comes free goes to accounts in proportion to what they lack of
// what they are given, and if nobody lacks anything, to those with most karma. The price in
// credits is posted; see package posted.
//
// A task of k slots counts k times: its account asks for k, holds k, and pays k karma for a quantum beyond
// what it is given. It is drawn as long as its account lacks any slot, also where the account is given fewer than k:
// what it then holds beyond that, it owes. Slots that a node keeps idle for the task are held by nobody: they cost
// credits, and no karma.
//
// # Shapes and units
//
// Karma is counted in millionths: one karma is a slot for a quantum. Quanta are a minute
// unless the market's slot says otherwise. α is 1/2 unless the market says otherwise.
//
// # Guarantees
//
// Of the model, tests check on random sequences of demands:
//
//   - Pareto efficiency: as long as borrowers have karma, no slot is idle in a quantum
//     in which somebody wants one, and nobody has more than its demand.
//   - Alpha: an account always has its demand up to g.
//   - Balance: karma changes by what is given for free less what is paid for shared
//     slots, and by nothing else.
//   - Fairness: with α = 0 and enough karma, in each quantum the smallest total of the
//     accounts whose demand was not met is as large as it can be, given the quanta before.
//   - To ask for more than one can use gains nothing over all quanta; with α = 0. To ask for less
//     can gain, at most half as much again as the truth, for an account that knows all
//     demands to come, and can lose much more.
//
// Outside of the model, on a site: a task that runs keeps its slot, so that an account may
// hold more than it is given. It pays for what it holds all the same, and may owe karma. What
// counts in a quantum is what an account held and asked for in the mean over it, to the nearest
// slot; what that leaves is counted with the next. So to be away around the ends of quanta
// does not pay. A false name has a share and the mean
// karma, as under fair share: whoever can open accounts gains by it. Measured with candor audit (15 days of the
// KTH SP2 log on 3 slots at twice its load, 573 jobs of three draws, each second of waiting costs as
// much as one on a slot is worth): a job in four parts under four names gains 298 [100, 496] times
// its value, under two names it loses 3.6 [2.0, 5.2]; in two halves under one name it gains 0.13 [0.11,
// 0.15]. No lie about value, deadline or length changes anything; a later arrival, ghosts and
// a slow job lose. A site bounds false names by who may open accounts.
//
// # Disclosure
//
// That of package posted; an explanation tells an account its own karma.
//
// # Changes of a bid
//
// Those of package posted.
//
// # Memory
//
// The karma of all members is a note of the market, kept with the decision that ends a quantum; a
// new leader goes on with it.
//
// # Errors
//
// Those of packages posted and casefile. A note has room for 8,000 accounts; those after
// them by name begin anew under a new leader.
//
// # Cost
//
// A quantum: O((n + slots)·log n). A decision: that for each class.
//
// # Source
//
// M. Vuppalapati, G. Fikioris, R. Agarwal, A. Cidon, A. Khandelwal and É. Tardos, Karma: Resource
// Allocation for Dynamic Demands, OSDI 2023, algorithm 1. Slots that cannot be taken back, and
// whole guaranteed shares, are ours.
package karma
