// Package federation is the pure part of jobs between sites, for the site that sends
// a job and for the site that runs it. It has no goroutine, clock, network or log: a
// shell, live or simulated, asks what is to be asked, asks it, and says what came of it.
//
// # Words
//
// A remote job is a job of this site's user that a peer runs. A visiting job is a
// peer's job that this site runs. An errand is what is asked next about a remote job.
//
// # Remote jobs
//
// A remote job has a number in the book of its own site at once, and goes through
// phases. Each phase is left by an answer that can be asked for again under the same
// identifiers, so any leader goes on from where the last one was lost. [Next] says
// the errand of each phase:
//
//	Authorising  the bank sets the budget aside for the peer      → Sending
//	Sending      the peer takes the job                           → There
//	There        the peer is told to end it, if it was cancelled; the peer says how it fares, and at last how it ended → Over
//	Over         the bank is told so, and frees what the peer does not charge within a day
//	Releasing    the peer is told to end it, if it was sent and came there after all; the
//	             bank takes back what it set aside for a job that does not run → Over
//
// [Errands] runs the errands of all remote jobs: in rounds of bounded size, one at a
// time for each destination, so that a silent peer keeps nobody else waiting. After a
// failure a destination is left alone for a while, twice as long each time. Errands
// also follows the jobs at each peer: it asks what has changed since a cursor. A peer
// that has forgotten the cursor lists all jobs; Errands then asks for each job that is not
// in the list.
//
// Where jobs are at peers, the bank is asked now and then which peers the site has
// parted from: jobs there, and jobs of such peers here, end as PeerLost.
//
// What a peer says is bounded by the job ([Heard], [Screened]), and its texts, numbers and
// times are fit to be shown ([Tame]): a peer can harm nobody but by what it was
// entrusted with.
//
// # Visiting jobs
//
// [Visits] knows which visiting jobs changed when, for the peers that follow them, and
// lets only one request at a time take a job. [Arrival] is a visiting job on its
// way into the book. Its authorisation is accepted firmly, for this job and no other, and
// charged once, at the end; so the job ends some time before the authorisation does.
//
// # Offers
//
// An offer is a completion time and a price. Where a market sells contracts, offers
// are contracts. In other markets they are expectations: the completion is the
// estimator's median, with its spread; the price follows from the market's rule
// and what a slot costs there now, as [Expect] says for each mechanism, and is never
// above the budget. The best offer is the one with the largest surplus: what completion
// then is worth to the job, by its own valuation, less the price. A job without a
// valuation goes where it is complete first within its budget.
//
// # Shapes and cost
//
// Back-offs are by the monotonic clock, everything else by the wall clock. Nothing is
// decided by map order. An errand costs O(1), a look at what is due O(d) in the
// destinations, choosing O(n) in the offers.
package federation
