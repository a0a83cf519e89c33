// Package market runs one market of a live site. It keeps the view from which the mechanism decides. When the set of
// jobs or slots has changed, it asks the mechanism for an allocation. It turns the allocation into vectors. A vector
// has the weights with which agents draw jobs. The package also records the shares that jobs were allocated and have
// received.
//
// In a market that directs claims, the mechanism's directives say what agents may claim, instead of weights; see
// [Manner]. A node keeps a bounded number of suspended tasks. If a decision would suspend more, the tasks that ran
// least since they were claimed are ended and run again from their beginning. Slots and prices stay as the mechanism
// decided. The bound is four tasks for each slot, unless the node sets another one.
//
// A mechanism counts slots over all nodes, but a task of several slots needs all of them on one node. In markets where
// better jobs take slots from worse jobs, a decision also chooses the node; see house.go.
//
// # Between the book and the mechanism
//
// The caller, for a live site or in virtual time, connects the book and a market:
//
//   - it opens the market ([Open]), and reports the progress of jobs ([Market.ProgressOf]) and the
//     slots of nodes ([Slots]);
//   - it lets the market decide ([Market.Decide]), commits the result, and reports the commit
//     ([Market.Committed]);
//   - it publishes a vector when one is due ([Publisher.Due]);
//   - it resolves agents' claims ([Market.ReserveClaim]), and claims for slots that tasks leave
//     ([Market.ReserveFreedSlots]);
//   - it settles ended jobs ([Market.Settlement], [Dues]) and asks the bank for the transfers
//     ([Charge], [Round]).
//
// A [Market] has three parts: the roster of its jobs and slots with their present shares, the directives of its
// mechanism with the claims that they allow, and the draws of jobs for claims.
//
// It is pure: time and random numbers arrive as arguments, and the caller sends messages. Its state is soft: a new
// leader builds it again from the book.
package market
