// Package posted is the common part of the mechanisms with a posted price on a live market, for example fifo, fairshare
// and backfill. They differ only in which job goes first; the price is the same.
//
// # Model
//
// A second on a slot always costs the market's reserve price, whatever other jobs run or wait. A job pays for the
// slot-seconds that it had, however it ended, at most its budget. A job that has spent its budget is discarded, so that
// no unpaid work is computed. Utilities and other terms of bids are ignored.
//
// # Shapes and units
//
// The weights of an allocation are ordered by job of the view, then by class. The next call overwrites them. Prices are
// credits for a slot-second.
//
// # Guarantees
//
// No job receives money, no job pays more than its budget, and no report changes the price of a slot-second.
//
// # Disclosure
//
//	what another account may learn                                  before a job ends  after it
//	the price, how many jobs and tasks there are                    yes                yes
//	who waits and runs, with its tasks and shares, and who is next  yes                no
//	names of jobs, budgets, lengths                                 no                 no
//
// Owners see everything about their own jobs, operators about all jobs. No report changes the price, and only a length
// in backfill can change the order. A budget is shown only to members of the account that pays it.
//
// # Changes of a bid
//
// A budget may be raised: it bounds what a job pays, and affects neither the price nor the order. Nothing else may
// change. A budget cannot be lowered, because the job may owe it already. In backfill promises to other jobs depend on
// a length.
//
// # Errors
//
// Admit refuses as Invalid: a budget that is not positive, a negative length or deadline, a job that is wider than all
// slots of the market, and a rate below the price. Only bids that may run at any site, or that come from another site,
// have a rate. No job pays more than its rate.
//
// # Cost
//
// A decision takes O(jobs times classes).
//
// # Source
//
// Shudler et al. charge the reserve price only while no job waits; here it is always charged.
package posted
