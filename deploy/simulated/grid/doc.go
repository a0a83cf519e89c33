// Package grid runs a whole site in virtual time: the states and decisions of the real actors, and the messages between
// them. The processes of tasks only take time.
//
// # What runs
//
//   - the auctioneer's leader and its job book, with a market under any of the nine mechanisms, and the checks of
//     submissions (auctioneer/desk, auctioneer/book, auctioneer/intake);
//   - a node agent for each node, with leases, sampling, claims, suspension and resumption (nodeagent/state);
//   - the bank's ledger, with a hold for each job at its submission, transfers between jobs when a decision moves
//     credits, and a charge at the end of each job (bank/ledger).
//
// Only the parts around the actors' states are different from a site: the network, the queue of events, and the logs of
// the auctioneer and the bank. These logs have one replica and commit at once. Holds do not expire. Config gives the
// length of leases; by default it is longer than on a site, so that idle agents seldom send heartbeats. There is no
// estimator: if contracts are sold, the types that it would have learned are drawn from the jobs of the workload.
//
// Each node has Config.Slots slots.
//
// # How a workload becomes jobs
//
// A job of the workload becomes one job of the book. If it needs several processors, it is a gang under batch-queue,
// reservation and backfill. Under the other mechanisms its tasks start one by one. There are two exceptions, where each
// task becomes a job of the book: split jobs under the first three mechanisms, and all jobs under deadline. Jobs bid as
// in package core. WSPT orders jobs by their true run times; a site runs WSEPT instead, and the jobs declare their run
// times. Under reservation and batch-queue, the time of a job is limited to its declared length.
//
// # Where it differs from the core
//
// Messages take milliseconds, so there are these differences:
//
//   - A job that bids below the reserve price is refused, not served at the reserve price.
//   - A job whose run time is a whole number of units ends after its last unit, and may miss its deadline.
//   - A suspended task waits for its own node.
//   - Slots draw jobs by shares under fairshare and proportional.
//   - Budgets bind. A job whose budget does not cover what it may have to pay is refused. A job whose price uses up its
//     budget is ended, for example under WSPT and WSEPT if the k-th price is not capped.
//   - Under deadline, a task ends after its run time, whatever it declared. If the market does not give a typical
//     length, it is the mean of all jobs; the core learns it as jobs arrive.
//   - A job without run time bids like the others.
//   - Random choices differ: shares, menus, the payments of batch-queue, the search of reservation.
//
// In everything else a site does what the core does.
//
// # Determinism
//
// There is one goroutine and one queue of events, and every random number comes from the seed.
//
// # Cost
//
// The most frequent event is the delivery of a vector to an agent. Each published vector costs as many events as there
// are nodes, so fewer nodes with more slots are faster. Under contract and deadline, a site decides again at fixed
// intervals while jobs wait. In long logs with many jobs, this takes most of the time.
package grid
