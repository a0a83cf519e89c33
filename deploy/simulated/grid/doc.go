// Package grid is a whole site in virtual time: the real actors' states and
// decisions, their messages to each other, and processes that do nothing but
// take time.
//
// # What runs
//
//   - the job book of the auctioneer, its live markets and mechanisms, their
//     vectors and directives (auctioneer/book, auctioneer/market);
//   - a node agent for each node, with leases, sampling, claims, suspension and
//     resumption (nodeagent/state);
//   - the bank's ledger, with a hold for each job at its submission and a charge
//     at its end (bank/ledger).
//
// What is written here instead are the shells: who calls whom, when, over which
// network. The auctioneer's and the bank's logs have one replica, and commit
// what is proposed at once. Commands are encoded, decoded and applied as from a
// log. Holds do not lapse. Leases are as long as Config says, by default longer
// than a site would have them: an idle agent that says each few seconds that it
// is idle changes nothing.
//
// A site has nodes of one slot each. The task of a job that is suspended goes on,
// where it was, when its node is told so.
//
// # Determinism
//
// One goroutine, one queue of events, every random number from the seed: the same
// configuration does the same, event by event.
package grid
