// Package nats holds configurations for NATS servers that run on their own, in
// place of the servers inside "candor up", and makes the part of them that
// follows from a site's keys.
//
//	base.conf     what all have in common: limits, TLS, JetStream, the accounts
//	site.conf     one site alone, on one server
//	cluster.conf  one site, on three servers
//	hub.conf      a site to which the servers of other owners' sites connect
//	leaf.conf     a site that connects to another owner's hub
//	gateway.conf  clusters of one owner, who has one set of keys for both
//
// All include accounts.conf, which "candor site nats" prints and [Accounts] makes
// from the site's keys: the operator's claim, the system account, and a resolver
// with the claims of the accounts, among them one for each peer of the site's
// configuration. It is written again, and the servers told to reload, whenever a
// peer joins or a key is rotated.
//
// The certificates are those of "candor site init": ca.pem is the site's authority,
// host.pem and host.key what it issued for the host ("candor site certify" adds the
// name under which peers reach a hub), and peers.pem the authorities of all peers,
// one after another. A hub's credentials for a peer are in the invitation that
// "candor site invite" writes, and after "candor site join" in peers/NAME.creds
// in the directory of the peer's configuration: leaf.conf wants them as peer.creds.
//
// The bounds of how many connections an account may have open (limits.connections of
// the site's configuration) are kept by the process of the bank, "candor bank", where
// it has the site's keys; for all servers, in whose system account it listens.
//
// Sites of different owners share nothing but an account for the two of them. Into
// it each site lets the requests of [messages.PeerVerbs], and nothing else, so that
// neither side can speak as one of the other's users, hear their replies, or reach
// another actor. The name in these subjects is "$" and the site, which no user can
// have; see packages deploy/identity and bank/clearing/courier.
package nats
