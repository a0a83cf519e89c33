// Package quota bounds what one account may ask of a site: how fast it submits, how
// many of its jobs wait, and what it risks by a bid that it takes back.
//
// # Rate
//
// A token bucket for each account, as the generic cell rate algorithm: one instant
// is all that is remembered of an account, and only while its bucket is not full.
// Integers and times as arguments: the same requests at the same times have the same
// answers. A request over the limit is told when the next one will be taken. The
// buckets are the leader's own: a new leader begins with full ones, so that an
// account gains at most one burst by a change of leader.
//
// What counts is a submission that would make a job, or a dry run of one. The same
// request again, with the key of a job that exists, is answered free: whoever did
// not get an answer must be able to ask for it.
//
// # Pending jobs
//
// The number of an account's jobs that have not ended is in the job book, so that
// it is the same at every replica, and the bound goes with the command that enters
// a job: requests that are checked at the same moment cannot pass it together.
//
// # Deposit
//
// A site may want a deposit beside the budget: an amount for each job, held with the
// budget and returned when the job ends, whatever became of it, with one exception:
// it is kept if the owner cancels the job within Window of the submission, before
// any task was started. What it pays for is what such a bid did: it moved prices and
// shares, or the places of others in a timetable, for nothing.
//
// The deposit does not depend on the bid, so it does not change what the best bid
// is. Let u(b, v) be what an account gains by bid b with value v if it lets the job
// be, and D the deposit. Whatever the probability q that it will cancel in time, by
// its own later circumstances, its expected gain is (1−q)·u(b, v) − q·D: the b that
// is best for u is best for it. A share of the bid instead would make it
// (1−q)·u(b, v) − q·d·b, which is best at a lower bid than the true one; and it
// would cost a flood of bids of next to nothing next to nothing. Individual
// rationality holds as before for whoever does not cancel, and a job that is not
// admitted, discarded, lost with its nodes or cancelled by an operator loses nothing.
//
// After Window a cancellation is free again: a user who waited in vain is no flood.
// A flood that waits it out can have at most the pending jobs at a time, for at
// least as long each.
//
// # Connections
//
// How many connections an account has open concerns no job, and is nothing that the
// auctioneer sees: package deploy/identity/connections bounds that.
package quota
