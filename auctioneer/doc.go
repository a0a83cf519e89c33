// Package auctioneer is the actor that decides who runs. Its replicas keep the
// job book (package book) over a mailbox; the leader alone answers users and
// agents, runs each market's mechanism (packages market and mechanism), and
// publishes the allocations.
//
// # Where to read
//
//   - book: the replicated state: jobs, nodes, effects.
//   - archive: the records of ended jobs, on the disk of each replica.
//   - market, mechanism: one market of a live site, and what it decides by.
//   - desk: the leader as a state machine: everything that a leader does by itself.
//   - intake: the way of a submission into the book.
//   - federation: jobs between sites.
//   - this package: the shell around them. While this replica leads, a leader drives a desk, and
//     submissions, queries, operations, remote and visiting answer users, operators and peers.
//     They may touch what a term has: the book, the log, the other actors and the desk.
//
// Files use only files below them, which a test holds. From the bottom up: replica.go, site.go (the
// book, the log), term.go (the desk, the markets in force), the handlers, leader.go, auctioneer.go.
//
// # Duties
//
// A request changes the book by one command, which is committed before the request is
// answered. What must happen outside because of a commit (a charge at the bank, an
// observation for the estimator) is an effect in the book, repeated until the effect
// is confirmed. What the leader knows besides the book is soft: a new leader makes it
// anew, and publishes under its higher term. A leader that the bank does not answer hands its lead
// to a replica that it answers (sight.go).
//
// # Jobs between sites
//
// A user speaks to its own site alone. A remote job, which a peer runs, gets its number
// here at once; what is asked about it next, of the bank and of the peer, package
// federation says. Queries about it ask the peer, for a bounded time, and fall back on
// what the peer said last. A visiting job, which this site runs for a peer, is an
// ordinary job of an owner that no user here can be, "alice@west". Where other jobs have
// a hold it has an authorisation of its home site's bank.
//
// A site lets a peer decide only what the peer itself pays for. Numbers from a peer are
// bounded by the job. Requests that wait for a peer have a small number of places of their
// own, so that requests of this site's users do not wait behind them.
//
// # Markets that change
//
// When markets are applied, the desk takes them into force in its next step. Requests are answered
// meanwhile; a submission that was checked against markets that have changed since is checked again.
//
// # Markets that direct
//
// Some mechanisms do more than weigh: they say which job has how many slots.
// The leader lets tasks be claimed as far as they say, which the book checks
// with each claim, and commits what takes slots away or gives them back, as one
// command for each decision, before the market decides again: what is suspended
// and resumed, which job is discarded, what a slot-second costs from then on.
// Where a mechanism's word is final, the start of a job, its time and the
// payments that go with it are committed too, so that a new leader keeps it. What
// a mechanism goes by besides the jobs present is committed as notes, which that
// of the next leader is given.
//
// An exchange that only claims, of a market that is about to decide, waits for the decision, at
// most as long as a leader rests between two steps. Else the node would wait for the next vector,
// which comes rarely where there are many nodes.
//
// A suspended task can go on only on its own node. If that has no slot for it,
// the mechanism decides again as if the task were not there, so that no slot is
// idle for its sake.
package auctioneer
