// Package desk is the auctioneer's leader as a state machine: what a leader does on its own, and what it tells agents.
// It has no mutex, goroutine, clock, log or I/O. The code around it, called the shell, gives it the time and the
// outcomes of its requests ([Desk.Step]), and carries out its instructions ([Actions]). The live site, virtual time and
// the tests with faults all drive this desk.
//
// # What it does
//
//   - markets: it updates each market (package market) from the book, lets its mechanism decide,
//     commits what must be durable, and publishes vectors;
//   - settlements: it works out what an ended job owes, and proposes it until the book has it;
//   - nodes: it tells nodes what to end and to suspend, takes back the claims of nodes that do not
//     answer, and ends the remaining tasks on nodes whose time to drain is over;
//   - gangs: it gives back the tasks of gangs that do not come together in time;
//   - effects: it asks the bank to carry out the book's effects, oldest first, and sends
//     observations of ended jobs to the estimator, until each is confirmed;
//   - notices: it sends notifications about jobs, until each is accepted or given up;
//   - errands: it asks the bank and peers the next question about each remote job (package
//     federation), and ends jobs whose authorisations end;
//   - holds: it extends the holds of jobs that have not ended;
//   - delays: it tells the book when the begin time of a job has come;
//   - lessons: it asks the estimator how long tasks run and what jobs of a queue declare.
//
// # State
//
// A desk keeps only soft state in addition to the book: a new leader makes another desk from the book. Each node has a
// whole lease from the beginning of the desk.
//
// # Time
//
// An [Instant] has both clocks of a host. The wall clock times jobs; it may be set. The monotonic clock measures
// silence, waits and retries.
package desk
