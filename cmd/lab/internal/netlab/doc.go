// Package netlab builds sites of several hosts on one machine and runs the real program on each, to see what they do
// when hosts die, are replaced, or lose contact with each other. "make lab" runs its trials, which package trial
// describes.
//
// README.md says what the lab builds, what the machine must allow, and what each scenario checks. Clients and peers use
// plaintext here. Between the hosts of a site, Raft and NATS routes use TLS, as everywhere.
package netlab
