// Package federation decides what is done about jobs between sites: at the site that sends a job, and at the site that
// runs it. It is pure: it has no goroutine, clock, network or log. The code around it, in a live or a simulated site,
// gets the next requests from it, sends them, and reports the answers to it.
//
// # Words
//
// A remote job is a job of a user of this site that a peer runs. A visiting job is a peer's job that this site runs. An
// errand is the next request about a remote job.
//
// # Remote jobs
//
// A remote job gets a number in the book of its own site at once, and goes through phases. An answer ends each phase.
// The request for this answer can be repeated with the same identifiers, so a new leader continues where the last
// leader stopped. [Next] returns the errand of each phase:
//
//	Authorising  the bank sets the budget aside for the peer      → Sending
//	Sending      the peer takes the job                           → There
//	There        the peer reports the job's state, and at last its end; if the user
//	             cancelled the job, the peer is told to end it → Over
//	Over         the bank is told that the job has ended, and frees what the peer does
//	             not charge within a day
//	Releasing    the job is given up before it runs: the peer is told to end it, in case
//	             it arrived there; the bank takes back what it set aside → Over
//
// [Errands] decides when the errands of all remote jobs are sent. Each destination gets rounds of limited size, one
// round at a time, so a silent peer does not delay requests to other peers. After a failure, a destination gets no
// requests for a time that doubles with each failure. Errands also follows the jobs at each peer: it asks for the
// changes since a cursor. A peer that has forgotten the cursor returns all jobs. Errands then asks one by one for the
// jobs that should be at the peer and that the peer did not return.
//
// While there are jobs at peers, the bank is asked at intervals with which peers the site has ended business. Jobs at
// such a peer, and jobs of such a peer here, end as PeerLost.
//
// The job limits what a peer can report about it ([Heard], [Screened]), and texts, numbers and times are made fit for
// display ([Tame]). So a peer can do harm only with the jobs that it was given.
//
// # Visiting jobs
//
// [Visits] records which visiting jobs changed and when, for the peers that follow them. While one request enters a
// visiting job into the book, other requests for this job are refused. [Arrival] is a visiting job that is not in the
// book yet. This site accepts its authorisation for this job only. It charges the authorisation once, at the end, so
// the job must end some time before the authorisation ends.
//
// # Offers
//
// An offer is a completion time and a price. If a market sells contracts, its offers are contracts. In other markets,
// offers are estimates: the completion is the estimator's median, with its spread. The price follows from the market's
// rule and the present cost of a slot ([Expect] says how for each mechanism), and is never above the budget. The best
// offer is the one with the largest surplus: what completion at that time is worth to the job, by its own valuation,
// minus the price. A job without a valuation goes to the site where it completes first within its budget.
//
// # Shapes and cost
//
// Waiting times after failures use the monotonic clock; all other times use the wall clock. No decision depends on the
// order of a map. An errand costs O(1); a search for due requests costs O(d) for d destinations; a choice costs O(n)
// for n offers.
package federation
