// Package market runs one market of a live site: it keeps the view that the
// mechanism decides from, asks the mechanism when the set of jobs or slots has
// changed, accounts for the shares allocated and received, and turns an
// allocation into what agents are sent.
//
// In a market that directs, what agents may claim follows from the mechanism's
// directives instead of its weights; see [Manner]. A node keeps a bounded number of
// suspended tasks. Where a decision would leave more, those that have run least since
// they were claimed are ended and run again from their beginning: the slots and the
// prices are as the mechanism says, and the work that is lost is the least. The
// bound of a node is four for each slot, where it does not say another.
//
// # Between the book and the mechanism
//
// A site's shell, in production or in virtual time, brings the book and a market
// together: it opens the market ([Open]), puts in how far jobs have come
// ([Market.ProgressOf]) and what nodes offer ([Slots]), has it decide into what
// is to be committed ([Market.Decide]) and says when it is ([Market.Committed]),
// publishes when a vector is due ([Publisher.Due]), resolves agents' claims ([Market.ReserveClaim], and for slots that
// tasks leave [Market.ReserveFreed]), settles what has ended ([Market.Settlement], [Dues]) and asks the bank for what that comes to
// ([Charge], [Round]).
//
// A [Market] has three parts: the roster of its jobs and slots with the shares in
// force, the directives of its mechanism with what they allow, and the draws of jobs
// for claims.
//
// It is pure: time and random numbers arrive as arguments, and the leader's
// shell does the sending. It is soft state: a new leader makes it anew from the
// book.
package market
