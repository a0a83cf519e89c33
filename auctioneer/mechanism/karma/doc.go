// Package karma shares slots among accounts. An account earns karma when it gives up a part of its share, and spends
// karma later to have more than its share. Karma is not the credits of the bank: nobody can buy, sell or give it.
//
// # Model
//
// Time is divided into quanta. In each quantum, n accounts share a number of slots:
//
//   - Each account is guaranteed g = ⌊α·slots/n⌋ slots. It gets its demand up to g. If its demand is smaller, it
//     donates the rest of g.
//   - The other slots, slots − n·g, are shared. In each quantum, each account gets free karma for its n-th part of
//     them. Example: with 6 slots, 3 accounts and g = 1, each gets one karma.
//   - An account that wants more than g borrows slots, one at a time, and pays one karma for each. The borrower with
//     the most karma is next. An account without karma cannot borrow.
//   - Donated slots are borrowed before shared slots, first from the donor with the least karma. The donor gets the
//     karma that is paid. Karma paid for shared slots disappears.
//
// Quantum computes one quantum. Ledger keeps the accounts over time. SolveDocument computes a sequence of quanta from
// {"alpha": 0.5, "slots": 6, "karma": 10, "demands": [[3, 2, 1], …]}, with a row of demands for each quantum. The
// answer has the slots and the karma of each account after each quantum.
//
// New makes the mechanism of a live market, with a ledger for each class. An account is a member from its first job
// until a week after its last job. A new member gets the mean karma of the members; the first member gets a million
// karma. Another site is one member with all of its users, because it can give them any names; its slots are divided
// equally among these names. An account asks for as many slots as it has tasks pending and running. Freed slots go to
// accounts that hold fewer slots than the quantum gave them, in proportion to the difference. If no account lacks
// slots, they go to the accounts with the most karma. The price in credits is posted; see package posted.
//
// A task of k slots counts k times: its account asks for k slots, holds k slots, and pays karma for each slot beyond
// what it is given. The task can start if its account lacks at least one slot. If the account lacks fewer than k, it
// owes karma for the others. Slots that a node keeps idle for the task cost credits, but no karma.
//
// # Shapes and units
//
// Karma is counted in millionths: one karma pays for a slot in a quantum. A quantum is a minute unless the market's
// slot says otherwise. α is 1/2 unless the market says otherwise.
//
// # Guarantees
//
// Tests check for the model, on random sequences of demands:
//
//   - Pareto efficiency: as long as borrowers have karma, no slot is idle in a quantum in which some account wants one,
//     and no account has more than its demand.
//   - Guarantee: an account always has its demand up to g.
//   - Balance: free karma increases the sum of karma, and payments for shared slots reduce it. Nothing else changes the
//     sum.
//   - Fairness, with α = 0 and enough karma: consider the total of all slots that an account has had so far. In each
//     quantum, the mechanism makes the smallest total among accounts with unmet demand as large as the earlier quanta
//     allow.
//   - With α = 0, asking for more slots than one can use gains nothing over all quanta. If an account knows all later
//     demands, it can ask for less and get up to 1.5 times as many slots as with the true demand. Without this
//     knowledge, it can lose much more than that.
//
// On a site, two things differ from the model. First, a running task keeps its slot, so an account may hold more slots
// than it is given. It pays for what it holds, and may owe karma. Second, a quantum counts the mean number of slots
// that an account held and asked for, rounded. The rounding error is counted in the next quantum. A false name gets a
// share (as with fair share) and the mean karma, so an owner who can open accounts gains by it. candor audit measured
// 15 days of the KTH SP2 log on 3 slots at twice its load (573 jobs of three draws; each second of waiting costs as
// much as a second on a slot is worth). A job in four parts under four names gains 298 [100, 496] times its value. In
// two parts under two names it loses 3.6 [2.0, 5.2], and in two halves under one name it gains 0.13 [0.11, 0.15]. A lie
// about value, deadline or length changes nothing. An owner loses by submitting later, by submitting jobs that nobody
// needs, and by a job that runs slowly on purpose. A site limits false names by deciding who may open accounts.
//
// The guarantees of the model are for tasks of one slot. Measured on 75 jobs of several slots, drawn as in package
// fifo: declaring the same work on fewer or more slots gains −33 [−126, 59] times the job's value.
//
// # Disclosure
//
// As in package posted; an explanation tells an account its own karma.
//
// # Changes of a bid
//
// As in package posted.
//
// # Memory
//
// The karma of all members is in a note of the market, which is saved with the decision that ends a quantum. A new
// leader continues with this note.
//
// # Errors
//
// As in packages posted and casefile. A note has room for 8,000 accounts, by name. If there are more accounts, the
// others start again as new members when the leader changes.
//
// # Cost
//
// A quantum takes O((n + slots)·log n), and a decision takes the same for each class.
//
// # Source
//
// M. Vuppalapati, G. Fikioris, R. Agarwal, A. Cidon, A. Khandelwal and É. Tardos, Karma: Resource Allocation for
// Dynamic Demands, OSDI 2023, algorithm 1. Our additions are slots that cannot be taken back, and guaranteed shares of
// whole slots.
package karma
