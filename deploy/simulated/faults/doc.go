// Package faults runs a site under faults in virtual time: three machines, each
// with a replica of the job book and one of the bank's ledger, agents with
// virtual processes, and users who submit, cancel and repeat. The states are
// the real ones (packages book, ledger and nodeagent/state); the replicated log
// is a small model of Raft, with votes, a disk that loses what was not synced,
// and snapshots. Everything follows from a seed and a list of faults.
//
// After every step at which a replica applied something, checkers of this
// package, which share no code with the states, hold the site to what must
// always be true. See [Run], and [Shrink] for what to do with a seed that fails.
package faults
