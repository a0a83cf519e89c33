// Package posted is what the mechanisms with a posted price have in common on
// a live market: fifo, fairshare and backfill decide who goes first, and all of
// them charge the same.
//
// # Model
//
// A second on a slot costs the market's reserve, whoever runs and whoever
// waits. A job pays for the slot-seconds it had, however it ended, and at most
// its budget: a job that has spent it is discarded, so that nothing is computed
// that nobody pays for. What a budget, a utility or a bid says otherwise is of no account.
//
// # Shapes and units
//
// Weights are by job of the view, then by class; they are kept from call to
// call. Prices are credits for a slot-second.
//
// # Guarantees
//
// Nobody is paid anything, nobody pays more than the budget, and no report
// changes what a slot-second costs.
//
// # Disclosure
//
//	what another account may learn                                  before a job ends  after it
//	the price, how many jobs and tasks there are                    yes                yes
//	who waits and runs, with its tasks and shares, and who is next  yes                no
//	names of jobs, budgets, lengths                                 no                 no
//
// Owners see all of their own jobs, operators all. No report changes the price or,
// but for a length in backfill, anybody's place: to know who is before one helps to
// choose a market, and nobody to lie. A budget is only told to who could pay with
// it.
//
// # Changes of a bid
//
// A budget may be raised: it bounds what a job pays, and changes neither the price nor any
// place. Nothing else may change. A budget is not lowered, as it may be owed already; a
// length, of which backfill makes others their promises, stays what it was.
//
// # Errors
//
// Admit refuses as Invalid a budget that is not positive, a length or deadline
// that is negative, and a job wider than all slots the market has.
//
// # Cost
//
// O(jobs times classes) a decision.
//
// # Source
//
// The tariff at the reserve price of Shudler et al., when nobody waits, taken
// as the price always.
package posted
