// Package auctioneer is the actor that decides which jobs run. Its replicas keep the job book (package book) over a
// mailbox. Only the leader answers users and agents, runs each market's mechanism (packages market and mechanism), and
// publishes the allocations.
//
// # Where to read
//
//   - book: the replicated state: jobs, nodes, effects.
//   - archive: the records of ended jobs, on the disk of each replica.
//   - market: one market of a live site. mechanism: the rules with which a market decides.
//   - desk: the leader as a state machine. It has everything that a leader does by itself.
//   - intake: the checks and steps of a submission on its way into the book.
//   - federation: jobs between sites.
//   - this package: the code around these packages. While this replica leads, the type leader drives a desk. The types
//     submissions, queries, operations, remote and visiting answer users, operators and peers. They may use
//     everything that the type term has: the book, the log, the other actors and the desk.
//
// The files have an order. A file uses only files before it in this order; a test checks this. The order is:
// replica.go, site.go (the book, the log), term.go (the desk, the markets in force), the handlers, leader.go,
// auctioneer.go.
//
// # Duties
//
// A request changes the book by one command, which is committed before the request is answered. If a commit requires an
// action outside (a charge at the bank, an observation for the estimator), the action is an effect in the book. The
// effect is repeated until it is confirmed. The leader's other state is soft: a new leader builds it again from the
// book. Agents ignore what an earlier leader publishes, because the new leader has a higher term. If the bank does not
// answer the leader, the leader hands over to a replica that the bank answers (sight.go).
//
// # Jobs between sites
//
// A user talks only to its own site. A remote job, which a peer runs, gets its number here at once. Queries about a
// remote job ask the peer, for a limited time; otherwise they return the peer's last report. A visiting job, which this
// site runs for a peer, is an ordinary job. Its owner has a name that no user here can have, such as "alice@west".
// Other jobs have a hold; a visiting job has an authorisation of its home site's bank instead.
//
// A site lets a peer decide only what the peer itself pays for. What a peer can report about a job, such as its cost,
// is limited by what the job declares. Only a small, separate number of requests may wait for a peer at the same time,
// so that other requests do not wait behind them.
//
// # Markets that change
//
// When markets are applied, they come into force with the desk's next step. Requests are answered meanwhile. If the
// markets changed after a submission was checked, the submission is checked again.
//
// # Markets that direct
//
// Some mechanisms do more than set weights: they say which job has how many slots. The leader then lets nodes claim
// only as many tasks as the mechanism allows; the book checks this with each claim. If a decision takes slots away or
// gives them back, the leader commits it as one command, before the market decides again. The command has the tasks
// that are suspended and resumed, the discarded jobs, and the new price of a slot-second. If a mechanism's decisions
// are final, the start of a job, its time and its payments are also committed, so that a new leader keeps them.
// Everything else that a mechanism must remember is committed as notes. The mechanism of the next leader gets them.
//
// If a market is about to decide, an exchange that only claims waits for the decision, at most for the longest pause
// between two steps of a leader. Otherwise the node would wait for the next vector, and vectors are rare on a site with
// many nodes.
//
// A suspended task can continue only on its own node. If this node has no slot for it, the mechanism decides again as
// if the task were not there, so that no slot stays idle for it.
package auctioneer
