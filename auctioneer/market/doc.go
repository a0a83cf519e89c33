// Package market runs one market of a live site: it keeps the view that the
// mechanism decides from, asks the mechanism when the set of jobs or slots has
// changed, accounts for the shares allocated and received, and turns an
// allocation into what agents are sent.
//
// In a market that directs, what agents may claim follows from the mechanism's
// directives instead of its weights; see [Manner].
//
// It is pure: time and random numbers arrive as arguments, and the leader's
// shell does the sending. It is soft state: a new leader makes it anew from the
// book.
package market
