// Package links says how a site is linked to its peers: which connections there
// are between its NATS servers and theirs, how fast these are, and whether the
// peers' banks answer, and how soon.
//
// Every process that has a server of the site has a [Links], which knows that
// server's connections. Any of them answers an operator for all: it asks those of
// the other hosts, names the ones that do not answer in time, and sends each peer's
// bank one small request as banks send it to one another. Nothing is kept, and
// nothing is asked of a peer unless an operator asks.
package links
