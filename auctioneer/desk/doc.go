// Package desk is the auctioneer's leader as a state machine: what a leader does
// by itself, and what it says to agents. It has no mutex, goroutine, clock, log or
// I/O. A shell tells it the time and what came of what it asked for ([Desk.Step]),
// and does what it says ([Actions]). The shell of the live site, the site in
// virtual time and the site under faults drive the same desk, so that a rule such
// as the end of a lease exists once.
//
// # What it does
//
//   - markets: it brings each market (package market) up to date with the book, lets
//     its mechanism decide, has what must last committed, and publishes vectors;
//   - settlements: it works out what an ended job owes, and proposes it until the
//     book has it;
//   - nodes: it tells nodes what to end and to suspend, takes back the claims of nodes
//     that fell silent, and ends what is left on nodes whose time to drain is over;
//   - gangs: it gives back the tasks of gangs that do not come together in time;
//   - effects: it has the bank carry out what the book owes, oldest first, and has
//     what ended jobs teach left for the estimator, each until it is confirmed;
//   - notices: it has words about jobs sent, each until it is taken or given up;
//   - errands: it asks the bank and peers what is to be asked next about remote jobs
//     (package federation), and ends jobs whose authorisations end;
//   - holds: it extends those of jobs that live;
//   - delays: it tells the book when the time of a job to begin has come;
//   - lessons: it asks the estimator how long tasks run and what queues declare.
//
// # State
//
// All that a desk knows beside the book is soft: a new leader makes another desk
// from the book. A node that the desk has not heard of counts from when the desk
// began, so that each node has a whole lease before its claims are taken back.
//
// # Time
//
// An [Instant] has both clocks of a host. The wall clock, by which jobs are timed, may
// be set; silence, waits and retries are measured by the monotonic one.
package desk
