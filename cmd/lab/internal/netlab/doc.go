// Package netlab builds sites of several hosts on one machine and runs the real
// binary on each, to see what they do when hosts die, are replaced, or lose sight
// of one another. "make lab" runs its trials, which package trial describes.
//
// README.md has what it builds, on what, and what each scenario wants to hold. Clients and
// peers speak plaintext there; between the hosts of a site Raft and NATS routes are TLS, as
// everywhere.
package netlab
