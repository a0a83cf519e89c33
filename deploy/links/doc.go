// Package links tells how a site is linked to its peers: which connections its NATS servers have
// with theirs, how fast these are, and whether and how soon the peers' banks answer.
//
// Every process with a server of the site has a [Links], which knows that server's connections.
// Each of them can answer an operator for the whole site: it asks the other hosts, names those that
// do not answer in time, and sends each peer's bank one small request. It stores nothing, and asks
// a peer only when an operator asks.
package links
