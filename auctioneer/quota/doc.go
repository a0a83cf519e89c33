// Package quota limits what one account may ask of a site: how fast it submits, how many of its jobs wait, and what the
// account loses if it cancels a bid.
//
// # Rate
//
// Each account has a token bucket, in the form of the generic cell rate algorithm: only one instant is remembered for
// an account, and only while its bucket is not full. Amounts are integers and times are arguments, so the same requests
// at the same times get the same answers. The error for a request above the limit says when the next request will be
// accepted. Only the leader has the buckets. A new leader begins with full buckets, so an account gains at most one
// burst when the leader changes.
//
// A submission of a new job counts, and so does its dry run. A repeated request with a known key does not: a user who
// got no answer must be able to ask again.
//
// # Pending jobs
//
// The number of an account's jobs that have not ended is in the job book, so it is equal on all replicas. The limit is
// in the command that enters a job, so requests that are checked at the same moment cannot exceed it together.
//
// # Deposit
//
// A site may require a deposit in addition to the budget. It is an amount for each job, held with the budget and
// returned when the job ends. The exception: the deposit is kept if the owner cancels the job within Window of its
// submission, before any task was started. The deposit pays for the harm of such a bid, which needlessly changed
// prices, shares or a timetable.
//
// The deposit does not depend on the bid, so it does not change the best bid. Let u(b, v) be an account's gain from bid
// b with value v if it does not cancel, D the deposit, and q the probability that it will cancel in time for reasons of
// its own. Its expected gain is (1−q)·u(b, v) − q·D, so the bid b that maximises u stays the best bid. If the deposit
// were instead a part d of the bid, the gain would be (1−q)·u(b, v) − q·d·b, which is largest at a bid below the true
// value; and a flood of tiny bids would cost almost nothing. An account that does not cancel still never loses by
// taking part (individual rationality). A job that is not admitted, is discarded, is lost with its nodes, or is
// cancelled by an operator loses no deposit.
//
// After Window a cancellation is free: a user who waited that long does not flood the site. A flood that waits so long
// can have at most PendingJobs jobs at a time.
//
// # Connections
//
// Package deploy/identity/connections limits an account's open connections, which the auctioneer does not see.
package quota
