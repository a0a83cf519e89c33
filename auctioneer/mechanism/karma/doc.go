// Package karma shares slots among accounts that earn karma by giving up their share,
// and spend it later to have more than their share. Karma is not the credits of the
// bank: nobody can buy, sell or give it.
//
// # Model
//
// Time is divided into quanta. In each quantum, n accounts share a number of slots:
//
//   - Each account is guaranteed g = ⌊α·slots/n⌋ slots. It gets its demand up to g, and donates what it does not
//     need of g.
//   - The other slots, slots − n·g, are shared. Each account gets karma for its n-th part of them, for free.
//   - An account that wants more than g borrows slots, one at a time, and pays one karma for each. The borrower with
//     the most karma is next. An account without karma cannot borrow.
//   - Donated slots are borrowed before shared ones, first from the donor with the least karma. The donor gets the
//     karma that is paid. Karma paid for shared slots disappears.
//
// So an account that donated much goes first when it asks for much.
//
// Quantum computes one quantum. Ledger keeps the accounts over time. SolveDocument computes a sequence of quanta from
// {"alpha": 0.5, "slots": 6, "karma": 10, "demands": [[3, 2, 1], …]}, with a row of demands for each quantum; the
// answer has the slots and the karma of each account after each quantum.
//
// New makes the mechanism of a live market, with a ledger for each class. An account is a member from its first job
// until a week after its last. A new member gets the mean karma of the members; the first member gets a million.
// Another site is one member with all of its users, because it can give them any names; its slots are divided
// equally among these names. An account asks for as many slots as it has tasks pending and running. Freed slots go
// to accounts in proportion to the slots that they lack of what the quantum gave them. If no account lacks slots,
// they go to the accounts with the most karma. The price in credits is posted; see package posted.
//
// A task of k slots counts k times: its account asks for k slots, holds k, and for slots beyond what it is given pays
// karma for each. The task can start as long as its account lacks any slot, even if it lacks fewer than k; for the
// slots beyond that, the account then owes karma. Slots that a node keeps idle for the task cost credits, but no
// karma.
//
// # Shapes and units
//
// Karma is counted in millionths: one karma is a slot for a quantum. Quanta are a minute
// unless the market's slot says otherwise. α is 1/2 unless the market says otherwise.
//
// # Guarantees
//
// Tests check for the model, on random sequences of demands:
//
//   - Pareto efficiency: as long as borrowers have karma, no slot is idle in a quantum
//     in which somebody wants one, and nobody has more than its demand.
//   - Alpha: an account always has its demand up to g.
//   - Balance: the sum of karma changes only by what is given for free, less what is paid for shared slots.
//   - Fairness: with α = 0 and enough karma, in each quantum the smallest total of the
//     accounts whose demand was not met is as large as it can be, given the quanta before.
//   - With α = 0, asking for more than one can use gains nothing over all quanta. Asking for less can gain up to half as
//     much as the truth in addition, for an account that knows all later demands, and can lose much more.
//
// On a site, two things differ from the model. First, a running task keeps its slot, so an account may hold more slots
// than it is given. It pays for what it holds, and may owe karma. Second, a quantum counts the mean number of slots
// that an account held and asked for, rounded; what rounding leaves is counted with the next quantum. So being
// absent only at the ends of quanta does not pay. A false name gets a share and the mean karma, as under fair share,
// so an owner who can open accounts gains by it. Measured with candor audit (15 days of the
// KTH SP2 log on 3 slots at twice its load, 573 jobs of three draws, each second of waiting costs as
// much as one on a slot is worth): a job in four parts under four names gains 298 [100, 496] times
// its value, under two names it loses 3.6 [2.0, 5.2]; in two halves under one name it gains 0.13 [0.11,
// 0.15]. No lie about value, deadline or length changes anything; a later arrival, ghosts and
// a slow job lose. A site bounds false names by who may open accounts.
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
// The karma of all members is a note of the market, kept with the decision that ends a quantum; a
// new leader goes on with it.
//
// # Errors
//
// As in packages posted and casefile. A note has room for 8,000 accounts, by name. Other accounts start again as new
// members when the leader changes.
//
// # Cost
//
// A quantum: O((n + slots)·log n). A decision: the same for each class.
//
// # Source
//
// M. Vuppalapati, G. Fikioris, R. Agarwal, A. Cidon, A. Khandelwal and É. Tardos, Karma: Resource
// Allocation for Dynamic Demands, OSDI 2023, algorithm 1. Slots that cannot be taken back, and
// whole guaranteed shares, are ours.
package karma
