// Package netlab builds sites of several hosts on one machine, and runs the real program on each host. It shows what
// the sites do when hosts fail, are replaced, or cannot reach each other. "make lab" runs the trials of package trial.
//
// README.md says what the machine must allow. Clients and peers use plaintext here. Between the hosts of a site, Raft
// and NATS routes use TLS, as everywhere.
package netlab
