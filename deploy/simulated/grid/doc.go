// Package grid is a whole site in virtual time: the real actors' states and
// decisions, their messages to each other, and processes that do nothing but
// take time.
//
// # What runs
//
//   - the auctioneer's leader and its job book, with a market under any of the nine
//     mechanisms, and the checks of submissions (auctioneer/desk, auctioneer/book,
//     auctioneer/intake);
//   - a node agent for each node, with leases, sampling, claims, suspension and
//     resumption (nodeagent/state);
//   - the bank's ledger, with a hold for each job at its submission, transfers between
//     jobs where a decision moves credits, and a charge at its end (bank/ledger).
//
// Only the shells are written here: the network, the queue of events, and the logs of
// the auctioneer and the bank, which have one replica and commit at once. Commands
// are encoded, decoded and applied as from a log. Holds do not expire. Leases are as
// long as Config says, by default longer than the leases of a site, so that idle agents
// seldom send heartbeats. There is no estimator: where contracts are sold, the types
// that it would have learned are drawn from the jobs of the workload.
//
// A site has nodes of Config.Slots slots. A suspended task resumes on its own node.
//
// # How a workload becomes jobs
//
// A job of the workload is a job of the book; of several processors, a gang under
// batch-queue, reservation and backfill, tasks that start one by one under the
// others. Split jobs under the former, and all jobs under deadline, are a job of
// the book for each task. Jobs bid what the core takes them to bid. Under WSPT,
// which goes by true run times, a site runs WSEPT and jobs declare theirs. Under
// reservation and batch-queue a job's time is limited to what it declares.
//
// # Where it differs from the core
//
// Messages take milliseconds: who bids below the reserve is refused, not served at
// the reserve; a job whose run time is a whole number of units outlives its last
// unit, and may be too late for its deadline; a suspended task waits for its own
// node; slots draw jobs by shares under fairshare and proportional. Budgets bind: a job
// whose budget does not cover what it may have to pay is refused, and one whose price
// uses its budget up is ended, as under WSPT and WSEPT where the k-th price is not
// capped. Under deadline a task is done after its run time, whatever it declared, and
// a typical length that the market does not say is the mean of all, which the core
// learns as jobs come. A job of no run time bids like the others. What is drawn is
// drawn otherwise: shares, menus, the payments of batch-queue, the search of
// reservation. Apart from that a site does what the core does, which
// TestAllActorsDoWhatTheCoreDoes holds it to.
//
// # Determinism
//
// One goroutine, one queue of events, every random number from the seed: the same
// configuration does the same, event by event.
//
// # Cost
//
// A vector handed to an agent is the most frequent event: what is published costs
// as many as there are nodes, so that nodes of more slots are faster. A decision
// costs what it costs on a site. Under contract and deadline a site decides again
// at fixed intervals while jobs wait, and with long logs of many jobs that is most
// of the time.
package grid
